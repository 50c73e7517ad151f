// tests/sim/character.hpp -- what is drawn for a play: its sizes, its faults, its pools, its
// accounts.
//
// Each play leaves out some of the faults and some of what pools can do, so that they cannot hide
// behind one another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broker/config/config.hpp"
#include "broker/core/core.hpp"
#include "tests/sim/world.hpp"

namespace dibs::sim {

inline constexpr uint32_t kFirstUid = 1000;
inline constexpr uint32_t kUids = 4;  // of the last one's account nobody has said anything

struct PoolPlan {
    std::string name;
    bool has_workers = false;
    bool release_is_ready = false;
    uint32_t slots = 0;
    uint64_t interval_max_ns = 0;
    bool by_account = false;
    uint64_t quantum_ns = 0;  // 0: no lease is parked
    shm::ExpiryMode expiry = shm::ExpiryMode::kCooperative;
};

struct Character {
    Weather weather;
    core::Limits limits;
    uint32_t clients = 4;
    uint32_t workers = 2;
    uint32_t operators = 0;
    uint64_t check_every = 1;          // turns
    uint64_t process_dies_one_in = 0;  // of steps
    uint64_t broker_dies_one_in = 0;
    bool loud_deaths = false;
    bool scarce = false;
    bool adoption = false;
    std::vector<PoolPlan> pools;
    std::vector<AccountSettings> accounts;

    explicit Character(Dice& dice);
    [[nodiscard]] std::string text() const;
    [[nodiscard]] Config configuration(Dice& dice) const;
};

}  // namespace dibs::sim
