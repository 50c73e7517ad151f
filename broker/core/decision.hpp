// broker/core/decision.hpp -- defines the core's decisions:
// plain data, and its only output.
//
// A turn's decisions stand in the order in which they were made. Their lists of slots stand beside
// them in one vector, with the slots as they were at that time; a decision holds its place in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "broker/core/ids.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

// decision_fields.hpp lists the fields of each kind; here is what they mean where that is not
// plain.
enum class DecisionKind : uint8_t {
    kResult,  // of an operation
    kAnnounced,
    kAssign,      // to a worker (session); value = the claim's row
    kRevoke,      // to a worker; value not 0: its lease, of this claim, is being taken for a better
                  // one and ends at that time at the latest
    kAnswer,      // a worker's answer to the holder; reason kDone: its last one
    kGrant,       // a claim's end; value = interval; over several pools (round) one for each, the
                  // first one's is the handle, and the others stand directly behind it
    kEnd,         // a claim's end without a grant
    kAdopted,     // value = interval; then kLeaseEnd to the previous holder
    kLeaseGrace,  // to a holder: expired, grace until `value`; kNever = until its room is wanted
    kKill,        // the holder's process, once committed
    kLeaseEnd,    // to a holder; value 1: it waits again
    kSlotGone,    // its row is free again
    kDemand,      // value = waiting claims to publish (S0.34), id = oldest wait, fence = workers
                  // that may still be made, kNever: the pool is not elastic
    kDrained,     // pool (kNoRow = broker): nothing waits any more
    kPromote,     // the claim's lease pays at class `to`, no more at class `from`
    kDemote,      // likewise
    kPreempt,     // claim takes the slot of holder_claim, whose run has cost decided_amounts()
    kRefund,      // of that cost to holder_claim's account; is_void: it is gone
    kPulled,      // to a worker that asks: claim (0 = none), and holder_claim, which it is to abort
    kCreate,      // to a provisioner: make a worker of the type for this order (id, slot_number),
                  // which has so much at least; value = how many more of that are wanted
    kStop,        // to a provisioner: stop this worker, which it has made
    // Of entries of dispatched pools, for who keeps their queue; id = its number.
    kLock,
    kUnlock,
    kStart,        // a process of it, on the worker
    kKillProcess,  // of it, on the worker
    kForget,       // it, or its exited process: nothing is known of it any more
    // Of applications, to their manager if there is one; entry = the name of the application, task
    // or group, id = the application's number.
    kApplication,  // from_class = its AppState before, to_class = now; the same: `reason` is a
                   // warning
    kTask,         // that has no claim: from_class = its TaskState before, to_class = now
    kPlaceholder,  // of this group; to_class = PlaceholderNews; slot_number, value = its index
};

enum class PlaceholderNews : uint8_t {
    kBound = 0,     // it holds the slot
    kReplaced = 1,  // a task's lease has it
    kReleased = 2,  // it is not needed any more, or its time is over
    kLost = 3,      // its slot is gone
};

struct Decision {
    DecisionKind kind;
    shm::Outcome outcome = shm::Outcome::kNone;
    shm::Reason reason = shm::Reason::kOk;
    SessionId session = {};  // the session it is sent to
    PoolId pool = {};
    uint16_t tag = 0;
    uint16_t units = 0;
    ClaimNumber claim = {};
    uint64_t user_data = 0;  // the claim's, the operation's, or the slot's worker_tag
    uint64_t id = 0;         // a LeaseId or SlotId, or what the kind says
    uint64_t fence = 0;
    uint64_t value = 0;
    uint32_t round = 0;  // of a slot; of a grant over several pools how many those are
    AccountId account = {};
    TypeId type = {};
    uint32_t hit_permille = 0;  // grants in the turn of their claim
    uint32_t slot_number = 0;   // within the pool
    // Place in Core::decided_slots(), or of costs; kAnswer: index in the grant.
    uint32_t slots_begin = 0;
    uint32_t slots_count = 0;
    // Of a grant, an assignment or an order, places in Core::decided_amounts(); count 0: whole
    // slots.
    uint32_t resources_begin = 0;
    uint32_t resources_count = 0;
    uint32_t room = shm::kNoRow;
    uint32_t holder_uid = shm::kNoRow;  // of the holder of what was wanted
    uint32_t holder_pid = 0;
    bool provision = false;  // a provisionable label is missing
    bool is_void = false;    // the account is gone
    bool pledged = false;    // it has been published already
    bool may_park = false;   // of a grant: its holder may put the lease aside
    bool has_class = false;  // of a pool ordered by account: it is to_class
    uint8_t from_class = 0;
    uint8_t to_class = 0;
    uint8_t part = 0;  // of a claim over several pools: index of the pool that it is about
    ClaimNumber holder_claim = {};  // none: no holder
    uint64_t holder_age_ns = 0;
    // kAnswer: the bytes; kAssign: none, Core::payload() reads them. Valid as long as the spans
    // of the command are.
    std::span<const uint8_t> answer = {};
    std::string_view entry = {};  // its name, valid until the next turn begins
};

// So much of a resource, by its name.
struct Resource {
    std::string name;
    uint64_t amount;
};

// A slot of a decision. By the end of the turn its row may be another slot's, its number never is.
struct DecidedSlot {
    uint32_t row;
    uint32_t number;  // within the pool
};

// A lease lives again after its holder was told that it expired: its event word tells the holder.
struct Revival {
    size_t place;  // the decision that comes next
    SessionId session;
    uint32_t generation;  // of the lease
    uint16_t tag;
};

// Where the grant of a lease lies in its session's DOWN, by row.
struct HeldRoom {
    uint32_t session;
    uint32_t first;  // line
    uint32_t lines;
    uint16_t pool;  // kGrantOfSeveral: as there
    uint16_t tag;
};

}  // namespace dibs::core
