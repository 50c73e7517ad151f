// broker/ctl/journal_size.hpp -- how many rows a journal needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/core.hpp"
#include "broker/ctl/journal_reader.hpp"

namespace dibs::ctl {

// What the journal's own "limits" say; for what they do not say, as many rows as the journal can
// use, so that a table is full only where its author wants it to be. Reads to the first line that
// cannot be read, and rewinds.
core::Limits limits_of(JournalReader& journal);

}  // namespace dibs::ctl
