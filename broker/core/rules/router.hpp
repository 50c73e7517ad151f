// broker/core/rules/router.hpp -- ranks the pools of which one is to have a claim: a pure function.
//
// Statements S0.36 to S0.38: version 1 compares, version 2 adds up a score, version 3 corrects it.
// docs/scheduling.md, Router, has them in numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "broker/core/command.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

// A member as it is at this instant.
struct Candidate {
    uint32_t pool = shm::kNoRow;
    std::string_view name = {};  // the last to tell two apart
    int32_t priority = 0;        // lower first
    uint32_t idle = 0;           // slots that no claim waits for
    uint32_t idle_seen = 0;      // version 3: what somebody else saw, if that is more
    uint32_t queue = 0;          // claims
    uint32_t desired = 0;        // slots that are there, or come
    uint32_t cap = shm::kNoRow;  // of them at most; kNoRow: any number
    TimeNs saturated_until_ns = 0;
};

struct Ranking {
    std::array<uint32_t, shm::kSetMembersMax> pools = {};  // the first `count` of them
    uint32_t count = 0;
    // Of version 1: a member is not saturated; of the others: one is not at its cap.
    bool fresh = false;

    [[nodiscard]] std::span<const uint32_t> ranked() const { return {pools.data(), count}; }
};

// No more than kSetMembersMax of them count.
Ranking rank(std::span<const Candidate> members,
             uint32_t group_cap,
             uint8_t version,
             TimeNs now_ns);

}  // namespace dibs::core
