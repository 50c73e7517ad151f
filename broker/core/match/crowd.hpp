// broker/core/match/crowd.hpp -- defines claims that are alike, slots that are alike, and a pass.
//
//   Crowd    a pool's waiting claims that are alike (account, labels, units), by number: one look
//            decides for all of them
//   Stall    a pool's slots with the same labels: the idle ones in the order in which they became
//            idle, the leased ones in the order of their grants, and by class and cost
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "broker/core/ledger/tenant.hpp"
#include "broker/core/match/claim_line.hpp"

namespace dibs::core {

struct Ends {
    uint32_t head = shm::kNoRow;
    uint32_t tail = shm::kNoRow;
};

struct Crowd {
    bool in_use = false;
    uint8_t waits_at = kNoClass;  // class in the pass that runs
    uint16_t units = 1;
    uint32_t pool = 0;
    uint32_t account = shm::kNoRow;
    uint32_t base = shm::kNoRow;
    uint32_t preferred = shm::kNoRow;
    uint32_t quality = 0;
    uint32_t members = 0;  // claims that are its, waiting or not
    uint32_t waiting = 0;
    uint32_t place = shm::kNoRow;  // among the pool's crowds that wait
    uint32_t fanout = 0;
    uint32_t tenant = shm::kNoRow;  // of its pool and account, once a claim of it has run
    uint8_t holds_at = kNoClass;    // idle slots back, at that class, in the pass that runs
    bool was_listed = false;        // when the last pass ended
    uint64_t examined_ns = 0;
    ClaimLine claims;  // those that wait
    // Which of the pool's first 64 stalls have its base labels, and which the preferred ones as
    // well; as of this version of their list.
    mutable uint32_t stalls_version = 0;
    mutable uint64_t served_by = 0;
    mutable uint64_t provisioned_by = 0;
};

struct Stall {
    bool in_use = false;
    bool held_back = false;  // for the pass that runs
    bool held_for_step = false;
    uint32_t held_by = shm::kNoRow;  // the crowd, while held_back
    uint32_t pool = 0;
    uint32_t place = 0;  // among the pool's stalls
    uint32_t labels = shm::kNoRow;
    uint32_t slots = 0;
    Ends idle;
    Ends leased;                                        // the one granted first at the head
    std::array<uint32_t, kClassesAndFree> leases = {};  // roots

    void let_go() {
        held_back = held_for_step = false;
        held_by = shm::kNoRow;
    }
};

// The first 64 of a pool's stalls, a bit each.
struct StallBits {
    uint32_t version = 1;  // of the list
    uint64_t idle = 0;     // has idle slots
};

// Where the pass over a pool stands. It outlives a cut turn, not the process: a successor begins
// the pass anew.
struct AccountPass {
    enum class Step : uint8_t { kStart, kProvisioned, kAny, kReprioritise, kPreempt, kSpill, kEnd };
    uint32_t pool = shm::kNoRow;
    uint8_t at_class = 0;
    Step step = Step::kStart;
    uint32_t next_account = 0;   // reprioritise: the first one not yet done
    bool stopped = false;        // no lease row, or too many unconfirmed
    bool held_for_step = false;  // of some stall
    uint8_t classes = 0;         // a bit for each that something waits at, or did
    uint8_t two_steps = 0;       // and for each whose slots are chosen in two steps
    bool requeued = false;
    // A claim that ends with the pass keeps slots, or the service, from other claims; or a claim
    // keeps slots that it would not hold back any more.
    bool kept_in_vain = false;
    // A lease that the pass demoted to free, or ended, used up fan-out: claims of its account may
    // be of a better class now than the pass took them for.
    bool fanout_freed = false;
};

}  // namespace dibs::core
