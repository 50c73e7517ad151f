// broker/journal/offers_text.hpp -- writes what is offered of a pool as JSON, as it was asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "schemas/journal_generated.h"

namespace dibs::ctl {

// Views into the journal's line; what has no amount has 0.
std::vector<core::Amount> amounts_of(
    const flatbuffers::Vector<flatbuffers::Offset<journal::Amount>>* given);

// JournalError where there is no such pool.
std::string offers_text(const core::Core& core, const journal::OffersRow& asked);

}  // namespace dibs::ctl
