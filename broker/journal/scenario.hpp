// broker/journal/scenario.hpp -- runs a scenario: a journal with expectations between its commands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/journal/journal_reader.hpp"
#include "broker/journal/journal_size.hpp"
#include "schemas/journal_generated.h"

namespace dibs::ctl {

// A line that says what is expected, and is not a command.
bool is_expectation(const journal::Line& line);

// Returns how many expectations held. Throws JournalError at the first that does not, at what is
// wrong with the journal, and where the scheduler's invariants do not hold after a turn;
// journal.line() says where.
uint64_t check_scenario(JournalReader& journal, uint64_t memory_max = kJournalMemoryMax);

}  // namespace dibs::ctl
