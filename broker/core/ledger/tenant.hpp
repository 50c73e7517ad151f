// broker/core/ledger/tenant.hpp -- defines money, and what an account has in one pool.
//
//   Tenant   an account in a pool: its leases by class, the cheapest first
//   Fanout   how many slots claims of one account with one set of labels hold at a class below free
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "shm/layout.hpp"

namespace dibs::core {

using Cost = std::array<int64_t, shm::kClasses>;

// Micro-units, and those of a second: what a balance may be either way, and a rate.
inline constexpr int64_t kMoneyMax = 1'000'000'000'000'000'000;
inline constexpr int64_t kRateMax = 1'000'000'000'000;

// What a class saves up at most.
inline __int128 cap_of(int64_t rate, uint64_t charge_max_ns) {
    return static_cast<__int128>(rate) * (charge_max_ns / 1000) / 1'000'000;
}

inline constexpr uint8_t kFreeClass = shm::kClasses;
inline constexpr uint8_t kNoClass = 255;  // not in this pass
inline constexpr uint32_t kClassesAndFree = shm::kClasses + 1;

struct Tenant {
    bool in_use = false;
    uint32_t pool = 0;
    uint32_t account = shm::kNoRow;
    uint32_t units_total = 0;
    uint32_t place = shm::kNoRow;  // among the pool's tenants with leases
    bool is_stale = false;         // what follows may be wrong
    bool is_due = false;           // a pass may move its leases
    uint64_t quiet_until_us = 0;   // no pass before this may
    std::array<uint32_t, kClassesAndFree> units = {};
    std::array<uint32_t, kClassesAndFree> leases = {};  // roots
};

// A pool's tenants whose leases a pass may have to move to another class.
struct TenantWatch {
    std::vector<uint32_t> stale;  // those that have changed
    std::vector<uint32_t> due;
    uint64_t quiet_until_us = 0;  // the least of all other classes
};

struct Fanout {
    bool in_use = false;
    uint32_t pool = 0;
    uint32_t account = shm::kNoRow;
    uint64_t labels = 0;  // a hash of both sets' union
    uint32_t crowds = 0;
    uint32_t units = 0;  // at a class below free
};

// A configured limit: n slots for each label that begins with "key:"; "*:" is every slot's.
struct LabelLimit {
    std::string prefix;
    uint32_t limit;
};

}  // namespace dibs::core
