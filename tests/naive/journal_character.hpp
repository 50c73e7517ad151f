// tests/naive/journal_character.hpp -- what makes one random journal differ from another as a
// whole: its pools, its limits, and how often what happens in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/naive/dice.hpp"
#include "tests/naive/journal.hpp"

namespace dibs::naive {

struct Character {
    uint64_t turn_percent = 10;   // of steps that end a turn
    uint64_t death_permille = 5;  // of steps that kill
    uint64_t drain_permille = 5;
    uint64_t claim_weight = 30;
    uint64_t release_weight = 12;
    uint64_t time_max = 12;  // random advances
    size_t sessions = 4;
    bool restarts = false;
    bool large = false;  // hundreds of slots: turns that outgrow the log
};

// Chooses the limits and pools of the journal, too.
Character choose_character(Dice& dice, Journal& journal);

}  // namespace dibs::naive
