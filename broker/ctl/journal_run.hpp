// broker/ctl/journal_run.hpp -- what can be done with a whole journal: run it, convert it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "broker/ctl/journal_reader.hpp"

namespace dibs::ctl {

struct RunOptions {
    bool final_state = false;  // the rows, after the last decision
    bool turns = false;        // a line where a turn opens
};

using LineSink = std::function<void(const std::string&)>;

// Every decision as one line of JSON; expectations are passed over. Throws JournalError, after
// what was decided before it has gone to the sink.
void run_journal(JournalReader& journal, const RunOptions& options, const LineSink& sink);

// The whole journal in the other form, or cleared of comments in its own.
std::string journal_bytes(JournalReader& journal, JournalForm form);

}  // namespace dibs::ctl
