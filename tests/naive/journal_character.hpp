// tests/naive/journal_character.hpp -- what makes one random journal differ from another as a
// whole: its pools, its limits, and how often what happens in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/naive/dice.hpp"
#include "tests/naive/journal.hpp"
#include "tests/naive/journal_generator.hpp"

namespace dibs::naive {

struct Character {
    uint64_t turn_percent = 10;   // of steps that end a turn
    uint64_t death_permille = 5;  // of steps that kill
    uint64_t drain_permille = 5;
    uint64_t delete_permille = 0;
    uint64_t claim_weight = 30;
    uint64_t release_weight = 12;
    uint64_t time_max = 12;  // random advances
    size_t sessions = 4;
    bool restarts = false;
    bool large = false;             // hundreds of slots: turns that outgrow the log
    uint64_t time_unit = 1;         // ns: what random advances are counted in
    uint64_t change_permille = 0;   // of steps that configure a pool again
    uint64_t refusal_permille = 0;  // of steps in which whoever is asked refuses for now

    bool priorities = false;  // most pools are ordered by them
    bool gangs = false;       // applications, whose tasks claim
    bool several = false;     // many claims are over several pools

    bool elastic = false;  // most pools are
    uint64_t provide_percent = 2;
    uint64_t answer_percent = 8;
    uint64_t announce_percent = 8;
    uint64_t created_weight = 60;

    bool dispatched = false;  // most pools are
    uint64_t entries = 6;     // names of them
    uint64_t supervisor_percent = 0;
    uint64_t named_percent = 95;  // of entries, in a reading of the queue
    uint64_t entry_weight = 40;
    uint64_t first_read_weight = 5;
    uint64_t read_weight = 5;
    uint64_t operation_weight = 30;
    uint64_t worker_weight = 30;
    uint64_t process_weight = 20;

    // Pools ordered by account: each of these is in some journals and not in others.
    bool accounts = false;
    bool labels = false;
    bool limits = false;
    bool fanout = false;
    bool preemption = false;
    bool grace = false;
    bool requeue = false;
    bool units = false;     // claims of several
    bool attached = false;  // workers with sessions
    bool reported = false;  // workers without
    bool pulls = false;
    bool strict = false;  // some pools are of strict expiry
    // Attached workers are preempted, and few of a pool may be asked at a time.
    bool promises = false;
    uint64_t account_weight = 0;
    uint64_t report_weight = 0;
};

// Chooses the limits and pools of the journal, too.
Character choose_character(Dice& dice, Journal& journal, Flavour flavour);

// The pool with other values of what may be changed live, and now and then of what may not.
PoolSpec changed_pool(Dice& dice, const Character& character, const PoolSpec& pool);

}  // namespace dibs::naive
