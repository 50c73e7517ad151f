// clientlib/session_tables.hpp -- the rows of a session's private tables: claims and leases,
// awaited results, announced slots, managed applications.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dibs/dibs.h"
#include "shm/layout.hpp"
#include "shm/operation.hpp"

namespace dibs::client {

inline constexpr uint32_t kNone = 0xffffffffU;

enum class TagState : uint8_t { kFree, kClaiming, kAdopting, kLive, kOver, kParked };

struct Tag {
    TagState state = TagState::kFree;
    bool abandoned = false;      // its caller has gone: a grant is released
    bool release_owed = false;   // abandoned and granted, and the ring was full
    bool cancel_owed = false;    // abandoned, and the ring was full
    bool room_owed = false;      // room_is_owed()
    bool cancelled = false;      // by its caller, which learns how that ended
    bool may_park = false;       // its release may put the lease aside: of dibs_claim
    bool parked_before = false;  // its word names this lease
    bool by_word = false;        // dibs_touch prolongs it
    uint8_t event = 0;           // LeaseEvent that is to be reaped
    uint8_t event_seen = 0;
    uint32_t next_free = kNone;  // or, of parked ones, the next of these
    uint32_t pool = 0;
    uint32_t use = 1;         // grows when the tag is freed: old tickets name nothing
    uint64_t adopted_as = 0;  // what its adoption was called: so is what its claim comes to
    uint64_t gave_up = 0;     // whose lease was given back: it may have been granted again
    bool requeue = false;     // its claim may wait again: its completion stays reserved
    uint64_t was_lease = 0;   // before its claim waited again
    uint64_t was_fence = 0;
    uint64_t asked_ticks = 0;  // of a claim in a batch: when it was submitted; 0: it is not counted
    uint32_t units = 0;
    uint32_t room = shm::kNoRow;
    int end_code = 0;
    uint64_t user_data = 0;
    uint64_t lease = 0;
    uint64_t fence = 0;
    uint64_t first_fence = 0;  // of its grant; the fence of a take is later
    uint64_t claim = 0;
    uint64_t interval_ns = 0;
    uint64_t until_ns = 0;
    uint64_t touched_ticks = 0;  // the last touch; 0: none
};

struct Answer {
    uint64_t user_data = 0;
    uint64_t sent_ns = 0;  // of a keepalive
    dibs_lease lease = {};
    uint32_t next_free = kNone;
    uint32_t use = 1;
    shm::Op op = shm::Op::kNop;
    bool pending = false;
    bool discarded = false;  // its caller has gone
    bool new_slot = false;   // an announcement of a slot that is not among the session's
    uint64_t slot_name = 0;  // of an announcement
    uint32_t answer_max = 0;
    uint32_t parts = 0;
};

// A slot that this session has announced.
struct Offered {
    uint64_t slot = 0;
    uint64_t name = 0;        // slot_name()
    uint32_t answer_max = 0;  // of its pool
    uint32_t parts = 0;       // of it at a time
};

// An application that this session manages, or asks to.
struct ManagedApp {
    uint64_t number = 0;  // until the result is there: of its answer, app_of_answer()
    char name[DIBS_NAME_MAX + 1] = {};
};

// A queue of fixed capacity over memory of the session.
template <typename T>
struct Queue {
    T* items = nullptr;
    uint32_t capacity = 0;
    uint32_t first = 0;
    uint32_t count = 0;

    [[nodiscard]] bool full() const { return count == capacity; }
    void push(const T& item) {
        items[(first + count) % capacity] = item;
        ++count;
    }
    T pop() {
        const T item = items[first];
        first = (first + 1) % capacity;
        --count;
        return item;
    }
};

}  // namespace dibs::client
