// broker/core/rules/reported_workers.hpp -- holds what is derived of reported workers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "broker/core/rules/kept_pull.hpp"
#include "broker/core/store/chains.hpp"
#include "broker/core/store/state.hpp"
#include "broker/core/store/timers.hpp"

namespace dibs::core {

struct ReportedWorkers {
    explicit ReportedWorkers(const State& state)
        : forgotten(0, state.slots.size(), 0),
          assignments(state.pools.size(), state.slots.size()) {}

    // Reported workers that hold nothing, by the instant at which they are forgotten.
    Timers forgotten;
    std::deque<KeptPull> kept_pulls;  // that go on before anything else is decided
    struct Pulling {
        uint32_t slot;
        uint32_t generation;
        uint64_t user_data;  // of the command
        std::vector<std::string> labels;
    };
    std::vector<Pulling> pulling;  // workers that asked in this turn
    size_t pulled = 0;             // those that have been answered
    // Unconfirmed assignments to reported workers, slots by pool, in the order of their grants;
    // code that wants those of one instant in order of number sorts them.
    Chains assignments;
    std::unordered_map<uint64_t, std::string> errors;  // claim number → why its worker failed
};

}  // namespace dibs::core
