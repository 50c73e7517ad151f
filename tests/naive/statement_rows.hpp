// tests/naive/statement_rows.hpp -- what the judge of the statements follows: pools, slots, claims.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/naive/journal.hpp"

namespace dibs::naive {

struct SlotPlace {
    uint32_t pool = kNoLabel;
    uint32_t number = 0;
    uint64_t incarnation = 0;
};

enum class SlotPhase {
    kIdle,      // perhaps protected or not qualified: not ready then
    kReserved,  // for a claim whose worker has been asked
    kKept,      // its worker could not yet: reserved until its time
    kLeased,
    kAway,    // its worker must speak first
    kUnsure,  // cannot be told from outside
};

// How it became idle.
enum class News {
    kNone,
    kReady,          // its worker said so
    kReadmitted,     // it had been protected or had lacked the required label
    kSwept,          // its reservation's time was over
    kNewGeneration,  // released or said ready within its reservation's time
    kSameName,       // announced by a name whose reservation's time was not over
    kLate,           // confirmed too late, and so released
    kUnmarked,       // its confirmation had removed the mark that protected it
};

struct JudgedSlot {
    uint32_t pool = kNoLabel;
    uint32_t number = 0;
    uint64_t incarnation = 0;
    uint32_t session = kNoLabel;  // its worker's
    std::string name;
    std::vector<std::string> labels;
    bool is_protected = false;
    bool is_drained = false;  // by an administrator
    bool leaves = false;      // withdrawn, or its pool was made smaller: no new grant
    SlotPhase phase = SlotPhase::kAway;
    uint64_t claim = 0;
    bool has_confirmed = false;
    bool is_late = false;      // it has, after its claim's deadline
    bool is_asked = false;     // away, and its worker may still confirm
    bool is_revoked = false;   // its worker has been told so, in this round
    bool is_unmarked = false;  // was protected when its worker confirmed
    uint32_t round = 0;
    uint64_t fence = 0;
    core::TimeNs until_ns = 0;  // of its last reservation
    // When it became idle, as far as it can be told: between these.
    uint64_t idle_from = 0;
    uint64_t idle_to = 0;
    News news = News::kNone;
};

// Somewhere in this turn: one that a death made idle, or a timer.
inline constexpr uint64_t kThisTurn = UINT64_MAX;

enum class LeaseEnd { kRelease, kBroken, kDeath, kOther };

enum class ClaimPhase { kWaiting, kReserved, kLeased };

struct JudgedClaim {
    uint64_t number = 0;
    uint32_t label = kNoLabel;
    uint32_t session = kNoLabel;
    uint32_t pool = kNoLabel;
    uint16_t tag = 0;
    uint16_t units = 1;
    bool may_wait = true;
    core::TimeNs arrival_ns = 0;
    core::TimeNs enqueued_ns = 0;  // as it says itself
    core::TimeNs deadline_ns = shm::kNever;
    core::TimeNs asked_ns = 0;  // when its workers were
    core::TimeNs until_ns = 0;  // of its reservation
    uint64_t turn = 0;          // in which it came
    uint64_t turn_of_return = 0;
    ClaimPhase phase = ClaimPhase::kWaiting;
    bool has_returned = false;    // from a reservation
    bool is_killed = false;       // its lease's holder
    bool has_interval = false;    // its lease expires
    bool may_park = false;        // its lease's holder may put it aside
    uint64_t takes = 0;           // and has taken it again so often
    std::vector<uint32_t> slots;  // numbers
    uint32_t holder = kNoLabel;   // of its lease: may change
    uint16_t holder_tag = 0;
};

struct JudgedPool {
    uint32_t label = kNoLabel;
    bool lives = false;
    bool by_arrival = true;
    bool drains = false;
    bool leaves = false;     // it is deleted when it is unused
    bool is_drained = true;  // has been told so since it began to drain
    PoolSpec spec;
    std::map<uint32_t, JudgedSlot> slots;                // by number
    std::map<std::string, core::TimeNs> reserved_names;  // of slots that went: until when
    bool has_chosen = false;                             // a slot for a claim, ever
    int64_t published = -1;
    uint32_t backlog_max = 0;         // the highest in this turn
    uint32_t demands = 0;             // published in this turn
    core::TimeNs oldest_wait_ns = 0;  // as published
    core::TimeNs last_dispatch_ns = 0;
    bool idle_changed = false;      // in this turn
    bool reservation_over = false;  // in this turn
    bool claim_moved = false;       // back from a reservation, in this turn
};

}  // namespace dibs::naive
