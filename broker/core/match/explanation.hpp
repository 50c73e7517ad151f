// broker/core/match/explanation.hpp -- says why a claim waits and what has to happen to serve it.
//
// It is computed on request, from rows and counts that are kept anyway. The C interface uses the
// same codes (dibs.h, DIBS_WAIT_…, DIBS_CLASS_…, DIBS_PREEMPT_…), so their numbers stay.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "shm/layout.hpp"

namespace dibs::core {

enum class WaitReason : uint8_t {
    kNone = 0,         // it does not wait
    kBehind = 1,       // other claims stand before it
    kHeld = 2,         // first in line; every slot is held
    kUnits = 3,        // first in line; fewer slots are idle than it wants
    kConfirming = 4,   // its slots are chosen; their workers have not all answered
    kUnconfirmed = 5,  // first in line; as many workers are being asked as the pool allows
    kLeases = 6,       // first in line; the broker's lease rows are used up
    kRecovering = 7,   // first in line; nothing is held, the slots are not ready again
    kNoSlots = 8,      // first in line; the pool has no slots: no worker has announced one
    kNextTurn = 9,     // it can be served: the next turn does
    // Pools ordered by account.
    kPromised = 10,    // a slot has been taken from another for it, which may hold it for its grace
    kLeftOut = 11,     // its account may claim nothing now, and takes nothing for free
    kLabels = 12,      // no slot has its labels
    kLabelLimit = 13,  // its account holds as many slots with a label as it may
    kHeldBack = 14,    // the idle slots are kept together for a claim of several
    // Any pool.
    kDrained = 15,  // an administrator has drained every slot
    // Pools ordered by account.
    kOverLimit = 16,  // it wants more slots than its account may ever hold
    // Pools ordered by priority.
    kOnHold = 17,  // its priority is 0
    // Pools whose slots have resources.
    kLacks = 18,     // first in line; no slot has as much of a resource free as it wants
    kSlotRows = 19,  // first in line; the broker's slot rows are used up: each part takes one
    // Elastic pools.
    kNoProvisioner = 20,  // first in line; no type of the pool has a provisioner
    kBeingMade = 21,      // first in line; workers are ordered that have not come yet
    kAtQuota = 22,        // first in line; at quota, or there are as many workers as there may be
    kPausing = 23,        // first in line; types at capacity or after a failed start, or throttled
    kLimit = 24,          // first in line; as many units run as the limit has after an overload
    // Any pool in order of arrival.
    kOtherPools = 25,  // first in line; it could be served here, and waits for other pools, too
    // Of a task of an application: held by it.
    kGang = 26,         // its application reserves its gang, which is not whole
    kNoManager = 27,    // its application has no manager, or recovers
    kPlaceholder = 28,  // no placeholder of its group is free
    // Any claim.
    kBehindGang = 29,  // first in line; what it lacks is reserved for an application's gang
};

// What keeps an elastic pool from ordering a worker.
enum class PauseReason : uint8_t {
    kNone = 0,
    kThrottle = 1,  // its provisioner was overloaded, or as many orders are unanswered as may be
    kPool = 2,      // all its types are at capacity
    kCapacity = 3,  // the type that can be had first is
    kFailed = 4,    // a start of that type has failed
};

// Why the claim is of its class.
enum class ClassReason : uint8_t {
    kNone = 0,       // its pool has no classes
    kBalance = 1,    // the first class of which its account has anything
    kNoAccount = 2,  // free: no account, or one that is not configured
    kNoBalance = 3,  // free: its account has nothing of any class
    kFanout = 4,     // free: its account holds as many slots with these labels as it may
};

// Why it does not take another's slot.
enum class PreemptReason : uint8_t {
    kNone = 0,         // does not arise
    kForFree = 1,      // claims of the free class do not
    kDisabled = 2,     // its pool does not
    kUnits = 3,        // claims of several units do not
    kBanned = 4,       // its account itself runs something of a worse class
    kNoCandidate = 5,  // nothing that it could take runs at a worse class
    kBalance = 6,      // its account has no more than the cheapest of these has cost
    kNextTurn = 7,     // it will
};

struct Explanation {
    WaitReason reason = WaitReason::kNone;
    WaitReason obstacle = WaitReason::kNone;  // of the first in line; reason itself if that is it
    uint32_t position = 0;                    // 1 = first in line; 0 = not in line
    uint32_t waiting = 0;                     // claims in the backlog of its pool
    uint32_t units = 0;                       // that it wants
    uint32_t confirmed = 0;                   // of them, by workers
    uint64_t waited_ns = 0;
    uint64_t left_ns = shm::kNever;  // until its deadline; of a confirming one its reservation's
    // Lease row: the oldest live lease of the pool; ordered by account: of a slot with its labels.
    uint32_t holder = shm::kNoRow;

    // Over several pools: what is said here is of this one, the first that keeps it waiting; else
    // kNoRow. And how many idle slots of its pools it keeps from those behind it.
    uint32_t pool = shm::kNoRow;
    uint32_t holds_back = 0;

    // kGang, kNoManager, kPlaceholder; kBehindGang: the one behind which it waits. Rows; of its
    // placeholders those that it has, and those that it must have.
    uint32_t application = shm::kNoRow;
    uint32_t group = shm::kNoRow;
    uint32_t gang_held = 0;
    uint32_t gang_members = 0;

    // kLacks: the place of the resource of which the fewest slots have enough.
    uint32_t resource = 0;
    uint64_t wanted = 0;     // of it, at least
    uint64_t most_free = 0;  // of it, of one slot

    // Elastic pools.
    uint32_t ordered = 0;   // workers that were asked for and have not come
    uint32_t limit = 0;     // kAtQuota: workers_max if that is it, else 0; kLimit: which
    uint64_t pause_ns = 0;  // kAtQuota, kPausing: left of it; 0: no time ends it
    PauseReason pause = PauseReason::kNone;
    std::string_view type = {};  // kNoProvisioner: the cheapest, or empty; kPausing: which

    // Pools ordered by account. There `obstacle` is what else stands in its own way, and the order
    // is class, base labels (more of them first), number.
    uint8_t at_class = shm::kClasses;
    ClassReason class_reason = ClassReason::kNone;
    PreemptReason preempt = PreemptReason::kNone;
    uint32_t better = 0;       // of those before it: of a better class
    uint32_t fitting = 0;      // slots with its labels
    uint32_t fanout_max = 0;   // ClassReason::kFanout: slots that its account may hold so,
    uint32_t fanout_held = 0;  // and those that it does
    uint32_t label_limit = 0;  // kLabelLimit, kOverLimit: likewise
    uint32_t label_held = 0;
    // kLabelLimit, kOverLimit: which; kLabels: one that no slot has, or empty.
    std::string_view label = {};
};

}  // namespace dibs::core
