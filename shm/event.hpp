// shm/event.hpp -- the packets that a subscriber of events receives.
// Plain structs, so that libdibs reads them with libc alone.
//
// One packet is a head and `count` events. `lost` says how many this subscriber has missed before
// the first of them, or so far if there is none, because it did not read. Numbers grow by one from
// event to event, over all users' events; a later subscriber begins at a later number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/layout.hpp"

namespace dibs::shm {

inline constexpr uint64_t kEventsMagic = 0x53544e4544494244ULL;
inline constexpr uint32_t kEventVersion =
    3;  // 2: without types; 1: a demand had its hits in `round`
inline constexpr uint32_t kEventsOfPacket = 128;
inline constexpr uint32_t kEventSlots = 16;

// The decisions of the core in their order, then what else happens.
enum class EventKind : uint8_t {
    kResult = 0,
    kAnnounced = 1,
    kAssign = 2,
    kRevoke = 3,
    kAnswer = 4,
    kGrant = 5,
    kEnd = 6,
    kAdopted = 7,
    kLeaseGrace = 8,
    kKill = 9,
    kLeaseEnd = 10,
    kSlotGone = 11,
    kDemand = 12,
    kDrained = 13,
    kPromote = 14,
    kDemote = 15,
    kPreempt = 16,
    kRefund = 17,
    kPulled = 18,
    kSessionOpened = 19,
    kSessionEnded = 20,
    kMoreSlots = 21,  // of the event before: more of its slots
    kLost = 22,       // in no packet: what libdibs says that its head has lost
    kCreate = 23,     // decisions, too
    kStop = 24,
    kLock = 25,  // of entries of dispatched pools, with the next four
    kUnlock = 26,
    kStart = 27,
    kKillProcess = 28,
    kForget = 29,
    kApplication = 30,  // of applications, with the next two
    kTask = 31,
    kPlaceholder = 32,
};
inline constexpr uint8_t kEventKinds = 33;

namespace EventFlag {
inline constexpr uint8_t kFull = 1;       // else another user's: kind, pool, account and time
inline constexpr uint8_t kProvision = 2;  // the worker must make itself fit
inline constexpr uint8_t kVoid = 4;       // a refund to an account that is gone
}  // namespace EventFlag

struct EventHead {
    uint64_t magic;
    uint32_t version;
    uint32_t count;
    uint64_t lost;
};
static_assert(sizeof(EventHead) == 24);

struct Event {
    uint64_t number;
    uint64_t time_ns;  // of the turn, by the broker's clock
    EventKind kind;
    uint8_t flags;  // EventFlag
    Outcome outcome;
    uint8_t from_class;
    uint8_t to_class;
    uint8_t reserved0;
    Reason reason;
    uint32_t uid;  // of the session; kNoRow = none
    uint32_t pid;
    uint32_t session;
    uint32_t session_generation;
    uint16_t units;
    uint16_t slots_count;  // in `slots`
    uint32_t slot;         // number within its pool; kNoRow = none
    uint32_t round;
    uint32_t holder_pid;
    uint32_t holder_uid;    // kNoRow = none; kLeaseEnd: of the user that released it from outside
    uint32_t hit_permille;  // kDemand: of 1,000 grants, those in the turn of their claim
    uint64_t claim;
    uint64_t id;
    uint64_t fence;
    uint64_t value;
    uint64_t holder_claim;
    uint64_t holder_age_ns;
    int64_t cost[kClasses];
    union {
        uint32_t slots[kEventSlots];
        char entry[kNameMax + 1];  // of a dispatched pool, an application; slots_count is 0
    };
    char pool[kNameMax + 1];  // zero padded, here and below
    char account[kNameMax + 1];
    char type[kNameMax + 1];  // of the worker that is to be made or stopped
};
static_assert(sizeof(Event) == 408);

}  // namespace dibs::shm
