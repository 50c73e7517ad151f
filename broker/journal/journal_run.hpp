// broker/journal/journal_run.hpp -- runs, checks or converts a whole journal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/journal/journal_reader.hpp"
#include "broker/journal/journal_size.hpp"

namespace dibs::ctl {

struct RunOptions {
    bool final_state = false;                 // the rows, after the last decision
    bool turns = false;                       // a line where a turn opens
    uint64_t memory_max = kJournalMemoryMax;  // bytes of rows
};

using LineSink = std::function<void(const std::string&)>;

// Every decision as one line of JSON; expectations are passed over. Throws JournalError, after
// what was decided before it has gone to the sink.
void run_journal(JournalReader& journal, const RunOptions& options, const LineSink& sink);

// Whether it is what dibs record writes. Reads its first line. Throws JournalError.
bool is_recording(JournalReader& journal);
// A recording is played and compared: how many turns there were. Throws JournalError.
uint64_t check_recording(JournalReader& journal, uint64_t memory_max = kJournalMemoryMax);

// The sum of lines, one more of which is `line`.
uint64_t journal_sum(uint64_t sum, std::string_view line);
// The last line of a recording of so many turns, whose other lines have this sum.
std::vector<uint8_t> recording_end(uint64_t turns, uint64_t sum);

// The whole journal in the other form, or cleared of comments in its own.
std::string journal_bytes(JournalReader& journal, JournalForm form);

}  // namespace dibs::ctl
