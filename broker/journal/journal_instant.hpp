// broker/journal/journal_instant.hpp -- checks an instant that a journal's line names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "broker/core/command.hpp"
#include "broker/journal/journal_error.hpp"

namespace dibs::ctl {

// The turn's where it names none, for which commands have a number of their own: that one is no
// instant.
inline core::TimeNs instant_or_now(flatbuffers::Optional<uint64_t> named) {
    if (named == shm::kNever) throw JournalError("time passes its end");
    return named.value_or(shm::kNever);
}

}  // namespace dibs::ctl
