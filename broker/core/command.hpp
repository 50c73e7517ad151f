// broker/core/command.hpp -- defines the core's commands:
// plain data, and its only input.
//
// A command has no time of its own: it takes effect at the time of the turn that applies it
// (Core::begin_turn). Spans point into the caller's memory and are read during the call only.
// Sessions are rows: the caller opens a session before that session's first command and reports its
// death once. docs/scheduling.md says what each command does in each state, docs/scenarios.md how a
// journal writes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "broker/core/dispatch_command.hpp"
#include "broker/core/gang_command.hpp"
#include "broker/core/ids.hpp"
#include "broker/core/settings.hpp"
#include "broker/core/worker_command.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

using Key = std::array<uint8_t, 16>;
using OrderToken = std::array<uint8_t, 16>;

struct SessionOpen {
    uint32_t uid = 0;
    uint32_t gid = 0;
    uint32_t pid = 0;
    uint64_t start_time = 0;
    uint16_t tags_max = shm::kTagsMax;
    // Geometry of its segments: kept for the process that maps them next, opaque to the core.
    uint32_t submission_entries = 0;
    uint32_t completion_entries = 0;
    uint32_t up_payload_size = 0;
    uint32_t down_payload_size = 0;
    std::string_view account = {};  // of its claims that name none; empty = none
    uint64_t tree = 0;              // its control group, kept as the sizes are; 0: it has none
};

// The session ends.
struct SessionDeath {
    SessionId session = 0;
};

// Its process is dead, and other processes of its tree are not: its death comes when they are.
struct HolderDied {
    SessionId session = 0;
};

// Terms that only pools ordered by account use, except the time of enqueuing.
struct ClaimTerms {
    std::string_view account = {};  // empty = the session's
    std::span<const std::string_view> labels = {};
    std::span<const std::string_view> provisionable = {};
    shm::PreemptMode preempt_mode = shm::PreemptMode::kAtOnce;
    TimeNs preempt_grace_ns = 0;
    bool requeue = false;
    TimeNs enqueued_ns = shm::kNever;   // kNever = the turn's time, here and below
    TimeNs confirmed_ns = shm::kNever;  // event time
};

// A pool that may serve a routed claim.
struct RouteMember {
    PoolId pool = {};
    int32_t priority = 0;        // lower first
    uint32_t cap = shm::kNoRow;  // slots at most, beside its own limit; kNoRow: no other one
    uint32_t idle_seen = 0;      // slots, by somebody else
};

// How the pool of a claim is chosen (router.hpp).
struct Route {
    static constexpr TimeNs kCoolDownNs = 1'000'000'000;
    std::span<const RouteMember> members = {};  // at most kSetMembersMax count
    uint32_t group_cap = shm::kNoRow;           // slots of all members at most; kNoRow: any
    uint8_t version = 3;
    TimeNs cool_down_ns = kCoolDownNs;  // a member whose backlog is full is saturated for so long
};

// So many slots of a pool.
struct PoolUnits {
    PoolId pool = {};
    uint16_t units = 1;
};

struct Claim {
    SessionId session = 0;
    uint16_t tag = 0;  // the session's handle: free, and below its tags_max
    uint16_t units = 1;
    PoolId pool = 0;
    uint64_t user_data = 0;
    TimeNs timeout_ns = shm::kNever;  // 0 = now or not at all
    // kNever: now + timeout_ns. Else an instant, which may have passed.
    TimeNs deadline_ns = shm::kNever;
    TimeNs interval_ns = 0;  // 0 = the lease is bound to its holder's life
    Key key = {};            // all zero = none
    bool when_busy_given = false;
    shm::WhenBusy when_busy = shm::WhenBusy::kWait;
    std::span<const uint8_t> payload = {};
    uint32_t room = shm::kNoRow;  // where the grant's data goes; opaque to the core
    uint32_t room_lines = 0;
    shm::Reason refusal = shm::Reason::kOk;  // not kOk: rejected for a reason found before
    const ClaimTerms* terms = nullptr;       // null = no terms
    int32_t priority = 1;                    // higher first, in a pool ordered by it; below 1: held
    bool by_word = false;  // the lease's interval is kept by its touch word, too (Touch)
    // A part of one slot: at least so much, and at most, where it has that. Both empty: whole
    // slots. What a vector does not name is 0; an empty `most` is `least`.
    std::span<const Amount> least = {};
    std::span<const Amount> most = {};
    std::string_view meta = {};  // for who inspects, at most kMetaMax bytes
    // Accepts an offer: a part of the slot with this number + 1, now or not at all. 0 = of any.
    uint32_t offer = 0;
    // Not null: the first member that takes it has it, and `pool` says nothing.
    const Route* route = nullptr;
    // Further pools, seven at most: it is served in all at once, or waits in all. Empty: in one.
    std::span<const PoolUnits> also = {};
    const MemberOf* member = nullptr;  // null: of no application

    [[nodiscard]] TimeNs deadline_at(TimeNs now_ns) const {
        if (deadline_ns != shm::kNever) return std::min(deadline_ns, shm::kNever - 1);
        return timeout_ns != 0 && timeout_ns < shm::kNever - now_ns ? now_ns + timeout_ns
                                                                    : shm::kNever;
    }
    // A claim that has waited elsewhere before may say since when. It orders nothing.
    [[nodiscard]] bool brings_its_time() const {
        return terms != nullptr && terms->enqueued_ns != shm::kNever;
    }
};

// A claim whose grant was published before the turn that applies it (Core::pledge).
struct PledgedClaim {
    const Claim* claim = nullptr;
};

struct Cancel {
    SessionId session = 0;
    uint16_t tag = 0;
    uint64_t user_data = 0;
};

struct Release {
    SessionId session = 0;
    bool broken = false;  // fail: its worker must say ready even where a release would do
    LeaseId lease = 0;
    uint64_t fence = 0;
    uint64_t user_data = 0;
};

struct Keepalive {
    SessionId session = 0;
    LeaseId lease = 0;
    uint64_t fence = 0;
    TimeNs interval_ns = 0;  // 0 = as granted
    uint64_t user_data = 0;
};

// The lease becomes this session's, whose user is its holder's.
struct Adopt {
    SessionId session = 0;
    uint16_t tag = 0;  // as a claim's
    LeaseId lease = 0;
    uint64_t fence = 0;
    uint64_t user_data = 0;
    uint32_t room = shm::kNoRow;  // as a claim's
    uint32_t room_lines = 0;
    shm::Reason refusal = shm::Reason::kOk;
};

// The core has decided to kill a lease's holder, and the kill has failed. If the holder dies later,
// its session's death says so.
struct KillFailed {
    LeaseId lease = 0;
};

// What the word of a lease said that may be parked (shm/layout.hpp, LeaseWord). `recalled`: its
// wanted bit has been set before; a parked one has ended by that, at its holder's wish.
struct Harvest {
    LeaseId lease = 0;
    uint64_t takes = 0;  // by its holder since the grant; never less than said before
    bool parked = false;
    bool recalled = false;
};

// What the touch word of a lease said (shm/layout.hpp) that is about to expire: its timer is due.
// Another value than at the last look prolongs it by its interval, from its old expiry.
struct Touch {
    LeaseId lease = 0;
    uint64_t value = 0;
};

// Ends or prolongs what another session has, for an administrator or for a process of the owner's
// user. The holder is notified; the caller gets the returned reason.
struct Steer {
    enum class Kind : uint8_t { kRelease, kRenew, kCancel };
    Kind kind = Kind::kRelease;
    LeaseId lease = 0;
    TimeNs interval_ns = 0;   // kRenew; 0 = as granted
    SessionId session = 0;    // kCancel: the claim is its
    uint16_t tag = 0;         // kCancel: by this tag,
    ClaimNumber number = {};  // and has this number
};

// A claim is announced again.
struct UpdateClaim {
    ClaimNumber claim = {};
    bool account_given = false;
    std::string_view account = {};
    bool labels_given = false;
    std::span<const std::string_view> labels = {};
    bool provisionable_given = false;
    std::span<const std::string_view> provisionable = {};
    bool priority_given = false;
    int32_t priority = 0;
    TimeNs event_ns = shm::kNever;
    uint64_t user_data = 0;
};

// Drain of a pool, or with pool == kNoRow of the broker; of a pool's slot if that has a number.
struct Drain {
    PoolId pool = {};
    bool on = true;
    uint32_t number = shm::kNoRow;
    // Of a pool: only if no claim waits and every lease has been expired for so long; then the
    // leases end, too. kNever = whatever there is.
    TimeNs if_idle_for_ns = shm::kNever;
};

}  // namespace dibs::core
