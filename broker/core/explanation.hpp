// broker/core/explanation.hpp -- why a claim waits, and what would have to happen.
//
// Computed when somebody asks, from rows and the backlog's counts; nothing is kept for it. The
// codes are the C interface's too (dibs.h, DIBS_WAIT_…), so their numbers stay.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shm/layout.hpp"

namespace dibs::core {

enum class WaitReason : uint8_t {
    kNone = 0,         // it does not wait
    kBehind = 1,       // others stand before it
    kHeld = 2,         // first in line; every slot is held
    kUnits = 3,        // first in line; fewer slots are idle than it wants
    kConfirming = 4,   // its slots are chosen; their workers have not all answered
    kUnconfirmed = 5,  // first in line; as many workers are being asked as the pool allows
    kLeases = 6,       // first in line; the broker's lease rows are used up
    kRecovering = 7,   // first in line; nothing is held, the slots are not ready again
    kNoSlots = 8,      // first in line; the pool has no slots: no worker has announced one
    kNextTurn = 9,     // it can be served: the next turn does
};

struct Explanation {
    WaitReason reason = WaitReason::kNone;
    WaitReason obstacle = WaitReason::kNone;  // of the first in line; reason itself if that is it
    uint32_t position = 0;                    // 1 = first in line; 0 = not in the backlog
    uint32_t waiting = 0;                     // claims in the backlog of its pool
    uint32_t units = 0;                       // that it wants
    uint32_t confirmed = 0;                   // of them, by workers
    uint64_t waited_ns = 0;
    uint64_t left_ns = shm::kNever;  // until its deadline; of a confirming one its reservation's
    uint32_t holder = shm::kNoRow;   // lease row: the oldest live lease of the pool
};

}  // namespace dibs::core
