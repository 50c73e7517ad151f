// tests/naive/passes.hpp -- what a pass over a pool knows while it goes on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tests/naive/model.hpp"

namespace dibs::naive {

// Over a pool ordered by account.
struct AccountPass {
    struct Held {
        uint8_t at_class = 0;
        std::vector<uint64_t> slots;
    };
    uint32_t pool = 0;
    std::map<uint64_t, uint8_t> classes;  // of waiting claims, by number
    std::set<uint64_t> held;              // slots held back for a claim of several units
    std::set<uint64_t> held_in_step;
    std::set<uint64_t> preempted;  // slots
    bool service_is_over = false;
    std::map<uint64_t, Held> held_by;  // in step 2, by claim number
    bool kept_in_vain = false;         // by a claim that ends, or would not any more
};

// What an elastic one of these has looked at.
struct AccountLook {
    bool is_over_quota = false;
    bool has_ordered = false;
    uint64_t needed = 0;      // slots that claims count on
    std::set<uint64_t> kept;  // the idle ones of these
};

// Of elastic pools whose slots have resources.
struct SizedTask {
    uint64_t size = 0;
    uint64_t number = 0;
    bool is_whole = false;
    Vector least;
};
struct WorkerBox {
    bool is_untouched = true;
    uint64_t parts = UINT64_MAX;
    Vector left;
};

}  // namespace dibs::naive
