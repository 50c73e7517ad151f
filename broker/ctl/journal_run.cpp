// broker/ctl/journal_run.cpp -- from the reader to the replayer, or to the other form.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/journal_run.hpp"

#include "broker/ctl/journal_size.hpp"
#include "broker/ctl/replayer.hpp"
#include "broker/ctl/scenario.hpp"
#include "broker/ctl/state_text.hpp"

namespace dibs::ctl {
namespace {

void append_prefixed(std::string& bytes, std::string_view buffer) {
    for (int shift = 0; shift < 32; shift += 8) {
        bytes += static_cast<char>((buffer.size() >> shift) & 0xff);
    }
    bytes += buffer;
}

}  // namespace

void run_journal(JournalReader& journal, const RunOptions& options, const LineSink& sink) {
    Replayer replayer(limits_of(journal));
    while (const journal::Line* line = journal.next()) {
        if (is_expectation(*line)) continue;
        const bool opens = !replayer.turn_open() && line->advance() == nullptr;
        replayer.apply(*line);
        if (options.turns && opens) {
            sink("{\"turn\":{\"now_ns\":" + std::to_string(replayer.core().now()) + "}}");
        }
        for (const std::string& decision : replayer.take_decisions())
            sink(decision);
    }
    replayer.finish();
    if (!options.final_state) return;
    for (const std::string& row : state_text(replayer.core(), replayer.cast()))
        sink(row);
}

std::string journal_bytes(JournalReader& journal, JournalForm form) {
    const bool binary = form == JournalForm::kBinary;
    std::string bytes(binary ? kJournalMagic : "");
    while (journal.next() != nullptr) {
        if (binary) {
            append_prefixed(bytes, journal.buffer());
        } else {
            bytes += journal.json() + '\n';
        }
    }
    return bytes;
}

}  // namespace dibs::ctl
