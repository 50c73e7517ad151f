// tests/naive/lockstep.hpp -- one journal, two cores, compared at the end of every turn.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/naive/decision_line.hpp"
#include "tests/naive/journal.hpp"
#include "tests/naive/statements.hpp"

namespace dibs::naive {

struct Disagreement {
    size_t step = 0;  // the turn end at which it showed
    std::string what;
    std::vector<std::string> real;   // what the core decided in that turn
    std::vector<std::string> naive;  // what the naive core decided
};

// How often what was decided, over all journals: "end rejected busy" → 17.
struct Coverage {
    std::map<std::string, uint64_t> seen;
    uint64_t journals = 0;
    uint64_t commands = 0;
    uint64_t turns = 0;
    uint64_t cuts = 0;  // turns of the core that went on in another one
    uint64_t full = 0;  // turns that took no more commands
    uint64_t restarts = 0;
    Tested tested{};  // the statements
    void count(const DecisionLine& line);
};

// Plays all steps; empty if the cores agree throughout. Turns that the core cuts are joined: a cut
// is not to be seen.
std::optional<Disagreement> play_both(const Journal& journal, Coverage* coverage);

}  // namespace dibs::naive
