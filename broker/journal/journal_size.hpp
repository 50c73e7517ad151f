// broker/journal/journal_size.hpp -- computes how many rows a journal needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "broker/core/core.hpp"
#include "broker/journal/journal_reader.hpp"

namespace dibs::ctl {

// A journal of a few lines may ask for rows without end, so this bounds them: `dibs replay
// --memory-max`.
inline constexpr uint64_t kJournalMemoryMax = uint64_t{512} << 20;

// What the journal's own "limits" say; for what they do not say, as many rows as the journal can
// use, so that a table is full only where its author wants it to be. Reads to the first line that
// cannot be read, and rewinds. JournalError where they take more than `memory_max` bytes.
core::Limits limits_of(JournalReader& journal, uint64_t memory_max = kJournalMemoryMax);

// What is said of rows that take so many bytes.
std::string more_than(uint64_t memory_max, uint64_t needed);

}  // namespace dibs::ctl
