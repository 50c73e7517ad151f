// tests/naive/model.hpp -- what the naive core remembers, in the words of the glossary.
//
// No row is ever used twice: a slot's id counts announcements, a lease's id is its claim's number,
// a session's id counts openings. What has ended is erased, but for the fences of ended leases.
// Everything is public; the journal generator looks at it to choose commands that mean something.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/core/command.hpp"
#include "tests/naive/gang_model.hpp"

namespace dibs::naive {

using Labels = std::set<std::string>;
using Money = std::array<int64_t, shm::kClasses>;  // micro-units, P0 first

inline constexpr uint8_t kFreeClass = shm::kClasses;
inline constexpr uint64_t kTakesMax = uint64_t{1} << 60U;  // of one lease

// A pool's slots and claims have more to remember where its order is *account*; in other pools
// these fields keep their first values.
struct Account {
    std::string name;
    uint32_t place = 0;
    bool is_configured = false;
    Money rate = {};
    Money balance = {};
    TimeNs charge_max_ns = 0;
    uint32_t fanout_max = 0;
    std::vector<std::pair<std::string, uint32_t>> label_limits;
    bool free_tasks_disabled = false;
    uint64_t used_us = 0;  // microseconds of slots that its leases have held
};

// A kept slot is reserved without a claim: after a retriable refusal, until its time (S0.25).
// A shared one has parts, which are leased.
// An ordered one has no worker yet.
// A placeholder's is held for a member of a gang, who has not come yet.
enum class SlotIs {
    kIdle,
    kReserved,
    kKept,
    kLeased,
    kRecovering,
    kUnknown,
    kShared,
    kOrdered,
    kPlaceholder
};

struct Slot {
    uint64_t id = 0;
    uint32_t pool = 0;
    uint32_t number = 0;
    SlotIs is = SlotIs::kRecovering;
    uint64_t idle_place = 0;         // while idle: counts how often slots have become so
    uint32_t session = shm::kNoRow;  // its worker's; none in a counted pool
    uint64_t worker_tag = 0;
    std::string name;
    uint32_t attribute_blocks = 0;
    bool is_protected = false;
    bool is_unqualified = false;
    bool is_draining = false;
    bool is_drained = false;     // by an administrator: protected until that is taken back
    bool has_confirmed = false;  // its present assignment
    bool is_taken_back = false;  // recovering from a reservation that its worker has not answered
    bool only_waits_for_admission = false;
    bool is_collected = false;      // from an expired lease; its worker has not said ready since
    bool holder_is_killed = false;  // recovering under a lease whose holder is being killed
    bool is_reported_idle = false;  // meanwhile
    uint32_t round = 0;
    uint64_t claim = 0;  // number, while reserved or leased
    TimeNs kept_until_ns = 0;
    Labels labels;
    TimeNs confirmed_ns = 0;
    TimeNs modified_ns = 0;
    uint64_t promised_to = 0;     // a claim's number
    bool is_unconfirmed = false;  // reported: its worker has not said that it runs its claim
    TimeNs assigned_ns = 0;
    uint64_t abort = 0;  // reported: the claim that its worker is to abort first
    Vector capacity;     // of a pool with resources
    uint32_t parts_max = UINT32_MAX;
    std::optional<uint64_t> part_of;  // a slot's id
    Vector part;                      // what it has of that
    uint64_t part_for = 0;            // the claim that it was made for
    uint64_t fence = 0;               // of its last lease
    // Of elastic pools.
    TimeNs idle_since_ns = 0;
    shm::OrderState order = shm::OrderState::kNone;
    uint32_t type = shm::kNoRow;  // its place among types
    TimeNs boot_until_ns = shm::kNever;
    Vector wanted;  // ordered: what its worker is to have at least
    uint64_t wanted_width = 0;
    bool is_make_told = false;  // to the present provisioner
    bool is_stop_told = false;  // to any
    // Of dispatched pools.
    uint64_t entry = 0;  // whose process is alive here; 0: none
    bool is_held = false;
    bool is_broken = false;  // its probes have failed for too long
    TimeNs probe_ns = 0;     // the last good one began
    TimeNs came_ns = 0;      // it was reported first; `confirmed_ns` is of its last report
    std::optional<PlaceholderName>
        placeholder;  // whose it is, also while a member is to replace it
};

// Of a queue that is kept elsewhere.
inline constexpr uint64_t kNoWorker = UINT64_MAX;
enum class EntryIs { kAbsent, kQueued, kLocked, kRunning, kComplete, kCancelled };
enum class Operation { kNone, kLock, kUnlock, kKill };

struct Entry {
    uint64_t id = 0;
    uint64_t number = 0;  // counts its pool's new entries, from 1: its place in order of arrival
    uint32_t pool = 0;
    std::string name;
    EntryIs is = EntryIs::kQueued;
    Operation operation = Operation::kNone;
    bool is_supervisor = false;
    bool is_hopeless = false;  // a kill of its process has failed
    int32_t priority = 1;
    std::optional<std::set<uint32_t>> types;  // their places; none: any
    uint32_t lock_count = 0;
    // A process: alive on a worker, or exited.
    bool has_process = false;
    bool is_starting = false;     // nobody has reported it yet
    uint64_t worker = kNoWorker;  // a slot's id, while alive
    TimeNs exited_ns = shm::kNever;
    TimeNs event_ns = 0;              // it was reported last, or named by a reading
    TimeNs changed_ns = shm::kNever;  // it was changed here; kNever: it was not
};

struct Claim {
    uint64_t number = 0;
    uint32_t session = 0;
    uint16_t tag = 0;
    uint16_t units = 0;
    uint32_t pool = 0;
    std::vector<core::PoolUnits> also;  // the further pools of one over several
    uint64_t user_data = 0;
    TimeNs deadline_ns = shm::kNever;
    TimeNs interval_ns = 0;
    core::Key key = {};
    bool is_impatient = false;
    bool is_cold = false;
    int32_t priority = 1;
    bool wants_part = false;
    Vector least;
    Vector most;
    uint32_t offer = 0;  // accepted: its slot's number + 1
    uint32_t payload_blocks = 0;
    uint32_t meta_blocks = 0;
    uint64_t turn = 0;  // that it came in
    bool is_confirming = false;
    TimeNs reserved_until_ns = 0;
    std::vector<uint64_t> slots;  // in the order in which they were taken
    std::string account;          // empty = none
    Labels base;
    Labels provisionable;
    shm::PreemptMode preempt_mode = shm::PreemptMode::kAtOnce;
    TimeNs preempt_grace_ns = 0;
    bool requeue = false;
    bool by_word = false;
    TimeNs enqueued_ns = 0;
    TimeNs confirmed_ns = 0;
    uint8_t served_class = kFreeClass;
    Money carried = {};  // what its run costs before it begins
    bool is_promised = false;
    uint64_t abort = 0;  // whom it preempted
    bool is_locked = false;
    uint64_t application = 0;  // of an ask or of a task's claim: its number
    std::string task;
    bool is_held_back = false;  // by its application: in no backlog

    [[nodiscard]] bool is_ask() const { return application != 0 && task.empty(); }
};

// The units of this pool that it wants; 0: none.
inline uint16_t units_in(const Claim& claim, uint32_t pool) {
    if (claim.pool == pool) return claim.units;
    for (const core::PoolUnits& other : claim.also)
        if (other.pool == pool) return other.units;
    return 0;
}
inline std::vector<uint32_t> pools_of(const Claim& claim) {
    std::vector<uint32_t> pools = {claim.pool};
    for (const core::PoolUnits& other : claim.also)
        pools.push_back(other.pool);
    return pools;
}

struct Lease {
    uint64_t claim = 0;  // its claim's number, and its id
    uint32_t session = 0;
    uint16_t tag = 0;
    uint32_t pool = 0;
    uint64_t user_data = 0;
    uint64_t fence = 0;
    std::map<uint32_t, uint64_t> fences;  // in each of its pools
    core::Key key = {};
    TimeNs interval_ns = 0;  // granted; 0 = bound to its holder's life
    TimeNs expires_ns = shm::kNever;
    TimeNs granted_ns = 0;
    bool by_word = false;  // its word prolongs it, too
    uint64_t touched = 0;  // what that said at the last look
    bool is_in_grace = false;
    bool is_uncollected = false;   // lazy: expired
    bool is_being_killed = false;  // strict: its holder; or what has outlived it
    bool is_outlived = false;      // its holder is dead, and its tree is not
    bool is_revoking = false;      // it pays no more, and counts nowhere
    bool may_park = false;         // its holder may put it aside and take it again
    bool is_parked = false;
    bool is_wanted = false;  // found taken as it was recalled
    uint64_t takes = 0;      // since its grant; the fence of the last is so far behind `fence`
    TimeNs grace_until_ns = 0;
    std::vector<uint64_t> slots;
    uint32_t meta_blocks = 0;
    Claim was;  // its claim, as it was granted
    uint8_t account_class = kFreeClass;
    Money cost = {};
};

struct EndedLease {
    uint64_t fence = 0;
    bool row_used_again = false;
};

struct Session {
    uint32_t uid = 0;
    uint32_t pid = 0;
    uint16_t tags_max = 0;
    std::string account;
    TimeNs opened_ns = 0;
    bool is_outlived = false;  // its process is dead, and its tree is not
};

struct Totals {
    uint64_t accepted = 0;
    uint64_t requeued = 0;
    uint64_t granted = 0;
    uint64_t expired = 0;
    uint64_t cancelled = 0;
    uint64_t rejected = 0;
    uint64_t turned_away = 0;
    uint64_t released = 0;
    uint64_t refused = 0;
    uint64_t hits = 0;
    uint64_t skipped = 0;
    uint64_t unqualified = 0;
    uint64_t kills = 0;
    uint64_t kills_failed = 0;
    bool operator==(const Totals&) const = default;
};

// A kind of worker that a provisioner makes for an elastic pool.
struct Type {
    std::string name;
    uint32_t pool = 0;
    uint64_t cost = 1;
    std::string provider_type;
    bool is_preemptible = false;
    bool is_going = false;
    std::string quota_group;
    Labels labels;                   // in a pool ordered by account
    uint32_t session = shm::kNoRow;  // its provisioner's
    TimeNs backoff_ns = 0;
    TimeNs failed_until_ns = 0;
    TimeNs capacity_until_ns = 0;
};

// What an elastic pool remembers, by the letters of S1.
struct Elastic {
    uint64_t limit = 0;                 // M
    uint64_t within_quota = 0;          // Q
    std::optional<uint64_t> quota_met;  // with so many workers
    TimeNs quota_until_ns = 0;
    TimeNs overload_ns = shm::kNever;
    bool is_overload_new = false;
    TimeNs throttle_until_ns = 0;
    TimeNs everything_until_ns = 0;
    int64_t headroom_told = 0;
    uint64_t gathered = 0;  // the newest claim that was seen to wait
    TimeNs gather_until_ns = 0;
    // Of dispatched pools.
    enum class Phase { kReading, kStale, kServing } phase = Phase::kReading;
    TimeNs stale_until_ns = 0;  // 0: not begun
    TimeNs queue_read_ns = 0;   // when the last reading that worked began
    uint64_t entries_seen = 0;
};

struct Pool {
    std::string name;
    std::string required_label;
    core::PoolConfig config;  // its views are not to be used: the two strings above are
    std::vector<std::pair<std::string, uint64_t>> vector;  // of each of its slots
    Vector create_min;
    bool is_leaving = false;  // takes no claims, and is deleted when it is unused
    uint32_t number_next = 0;
    uint64_t fence_next = 1;
    bool is_gone = false;
    TimeNs gone_ns = 0;
    bool is_draining = false;
    bool drain_told = false;
    int64_t demand_published = -1;
    TimeNs last_dispatch_ns = 0;
    TimeNs saturated_until_ns = 0;
    Totals totals;
    Elastic elastic;
};

// What anybody can see of a pool: S0.33.
struct PoolCounters {
    uint64_t idle = 0;
    uint64_t waiting = 0;
    uint64_t confirming = 0;
    uint64_t unconfirmed = 0;
    uint64_t reserved = 0;
    uint64_t leased = 0;
    uint64_t recovering = 0;
    uint64_t unknown = 0;
    uint64_t shared = 0;
    uint64_t ordered = 0;
    uint64_t parts = 0;  // of slots: they count as slots, and as leased or recovering
    uint64_t slots = 0;
    uint64_t parked = 0;  // of the leased
    uint64_t wanted = 0;
    uint64_t last_dispatch_ns = 0;
    uint64_t saturated_until_ns = 0;  // or not
    int64_t demand_published = -1;
    Totals totals;
    bool operator==(const PoolCounters&) const = default;
};

struct Model {
    TimeNs now = 0;
    uint64_t turn = 0;
    bool is_draining = false;
    bool drain_told = false;
    uint64_t claims_seen = 0;
    uint64_t slots_seen = 0;
    uint64_t idle_seen = 0;
    uint32_t sessions_seen = 0;
    uint32_t arena_freed_in_turn = 0;
    std::vector<Pool> pools;
    std::map<uint32_t, Session> sessions;
    std::map<uint64_t, Slot> slots;
    std::map<uint64_t, Claim> claims;  // that wait or confirm, by number
    std::map<uint64_t, Lease> leases;  // that live, by their claim's number
    std::map<uint64_t, EndedLease> ended;
    std::map<std::string, Account> accounts;
    uint32_t types_seen = 0;
    std::map<uint32_t, Type> types;
    uint64_t entries_seen = 0;
    std::map<uint64_t, Entry> entries;             // by id
    std::map<uint64_t, std::string> errors;        // of workers, by the claim's number
    std::map<uint64_t, Application> applications;  // by number
    struct Pulled {
        uint64_t slot;
        uint64_t user_data;
        Labels labels;  // that came with the pull
    };
    std::vector<Pulled> pulled;  // workers to be told
    bool pass_once_more = false;
    bool has_passed = false;             // a pass of this turn has begun
    std::set<uint64_t> granted_by_pass;  // leases that this turn's passes have granted
};

}  // namespace dibs::naive
