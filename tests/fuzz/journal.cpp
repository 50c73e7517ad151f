// tests/fuzz/journal.cpp -- a journal in either form, read and replayed: it runs, or the error says
// what is wrong, and the rows hold either way.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "broker/ctl/journal_error.hpp"
#include "broker/ctl/journal_reader.hpp"
#include "broker/ctl/replayer.hpp"
#include "broker/ctl/scenario.hpp"
#include "tests/fuzz/bytes.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    namespace ctl = dibs::ctl;
    const dibs::fuzz::Bytes input(bytes, size);
    constexpr dibs::core::Limits kLimits = {.pools = 8,
                                            .sessions = 16,
                                            .slots = 64,
                                            .claims = 64,
                                            .leases = 64,
                                            .arena_blocks = 32,
                                            .accounts = 16,
                                            .label_sets = 32};
    try {
        static ctl::JournalReader reader;
        reader.open(std::string(input.text()), ctl::JournalForm::kDetect);
        ctl::Replayer replayer(kLimits);
        bool meant = false;  // a line was a command
        try {
            while (const auto* line = reader.next()) {
                if (!std::exchange(meant, true)) ++dibs::fuzz::understood;
                if (ctl::is_expectation(*line)) continue;
                replayer.apply(*line);
                for (const std::string& decision : replayer.take_decisions())
                    dibs::fuzz::expect(!decision.empty(), "a decision says something");
            }
            replayer.finish();
        } catch (const ctl::JournalError& error) {
            dibs::fuzz::expect(*error.what() != 0, "an error says what is wrong");
        }
        if (replayer.turn_open()) return 0;
        dibs::fuzz::expect(replayer.core().check_all().empty(), "the rows hold");
    } catch (const ctl::JournalError& error) {
        dibs::fuzz::expect(*error.what() != 0, "an error says what is wrong");
    }
    return 0;
}
