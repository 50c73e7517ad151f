// shm/layout.hpp -- every byte that two processes share: STATE, BOARD, UP and DOWN.
// STATE has the rows, the BOARD counters, UP and DOWN are the segments of a session.
//
// Rules. Fixed-width integers, explicit padding, no pointers: a place inside a segment is an index
// or an offset. Who may write is decided by mapping: STATE and BOARD are written by the broker's
// turn alone, UP by its client, DOWN by the broker. Above every struct stands its one writer. The
// same tables, byte by byte, are in docs/shm-layout.md; tests/abi compares the two. Once a version
// has been released, a change of any offset raises kLayoutVersion.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dibs::shm {

inline constexpr uint32_t kLayoutVersion = 1;
inline constexpr size_t kLineSize = 64;
inline constexpr uint32_t kNoRow = 0xffffffffU;  // "no row": index fields never hold 0 for it
inline constexpr uint64_t kNever = 0xffffffffffffffffULL;  // a time that does not come

// Limits that are part of the layout; configuration may lower what it may, never raise.
inline constexpr uint32_t kNameMax = 63;        // bytes, without a terminator
inline constexpr uint32_t kPayloadMax = 16384;  // bytes of one claim's payload
inline constexpr uint32_t kMetaMax = 255;       // bytes of a claim's text for who inspects
inline constexpr uint32_t kOptionsMax = 16;     // key=value options of one claim
inline constexpr uint32_t kLabelsMax = 32;      // labels of one slot or claim
inline constexpr uint32_t kUnitsMax = 256;      // slots of one claim
inline constexpr uint32_t kTagsMax = 1024;      // claims and leases of one session
inline constexpr uint32_t kClasses = 5;         // P0 .. P4; 5 is the free bucket
inline constexpr uint32_t kPoolsMax = 4096;
inline constexpr uint32_t kSetsMax = 16;                     // pool sets
inline constexpr uint32_t kSetMembersMax = 16;               // pools of one set
inline constexpr uint32_t kResourcesMax = 6;                 // of one pool's slots
inline constexpr uint32_t kResourceNameMax = 31;             // bytes, without a terminator
inline constexpr uint32_t kTypeWordMax = 31;                 // bytes of a type's attribute
inline constexpr uint64_t kAmountMax = 9007199254740992ULL;  // 2^53
inline constexpr uint32_t kGangMax = 256;                    // placeholders of one application
inline constexpr uint32_t kEndedAppsMax =
    1024;  // ended applications of one user that are remembered
inline constexpr uint32_t kHistogramBuckets = 640;  // 16 per octave, 40 octaves

// ------------------------------------------------------------------------------------------
// State machines. Every value is part of the layout.

// Slot. Each arrow names what makes the transition: B broker's pass, W worker, H holder, T timer, D
// a death. A row that is free has no slot.
//
//            W announce                    B select                W confirm (last of its claim)
//   (free) ────────────► recovering ◄──┐  ┌────────► reserved ───────────────► leased
//                          │  ▲        │  │             │ │                      │
//              W ready     ▼  │ B hold │  │   T ttl     │ │ W refuse, D claim    │ H release
//                         idle ────────┼──┘  unconfirmed│ │ ended: B revoke      │ W done
//                          ▲ ▲         │                ▼ ▼                      │ T expiry
//                          │ └─────────┼── unknown ◄────┘ recovering             │
//                W speaks  │           └──────────────────────────────────── recovering
//                          └──── counted pool: leased ── H release, T expiry ──► idle
//   any ── D worker, W withdraw ──► (free)
//
// Of slots with resources: B cuts a part of an idle slot, or of a shared one, which is a slot row
// of its own. A part never is idle: where a slot would become so, the part is back in its slot.
//
//   idle ── B first part ──► shared ── the last part is back ──► idle, recovering, (free)
//   a part of a counted slot: (free) ── B ──► leased ── H release, T expiry ──► (free)
//   a part of a worker's: (free) ── B ──► reserved, from there on as the worker's slots; but (free)
//   for idle
//
// Of elastic pools: an order is the slot of a worker that a provisioner (P) is asked for.
//
//   (free) ── B create ──► ordered ── W announce with the order ──► recovering, idle
//   ordered ── P answers anything but created, T boot time-out ──► (free)
enum class SlotState : uint8_t {
    kFree = 0,
    kIdle = 1,        // in its pool's ready queue
    kReserved = 2,    // held by the broker for a claim, or kept after a retriable refusal
    kLeased = 3,      // under a live lease (or one in its grace)
    kRecovering = 4,  // being cleaned, not yet ready, protected or unqualified; or, with a
                      // holder, under a lease whose holder is being killed
    kUnknown = 5,     // its worker has not spoken in time and must say
    kShared = 6,      // parts of it are leased; the rest is free
    kOrdered = 7,     // asked of a provisioner, and its worker has not announced it yet
};

// Claim. A row lives while the claim waits or is reserved; a granted claim goes on as its lease.
//
//   (free) ── accepted ──► waiting ── B select ──► reserved ── all confirmed ──► granted: lease
//                           │   ▲                    │  │
//                           │   └── refused (try     │  └── deadline, cancel, hard refusal ─► ended
//                           │       again), ttl ─────┘
//                           └── deadline, cancel, reject, drain ──► ended
//
// In a pool ordered by account its row stays beside its lease:
//
//   waiting, reserved ── granted ──► running ── its lease ends ──► ended
//      ▲ │                           ▲ │
//      │ └── has preempted ─► promised ─ the slot is free
//      └──────── its lease is taken, and it waits again ──┘
//
// Of a task of an application that is not to be served yet, or by a placeholder alone:
//
//   (free) ── accepted ──► held ── its placeholder is there ──► reserved, or granted
//                           ▲ │ ── its application holds no more placeholders ──► waiting
//                           │ └── deadline, cancel, reject, its application ends ──► ended
//                           └──── refused (try again), ttl ──── reserved
enum class ClaimState : uint8_t {
    kFree = 0,
    kWaiting = 1,   // in the backlog
    kReserved = 2,  // slots chosen, their workers asked
    kRunning = 3,   // granted, in a pool ordered by account: it may have to wait again
    kPromised = 4,  // has preempted: the slot is its as soon as it is free
    kHeld = 5,      // in no backlog: its application holds it back
};

// Lease.
//
//   (free) ── grant ──► live ── T expiry ──► grace ── T grace over ──► ended (row free)
//                        │  ▲                  │                        ▲
//                        │  └── keepalive ─────┘     lazy: expired ─────┤ room wanted, or
//                        ├── H release, W done, D holder or worker ─────┤ keepalive ──► live
//                        └── revoked ──► revoking ── T grace over ──────┘
//   strict: live ── T expiry ──► killing ── death proved ──► ended
//   of a tree: any but killing ── D holder, and its tree lives ──► live, or revoking: strict
enum class LeaseState : uint8_t {
    kFree = 0,
    kLive = 1,
    kGrace = 2,     // expired; its holder has been told and has until grace_until_ns
    kExpired = 3,   // lazy mode: expired and uncollected; a keepalive revives it
    kRevoking = 4,  // preempted, in its grace
    kKilling = 5,   // strict mode: kill sent, death not yet proved; its slots are recovering
};

// Session:  (free) ── handshake ──► open ── D death, violation, close ──► dying ──► (free)
//                                     │                                     ▲
//                                     └─ D holder: its tree lives ─► outlived ─ D its tree
// `dying` lasts as many turns as returning what the session held takes. `outlived`: the process is
// dead and the last one of its tree is not: its leases are strict ones, nothing else of it is left.
enum class SessionState : uint8_t { kFree = 0, kOpen = 1, kDying = 2, kOutlived = 3 };

// Pool:  (free) ── configured ──► open ◄── undrain ── drain ──► draining
//        open, draining ── deleted, no longer in use ──► going ── its slots are gone ──► (free)
// `going` lasts as many turns as returning its slots takes. A free row keeps name and fences: a
// pool that is made again under the name has the row again, if no other pool has taken it.
enum class PoolState : uint8_t { kFree = 0, kOpen = 1, kDraining = 2, kGoing = 3 };

// What a lease lets happen when a better claim wants its slot.
enum class PreemptMode : uint8_t { kAtOnce = 0, kWithGrace = 1, kForbidden = 2 };
enum class PoolKind : uint8_t { kCounted = 0, kWorker = 1 };
enum class PoolOrder : uint8_t { kArrival = 0, kPriority = 1, kAccount = 2 };
enum class WhenBusy : uint8_t { kWait = 0, kReject = 1, kCold = 2 };
enum class ExpiryMode : uint8_t { kCooperative = 0, kStrict = 1, kLazy = 2 };
enum class Behaviour : uint8_t { kRun = 0, kHold = 1, kDrain = 2 };
// An entry of the queue of a dispatched pool, as somebody else keeps it.
//
//   (free) ── reported ──► queued ── lock ──► locked ── reported ──► running, complete
//      ▲                     ▲                  │
//      │                     └───── unlock ─────┘   any but complete ── cancel ──► cancelled
//      └── forgotten, or no more in the queue (absent, as long as a process of it is known)
enum class EntryState : uint8_t {
    kFree = 0,
    kAbsent = 1,  // not in the queue; a process of it is or was there
    kQueued = 2,
    kLocked = 3,
    kRunning = 4,
    kComplete = 5,
    kCancelled = 6,
};
// What the scheduler has asked for, of an entry, and nobody has ended yet.
enum class EntryOp : uint8_t { kNone = 0, kLock = 1, kUnlock = 2, kKill = 3 };
// Of a dispatched pool: its queue was never read; locks of an earlier scheduler are being mended;
// it serves.
enum class DispatchPhase : uint8_t { kReading = 0, kStale = 1, kServing = 2 };
// Application: a group of tasks with one life, and perhaps a gang. A manager (M) is the session
// that keeps it.
//
//   new ── submit ──► submitted ── accept ──► accepted ── no groups, or a task is not new ─►
//   running
//    │                   └ reject ► rejected ─► failed   │ else                              ▲ │
//    └── M recover ─► recovering ── M recovered ► accepted └──► reserving ── the gate opens ─┤ │
//                                                                │ ▲ placeholders come      │ │
//                             T time-out, soft: placeholders go ─┘ └─────► resuming ────────┘ │
//                             T time-out, hard ──► failing                  M complete ◄──────┘
//   accepted, reserving, resuming, running, submitted ── M fail, manager gone ──► failing ─► failed
//   accepted, reserving, resuming, running ── kill ──► killing ──► killed
//   running ── M complete ──► completed
//   any ── M remove, all tasks have ended; or too many ended ones are remembered ──► going ──►
//   (free)
//
// New, submitted, rejected and resuming are passed through within a turn.
enum class AppState : uint8_t {
    kFree = 0,
    kNew = 1,
    kSubmitted = 2,
    kAccepted = 3,
    kReserving = 4,  // its placeholders take slots
    kResuming = 5,   // its reservation has timed out: soft
    kRunning = 6,
    kCompleted = 7,
    kFailing = 8,  // its claims that wait are being ended
    kFailed = 9,
    kKilling = 10,  // likewise, and its leases
    kKilled = 11,
    kRejected = 12,
    kRecovering = 13,  // after a cold start: its manager lists what exists
    kGoing = 14,       // removed: its rows are being freed, its id is another one's
};
// What a reservation's time-out does: the application runs without, or fails.
enum class GangStyle : uint8_t { kSoft = 0, kHard = 1 };
// Task. Those that are scheduled have a claim.
//
//   (free) ── added, claimed ──► new ── its claim is served or waits ──► scheduling
//   scheduling ── B select ──► allocated ── granted ──► bound ── its lease ends ──► completed
//   any ── M complete ──► completed      bound ── revoked ──► killed     bound ── lost ──► failed
//   new, scheduling, allocated ── cancelled ──► killed, ── its claim ends otherwise ──► failed
//
// Scheduling and allocated are its claim's states: the row says new.
enum class TaskState : uint8_t {
    kFree = 0,
    kNew = 1,
    kScheduling = 2,
    kAllocated = 3,
    kBound = 4,
    kCompleted = 5,
    kKilled = 6,
    kRejected = 7,
    kFailed = 8,
};
// What has become of the order that a slot is or was; kNone: its worker came by itself.
enum class OrderState : uint8_t { kNone = 0, kAsked = 1, kCreated = 2, kAnnounced = 3 };

// The phase of the turn's log. idle ── first edit ──► open ── commit ──► committed ── stores
// done ──► idle. Recovery: open → copy the images back; committed → repeat the stores.
enum class LogPhase : uint32_t { kIdle = 0, kOpen = 1, kCommitted = 2 };

// ------------------------------------------------------------------------------------------
// STATE: rows. One writer: the broker's turn, through core::Edit. Mapped by broker generations
// and fsck. A row is one to seven lines, the hot line first.

// First in every row. `touched` = turn << 8 | lines of this row whose image the turn has saved.
struct RowHead {
    uint64_t touched;
    uint32_t generation;  // incarnation of the row; grows when the row is freed
    uint32_t free_next;   // next free row of the table, or kNoRow
};

struct alignas(64) SlotRow {
    // line 0: selection, hold, return
    RowHead head;
    SlotState state;
    uint8_t flags;  // SlotFlag
    uint16_t pool;
    uint32_t holder;       // claim row while reserved (kNoRow: kept without a claim, until
                           // reserved_until_ns), lease row under a lease, else kNoRow
    uint64_t fence;        // of its last grant
    uint32_t holder_next;  // next slot of the same holder
    uint32_t ready_next;   // ready queue: towards the tail
    uint32_t ready_prev;   // ready queue: towards the head
    uint32_t session;      // of its worker, or kNoRow (counted)
    uint32_t number;       // within its pool, never used again
    uint32_t round;        // which assignment: grows with each reservation
    uint64_t idle_order;   // place in the order in which slots became idle
    // line 1: what travels with a grant
    uint64_t worker_tag;         // the worker's own name for it; reported: the claim to abort, or 0
    uint64_t reserved_until_ns;  // of a reservation kept without a claim
    uint32_t attributes;         // arena chain, or kNoRow
    uint32_t attributes_size;    // bytes
    uint32_t room;               // assignment room in the worker's DOWN, in lines
    uint32_t label_set;          // row, or kNoRow
    uint32_t part_of;            // of a part: its slot; else kNoRow
    uint32_t parts;              // that there are of it
    uint32_t parts_max;          // at a time
    uint32_t type;               // of its worker: row, or kNoRow; elastic pools only
    OrderState order;
    uint8_t stop_told;   // role of the provisioner that was told to make or stop it; 0: none
    uint8_t broken;      // 1: its probes have failed for too long; dispatched pools only
    uint8_t index;       // with `group`: of the placeholder in it
    uint32_t order_uid;  // of the provisioner that was asked
    union {              // rows, or kNoRow
        uint32_t entry;  // whose process is alive on it; dispatched pools only
        uint32_t group;  // a placeholder of which holds it, or was replaced and may come back
    };
    Behaviour behaviour;  // kHold, kDrain: by an administrator, or about to be stopped
    uint8_t reserved1[3];
    // line 2: the outside's view
    uint64_t idle_since_ns;
    uint64_t probe_ns;      // when its last good probe began; 0: none. Dispatched pools only
    uint64_t confirmed_ns;  // event time of the last report
    uint64_t modified_ns;   // when a report last changed it
    uint64_t announced_ns;
    uint64_t boot_until_ns;   // its start has failed; kNever: not by time, or it has been idle
    uint8_t order_token[16];  // ordered: what its worker hands back
    // line 3
    uint8_t name_size;
    char name[63];
};
static_assert(sizeof(SlotRow) == 256);

namespace SlotFlag {
inline constexpr uint8_t kProtected = 1;    // not admitted to the ready queue
inline constexpr uint8_t kUnqualified = 2;  // lacks the pool's required label
inline constexpr uint8_t kDraining = 4;     // no new grant; leaves when it is free
inline constexpr uint8_t kConfirmed = 8;    // reserved, and its worker has confirmed
inline constexpr uint8_t kTakenBack = 16;  // recovering, unknown: asked, and has not answered since
inline constexpr uint8_t kSaidReady = 32;  // recovering, though its worker has said ready:
                                           // protected, unqualified, or held over
inline constexpr uint8_t kCollected = 64;  // recovering: taken from an expired lease for a claim
inline constexpr uint8_t kAssigned = 128;  // leased, and its reported worker has not confirmed
}  // namespace SlotFlag

// Beside the slot row of the same number, where its pool's slots have resources: by the pool's
// order of them.
struct alignas(64) SlotVectorRow {
    // line 0
    RowHead head;
    uint64_t amount[kResourcesMax];  // of a part: what it has; of an order: what its worker is to
                                     // have at least; else what no part has
    // line 1
    uint64_t capacity[kResourcesMax];  // what it has; of a part nothing
    uint32_t width;                    // of an order: so many more are wanted side by side
    uint8_t reserved0[12];
};
static_assert(sizeof(SlotVectorRow) == 128);

struct alignas(64) ClaimRow {
    // line 0: the pass
    RowHead head;
    ClaimState state;
    uint8_t flags;  // ClaimFlag
    uint16_t pool;
    uint32_t session;
    uint64_t arrival;      // the claim's number: order of ingestion, unique for ever
    uint64_t deadline_ns;  // strictly after it the claim has expired; kNever = none
    uint64_t user_data;
    uint32_t first_slot;  // chain of reserved slots, or kNoRow
    uint16_t units;
    uint16_t confirmed;     // of the reserved slots
    uint16_t tag;           // the session's handle for it
    uint8_t account_class;  // class at which it was served; 5 = free
    uint8_t attempts;       // reservations that came to nothing; stays at 255
    int32_t priority;       // higher first in a pool ordered by it, below 1 = held
    // line 1: what it brought
    uint8_t key[16];       // idempotency key, all zero = none
    uint64_t interval_ns;  // keepalive interval asked for; 0 = bound to its holder's life
    uint64_t reserved_until_ns;
    uint32_t payload;  // arena chain, or kNoRow
    uint32_t payload_size;
    uint32_t account;  // row, or kNoRow
    uint32_t room;     // grant room in the session's DOWN, in lines; kNoRow = none
    uint32_t room_lines;
    uint32_t label_set;      // base labels: row, or kNoRow
    uint32_t preferred_set;  // provisionable labels: row, or kNoRow
    ExpiryMode mode;
    uint8_t reserved0[3];
    // line 2: when it came, and what pools ordered by account keep
    uint64_t enqueued_ns;
    uint64_t confirmed_ns;      // event time of the last report
    uint64_t preempt_grace_ns;  // from the decision to take its lease for a better claim to its end
    uint32_t carried_cost;      // arena chain: what its run has cost before it began, or kNoRow
    uint32_t lease;             // row while running, else kNoRow
    uint32_t meta;              // arena chain: its text for who inspects, or kNoRow
    uint32_t meta_size;
    uint32_t several_first;  // with kSeveral: its row in the pool that it names first,
    uint32_t several_next;   // and in the pool that it names behind this one, or kNoRow
    uint32_t task;           // of an application: its row; kNoRow: none
    uint32_t group;          // without a session: of whose missing placeholders it is; else kNoRow
    uint8_t reserved1[4];
    uint8_t preempt_mode;  // PreemptMode
    uint8_t reserved2[3];
};
static_assert(sizeof(ClaimRow) == 192);

namespace ClaimFlag {
inline constexpr uint8_t kNowOnly = 1;  // timeout 0: granted in the pass it came in, or rejected
inline constexpr uint8_t kReject = 2;   // when busy: reject
inline constexpr uint8_t kCold = 4;     // when busy: "make your own and register it"
inline constexpr uint8_t kRequeue = 8;  // preempted: waits again in its old place
inline constexpr uint8_t kByWord = 16;  // its lease's interval is kept by a touch word, too
inline constexpr uint8_t kPart = 32;    // wants a part of one slot
// In an elastic pool: workers for it are there or are being made. It stands before all claims
// without the mark, keeps the mark while it confirms, and has it again if it waits again.
inline constexpr uint8_t kLocked = 64;
inline constexpr uint8_t kSeveral = 128;  // over several pools: a row in each, of one number
}  // namespace ClaimFlag

// Beside the claim row of the same number, of a claim with ClaimFlag::kPart.
struct alignas(64) ClaimVectorRow {
    // line 0
    RowHead head;
    uint64_t least[kResourcesMax];
    // line 1
    uint64_t most[kResourcesMax];
    uint32_t offer;       // of an accept: its slot's number + 1; 0 = of any slot
    uint32_t offer_slot;  // its row, or kNoRow: there was none
    uint8_t reserved0[8];
};
static_assert(sizeof(ClaimVectorRow) == 128);

struct alignas(64) LeaseRow {
    // line 0: release, keepalive, expiry
    RowHead head;
    LeaseState state;
    ExpiryMode mode;
    uint16_t pool;
    uint32_t session;
    uint64_t fence;
    uint64_t expires_ns;   // strictly after it the lease has expired; kNever = bound to its holder
    uint64_t arrival;      // of its claim: its number
    uint64_t interval_ns;  // granted; 0 = bound to its holder's life
    uint32_t first_slot;
    uint16_t units;
    uint16_t tag;
    // line 1: whose, since when
    uint8_t key[16];
    uint64_t granted_ns;
    uint64_t kept_ns;  // last keepalive
    uint64_t user_data;
    uint64_t grace_until_ns;
    uint32_t account;  // row, or kNoRow
    uint32_t room;     // grant room in the session's DOWN, in lines
    uint32_t room_lines;
    uint8_t account_class;  // at which it pays; 5 = free
    uint8_t flags;          // LeaseFlag
    uint8_t several;        // over so many pools, a row in each, of one number; 0: over one
    uint8_t of_task;        // 1: of a task of an application
    // line 2: pools ordered by account
    // Paid so far by each slot, per class, micro-units. At the class at which it pays now: less the
    // microsecond of broker time, so that it need not be stored again as time goes on.
    int64_t cost[5];
    // and of parked leases
    // By its holder since the grant, as far as seen; counts with kTakesSeen. Over several pools,
    // which are never parked: the row in the pool that its claim named next, or kNoRow, | that in
    // the one named first << 32
    uint64_t takes;
    // with kWanted: since when; with kMeta, which is of no parked lease, its claim's text for who
    // inspects: arena chain | size << 32
    uint64_t wanted_ns;
    uint64_t touched;  // with kByWord: what its touch word said when it was last read
};
static_assert(sizeof(LeaseRow) == 192);

namespace LeaseFlag {
inline constexpr uint8_t kKillFailed = 1;  // killing: its holder could not be killed
inline constexpr uint8_t kTaken = 2;       // for a better claim: it pays no more, counts nowhere
inline constexpr uint8_t kMayPark = 4;     // its holder may put it aside: its word is in use
inline constexpr uint8_t kParked = 8;      // its word was found free when it was last looked at
inline constexpr uint8_t kWanted = 16;     // its word has the wanted bit: it comes by the ring
inline constexpr uint8_t kTakesSeen = 32;  // it has been taken again: `takes` counts
inline constexpr uint8_t kByWord = 64;     // has an interval, which its touch word keeps, too
inline constexpr uint8_t kMeta = 128;      // has a text for who inspects
}  // namespace LeaseFlag

struct alignas(64) SessionRow {
    // line 0
    RowHead head;
    SessionState state;
    uint8_t reserved0;
    uint16_t tags_max;  // claims and leases at once
    uint32_t uid;
    uint32_t pid;
    uint32_t account;  // row, or kNoRow
    uint32_t claims;   // waiting or reserved
    uint32_t leases;
    uint32_t slots;                // announced
    uint32_t dying_cursor;         // next tag to return while dying
    uint64_t submission_consumed;  // entries of the submission ring taken, committed
    uint64_t completion_tail;      // entries of the completion ring posted, committed
    // line 1
    uint64_t start_time;  // of the process, in clock ticks since boot: tells pids apart
    uint64_t opened_ns;
    uint32_t gid;
    uint32_t submission_entries;
    uint32_t completion_entries;
    uint32_t up_payload_size;
    uint32_t down_payload_size;
    uint32_t hand_deaths;    // deaths running with an entry of it in hand
    uint64_t hand_sequence;  // of the entry that was last in hand; not in the log
    uint64_t tree;  // its control group: the inode of its folder, never used twice; 0: none
    uint8_t reserved1[8];
};
static_assert(sizeof(SessionRow) == 128);

struct alignas(64) PoolRow {
    // line 0: the pass
    RowHead head;
    PoolState state;
    PoolKind kind;
    PoolOrder order;
    uint8_t flags;  // PoolFlag
    uint32_t ready_head;
    uint32_t ready_tail;
    uint32_t idle;
    uint32_t waiting;      // claims in the backlog
    uint32_t confirming;   // claims whose workers have been asked
    uint32_t unconfirmed;  // slots whose workers have been asked and have not answered
    uint32_t leased;
    uint64_t fence_next;
    uint64_t idle_order_next;
    // line 1: the other states, and what each grant counts
    uint32_t slots;
    uint32_t reserved;
    uint32_t recovering;
    uint32_t unknown;
    uint32_t kills_total;         // holders to be killed, decided
    uint32_t kills_failed_total;  // of them: those that could not be
    uint64_t last_dispatch_ns;
    uint64_t granted_total;
    uint64_t accepted_total;
    uint64_t hit_total;       // claims granted in the turn they came in
    uint64_t released_total;  // leases ended by their holder's release, fail, cancel or death
    // line 2: what is rarer
    uint32_t number_next;      // of slots
    uint32_t slots_wanted;     // counted: slots that its configuration asks for
    int64_t demand_published;  // -1 = never
    uint64_t expired_total;
    uint64_t cancelled_total;
    uint64_t rejected_total;     // after acceptance
    uint64_t turned_away_total;  // rejected before acceptance
    uint64_t refused_total;      // refusals by workers
    uint32_t skipped_total;      // admissions stopped because the slot is protected
    uint32_t unqualified_total;  // admissions stopped because a required label is missing
    // line 3: configuration
    uint32_t units_max;
    uint32_t backlog_max;
    uint32_t unconfirmed_max;
    uint32_t payload_max;
    uint32_t answer_max;      // bytes of a worker's answer
    uint32_t attributes_max;  // bytes of one slot's attributes
    WhenBusy when_busy;
    ExpiryMode mode;
    uint8_t reserved0[2];
    uint32_t quantum_us;  // that a lease has while others wait; 0: none may be parked
    uint64_t reservation_ttl_ns;
    uint64_t retry_after_ns;
    uint64_t interval_max_ns;
    uint64_t grace_ns;
    // line 4
    uint8_t name_size;
    char name[63];
    // line 5
    uint8_t required_label_size;
    char required_label[63];
    // line 6: pools ordered by account, and those that change while the broker runs
    int64_t promote_threshold;  // micro-units
    int64_t demote_threshold;
    uint64_t account_expiry_ns;  // of reported workers that hold nothing
    uint64_t request_age_max_ns;
    uint64_t queue_timeout_ns;
    uint64_t requeued_total;  // leases that ended with their claims waiting again
    uint32_t drained;         // slots whose behaviour is to drain
    uint32_t parked;          // leases with LeaseFlag::kParked
    // Routed claims go to others first before it. Of a free row since when it is that: sessions
    // older than that may know it.
    uint64_t saturated_until_ns;
    // line 7: resources of its slots
    uint32_t resources;  // arena chain: their names, each ended by a zero byte; or kNoRow
    uint8_t resources_size;
    uint8_t resources_count;
    uint16_t gang_max;                 // placeholders of one application; configuration
    uint32_t shared;                   // slots
    uint32_t parts;                    // of slots; they count in `slots` and their states, too
    uint64_t capacity[kResourcesMax];  // of each slot; of a worker's that says nothing of it
};
static_assert(sizeof(PoolRow) == 512);

namespace PoolFlag {
inline constexpr uint8_t kReleaseIsReady = 1;  // a released worker slot is idle without a "ready"
inline constexpr uint8_t kDrainTold = 2;       // this drain's end has been decided
inline constexpr uint8_t kNoPreemption = 4;    // ordered by account: no claim is preempted
inline constexpr uint8_t kTransient = 8;       // goes when it is no longer used
inline constexpr uint8_t kLeaving = 16;        // takes no claims, and goes as soon as it is unused
inline constexpr uint8_t kParks = 32;          // leases of plain claims may be parked
inline constexpr uint8_t kResources = 64;      // its slots have resources
inline constexpr uint8_t kEndsLeases = 128;    // found idle, it drains: its expired leases end
}  // namespace PoolFlag

// A kind of worker that a provisioner makes for an elastic pool.
struct alignas(64) TypeRow {
    // line 0
    RowHead head;
    uint8_t state;  // 1: there is one
    uint8_t flags;  // TypeFlag
    uint16_t pool;
    uint32_t session;            // its provisioner, or kNoRow
    uint64_t cost;               // the cheapest is made first, then by name
    uint64_t backoff_ns;         // pause after the last failed start; 0: none since a lease ended
    uint64_t failed_until_ns;    // none is made before it: a start has failed
    uint64_t capacity_until_ns;  // none is made before it: at capacity
    uint32_t tag;                // its provisioner's own number of it
    uint8_t role;                // how often a session has come to provide it: from 1, modulo 255
    uint8_t reserved0;
    uint16_t label_set;  // what its workers have, plus 1; 0: no label that is known before
    // line 1
    uint8_t name_size;
    char name[63];
    // line 2: what an answer "at capacity" may name
    uint8_t provider_type_size;
    char provider_type[31];
    uint8_t quota_group_size;
    char quota_group[31];
};
static_assert(sizeof(TypeRow) == 192);

namespace TypeFlag {
inline constexpr uint8_t kPreemptible = 1;
inline constexpr uint8_t kGoing = 2;  // none is made; deleted, it goes with its last worker
}  // namespace TypeFlag

// Beside the pool row of the same number: an elastic pool, unless workers_max is 0.
struct alignas(64) ElasticRow {
    // line 0: state
    RowHead head;
    uint32_t limit;         // M: units that may run or be locked
    uint32_t within_quota;  // Q: workers that were there at quota; 0: quota was not met yet
    uint32_t quota_below;   // at quota with so many workers or more, before quota_until_ns
    uint32_t ordered;       // slots in that state
    uint64_t overload_ns;   // when its provisioner was last overloaded; kNever: it was not
    uint64_t quota_until_ns;
    uint64_t everything_until_ns;  // all its types are at capacity before it
    // line 1
    uint64_t throttle_until_ns;  // no worker is made before it
    uint64_t quiet_ns;           // configuration, from here on
    uint64_t quota_error_ns;
    uint64_t capacity_error_ns;
    uint64_t create_throttle_ns;
    uint64_t idle_timeout_ns;
    uint64_t boot_timeout_ns;
    uint32_t quota_estimate;  // 0: none
    uint32_t workers_max;
    uint32_t workers_min;
    uint32_t spare;  // unallocated workers beyond what locked claims need
    // line 2
    uint32_t creates_max;  // orders without an answer at a time; 0: any number
    uint8_t overloaded;    // 1: overload_ns is news to the limit
    uint8_t dispatch;      // 1: its claims are entries, its workers are known by reports
    DispatchPhase phase;   // of a dispatched pool, as all that follows
    uint8_t reserved0;
    uint32_t supervisor_permille;    // of the limit: supervisors at most; 0: no limit
    uint32_t attempts_max;           // locks, before the unlock that cancels; 0: no limit
    uint32_t price_factor_permille;  // of the cheapest type's cost: the dearest; 0: any
    uint32_t headroom_told;          // with its demand
    uint64_t entry_next;             // the next entry's number
    uint64_t queue_read_ns;          // when the last reading of its queue began; 0: none
    uint64_t stale_until_ns;         // in that phase: it ends then at the latest
    uint64_t stale_lock_timeout_ns;  // configuration
    uint64_t probe_timeout_ns;
    // line 3: where its slots have resources
    uint64_t gather_ns;        // configuration
    uint64_t gather_until_ns;  // nothing is ordered for claims before it
    uint64_t gathered;         // the newest claim that has been seen to wait
    uint8_t reserved1[40];
    // line 4
    uint64_t create_min[kResourcesMax];  // configuration: no worker is ordered that is smaller
    uint8_t reserved2[16];
};
static_assert(sizeof(ElasticRow) == 320);

// An entry of a dispatched pool's queue, and what is known of its process.
struct alignas(64) EntryRow {
    // line 0
    RowHead head;
    EntryState state;
    EntryOp op;
    uint8_t flags;  // EntryFlag
    uint8_t reserved0;
    uint16_t pool;
    uint8_t reserved1[2];
    int32_t priority;     // higher first, below 1 = held
    uint32_t lock_count;  // locks that have succeeded
    uint64_t types;       // that suit it, a bit for each type's row; all ones: any
    uint64_t number;      // order in which the pool's entries were first seen
    uint64_t exited_ns;   // of its process; kNever: alive
    uint32_t worker;      // of its live process: slot row, or kNoRow
    uint32_t asked;       // operations and starts decided of it; it wraps
    // line 1
    uint8_t name_size;
    char name[63];
    // line 2
    uint64_t event_ns;    // of the last report of it
    uint64_t changed_ns;  // when its queue state was last changed here; kNever: it was not
    uint8_t reserved3[48];
};
static_assert(sizeof(EntryRow) == 192);

namespace EntryFlag {
inline constexpr uint8_t kSupervisor = 1;
inline constexpr uint8_t kProcess = 2;   // a process of it is known: alive, or exited
inline constexpr uint8_t kStarting = 4;  // alive because it was told to start: nobody has said so
inline constexpr uint8_t kHopeless = 8;  // its last kill has failed
}  // namespace EntryFlag

// An application, by its user and its name.
struct alignas(64) AppRow {
    // line 0
    RowHead head;
    AppState state;
    GangStyle style;
    uint8_t flags;  // AppFlag
    uint8_t reserved0;
    uint16_t pool;
    int16_t reason;   // Reason: why it failed, or was rejected
    uint64_t number;  // order in which applications and claims came
    uint32_t uid;
    uint32_t manager;               // session, or kNoRow
    uint64_t placeholder_until_ns;  // its reservation, then its unused placeholders; kNever: none
    uint64_t manager_until_ns;      // an adoption; kNever: it has a manager, or needs none
    uint8_t reserved1[8];
    // line 1
    uint64_t placeholder_timeout_ns;  // configuration
    uint64_t manager_timeout_ns;
    uint64_t created_ns;
    uint64_t ended_ns;
    int32_t priority;       // among those of its pool that is ordered by it
    uint32_t first_group;   // in the order of their definition, or kNoRow
    uint32_t tasks;         // rows
    uint32_t claims;        // of its tasks: held, waiting, reserved
    uint32_t leases;        // of its tasks
    uint32_t placeholders;  // slots that they hold, those that are being replaced included
    uint32_t tags;          // arena chain: a text of its manager's, or kNoRow
    uint32_t tags_size;
    // line 2
    uint8_t name_size;
    char name[63];
};
static_assert(sizeof(AppRow) == 192);

namespace AppFlag {
inline constexpr uint8_t kUnmanaged = 1;  // an administrator's: nobody need adopt it
inline constexpr uint8_t kGateOpen = 2;   // its gang was whole once
}  // namespace AppFlag

// A group of an application's tasks: so many of them run all or none.
struct alignas(64) GroupRow {
    // line 0
    RowHead head;
    uint8_t state;  // 1: there is one
    uint8_t reserved0[3];
    uint32_t app;
    uint32_t next;      // of its application, or kNoRow
    uint16_t members;   // at least
    uint16_t bound;     // placeholders that hold a slot, those that are being replaced included
    uint16_t replaced;  // placeholders that have been
    uint16_t reserved1;
    uint32_t claim;   // for placeholders that are missing, while reserving: row, or kNoRow
    uint64_t number;  // that claim's; 0: it has not asked yet
    uint8_t reserved2[16];
    // line 1
    uint64_t resource[kResourcesMax];  // of each; all 0: whole slots
    uint8_t reserved3[16];
    // line 2
    uint8_t name_size;
    char name[63];
};
static_assert(sizeof(GroupRow) == 192);

// A task of an application, by its name.
struct alignas(64) TaskRow {
    // line 0
    RowHead head;
    TaskState state;
    uint8_t reserved0;
    int16_t reason;  // Reason: why it failed
    uint32_t app;
    uint32_t group;    // row, or kNoRow
    uint32_t claim;    // row, or kNoRow
    uint32_t lease;    // row, or kNoRow
    int32_t priority;  // higher first, within its application
    uint64_t number;   // order in which tasks, applications and claims came
    uint8_t reserved1[16];
    // line 1
    uint8_t name_size;
    char name[63];
};
static_assert(sizeof(TaskRow) == 128);

// An account: it pays for claims. Money in micro-units: one slot costs one per microsecond.
struct alignas(64) AccountRow {
    RowHead head;
    uint8_t state;
    uint8_t flags;  // AccountFlag
    uint16_t fanout_max;
    uint32_t reserved0;
    int64_t balance[5];
    int64_t rate[5];
    uint64_t charged_ns;
    uint64_t charge_max_ns;
    uint32_t running[5];  // slots of its leases, per class
    uint32_t reserved1[2];
    uint32_t label_limits;  // arena chain, or kNoRow
    uint32_t label_limits_size;
    uint32_t held;              // slots of its leases, whatever their class
    uint64_t used_us;           // microseconds of slots, up to charged_ns
    uint64_t counted_since_ns;  // used_us begins here
    uint32_t reserved2[4];
    uint8_t name_size;
    char name[63];
};
static_assert(sizeof(AccountRow) == 256);

namespace AccountFlag {
inline constexpr uint8_t kConfigured = 1;
inline constexpr uint8_t kFreeTasksDisabled = 2;
inline constexpr uint8_t kOfFile = 4;  // the broker's file names it: one that does not deletes it
}  // namespace AccountFlag

// An interned label set. A row is in use while `references` is not 0.
struct alignas(64) LabelSetRow {
    RowHead head;
    uint32_t references;
    uint32_t hash;
    uint32_t text;  // arena chain: sorted labels
    uint32_t text_size;
    uint32_t count;
    uint32_t reserved0[7];
};
static_assert(sizeof(LabelSetRow) == 64);

// A block of the payload arena. `next` is kept while the block is in use, so that a chain taken
// from the free list is already linked and only the list's head changes.
struct alignas(64) ArenaBlock {
    uint32_t next;  // block, or kNoRow
    uint8_t bytes[508];
};
static_assert(sizeof(ArenaBlock) == 512);

// The free lists and counters of STATE. One row of three lines; line 0 is the claim path.
struct alignas(64) CountersRow {
    // line 0
    RowHead head;
    uint64_t arrival_next;
    uint32_t claims_free_head;
    uint32_t claims_free;
    uint32_t leases_free_head;
    uint32_t leases_free;
    uint64_t time_ns;     // broker time; never goes back
    uint64_t turns;       // turns that changed anything
    uint64_t fence_base;  // fences of a pool that is new begin behind it
    // line 1
    uint32_t slots_free_head;
    uint32_t slots_free;
    uint32_t sessions_free_head;
    uint32_t sessions_free;
    uint32_t arena_free_head;
    uint32_t arena_free;
    uint32_t arena_freed_head;  // freed in this turn: not to be handed out before it commits
    uint32_t arena_freed_tail;
    uint32_t arena_freed;
    uint32_t pools;
    uint8_t draining;  // the whole broker
    uint8_t reserved1[23];
    // line 2
    uint32_t apps_free_head;
    uint32_t apps_free;
    uint32_t groups_free_head;
    uint32_t groups_free;
    uint32_t tasks_free_head;
    uint32_t tasks_free;
    uint64_t reserved2[5];
};
static_assert(sizeof(CountersRow) == 192);

// One image of the undo log: the 64 bytes at `offset` of STATE as they were before the turn.
struct alignas(64) LogImage {
    uint8_t bytes[64];
};

enum class LogStoreKind : uint32_t { kCompletion = 0, kLeaseEvent = 1 };

// One store that follows the commit: a completion entry, or a lease's event word.
struct alignas(64) LogStore {
    uint8_t entry[64];  // CompletionEntry, or the event word in its first 8 bytes
    uint32_t session;
    uint32_t generation;  // of the session
    LogStoreKind kind;
    uint32_t reserved0;
    uint64_t position;  // completion index, or lease tag
    uint8_t reserved1[40];
};
static_assert(sizeof(LogStore) == 128);

// The log's head. Writer: the turn. `phase` pairs with recovery's first load.
//
// A pledge is a grant that is published before its turn: the completion stands in the log's first
// store by then, the rest here, `pledged_turn` last. It is owed while that turn has not been
// committed.
struct alignas(64) LogHead {
    std::atomic<LogPhase> phase;
    std::atomic<uint32_t> images;  // valid images; stored after the image it counts
    uint32_t stores;
    uint32_t reserved0;
    uint64_t turn;
    uint64_t pledged_turn;  // the turn that grants what has been told
    uint64_t pledged_ns;    // its time
    uint32_t pledged_pool;
    uint32_t pledged_room_lines;
    uint8_t reserved1[16];
};
static_assert(sizeof(LogHead) == 64);

// Where a table lies in STATE.
struct TablePlace {
    uint64_t offset;
    uint32_t rows;
    uint32_t row_size;
};

enum class Table : uint32_t {
    kCounters,
    kPools,
    kSessions,
    kSlots,
    kClaims,
    kLeases,
    kAccounts,
    kLabelSets,
    kSlotVectors,
    kClaimVectors,
    kTypes,
    kElastics,
    kEntries,
    kApps,
    kGroups,
    kTasks,
    kArena,
    kLogOffsets,
    kLogImages,
    kLogStores,
    kCount
};

// The head of STATE. Written once when the segment is made, except for epoch and clean; `version`
// is stored last (release) and pairs with the load of the process that opens the segment.
struct alignas(64) StateHead {
    uint64_t magic;
    std::atomic<uint32_t> version;
    uint32_t tables;
    uint64_t size;
    uint64_t epoch;  // grows by one with each broker that serves from this STATE
    uint8_t boot_id[16];
    uint64_t clean;         // 1 after an orderly stop
    uint64_t clock_offset;  // broker time − CLOCK_MONOTONIC, modulo 2^64; 0: not said
    LogHead log;
    TablePlace table[20];  // by Table
};
static_assert(sizeof(StateHead) == 448);
inline constexpr uint64_t kStateMagic = 0x4554415453424944ULL;  // "DIBSTATE"

// ------------------------------------------------------------------------------------------
// BOARD. Writer: the turn. Read by all clients, each block under its own sequence: odd while being
// written; a reader that sees the same even value before and after has a true picture.

struct alignas(64) BoardPool {
    std::atomic<uint64_t> sequence;
    uint32_t idle;              // S0 IdleReady
    uint32_t queued;            // S0 QueueLen: waiting and confirming claims
    uint32_t reserved;          // S0 ReservedCount: slots
    uint32_t confirming;        // S0 InflightCAS: claims
    uint64_t last_dispatch_ns;  // broker time of the last grant, 0 = never
    uint32_t leased;
    uint32_t recovering;
    uint32_t unknown;
    uint32_t slots;
    uint32_t parked;  // of the leased: put aside by their holders when they were last looked at
    uint32_t shared;  // slots of which parts are leased; those count in `leased`, not in `slots`
    uint64_t hits;    // claims granted in the pass they came in
};
static_assert(sizeof(BoardPool) == 64);

struct alignas(64) BoardPoolTotals {
    std::atomic<uint64_t> sequence;
    uint64_t accepted;
    uint64_t granted;
    uint64_t expired;
    uint64_t cancelled;
    uint64_t rejected;
    uint64_t released;
    uint64_t demand;  // published waiting claims (S0.34), all ones = never
};
static_assert(sizeof(BoardPoolTotals) == 64);

struct alignas(64) BoardPoolName {
    std::atomic<uint64_t> sequence;
    uint32_t units_max;
    uint16_t payload_max;  // in units of 64 bytes
    uint8_t kind;
    uint8_t state;
    uint32_t answer_max;
    uint32_t attributes_max;
    uint8_t reserved0[39];
    uint8_t name_size;
    char name[64];  // zero padded
};
static_assert(sizeof(BoardPoolName) == 128);

// An account, and what it has had of the pools that are ordered by account: by `time_ns` used_us
// microseconds of slots; since then `held` more each microsecond.
struct alignas(64) BoardAccount {
    std::atomic<uint64_t> sequence;
    uint64_t used_us;
    uint64_t time_ns;
    uint64_t counted_since_ns;
    uint64_t rate;     // of all classes: micro-slots that it may hold all the time
    uint32_t held;     // slots
    uint32_t waiting;  // claims
    uint8_t state;     // 0: no account, 1: named by claims or sessions only, 2: configured
    uint8_t name_size;
    uint8_t reserved0[14];
    char name[64];  // zero padded
};
static_assert(sizeof(BoardAccount) == 128);

// Who chooses among the members of a set.
enum class SetRank : uint8_t {
    kOrder = 0,  // its client, which claims from them in their order
    kLoad = 1,   // the broker: the client claims from the set (OpFlag::kOfSet)
};

// A pool set: its members in their order, each by its place among the pools. The sequence is the
// set's version: it changes with the set, and only then. A set that was removed has no members and
// keeps its name; `use` grows when the row becomes another set's.
struct alignas(64) BoardSet {
    std::atomic<uint64_t> sequence;
    uint32_t use;
    uint8_t members;
    uint8_t name_size;
    uint16_t pool[kSetMembersMax];  // kNoPool: there is none of that name
    SetRank rank;
    uint8_t reserved0[17];
    char name[64];  // zero padded
};
static_assert(sizeof(BoardSet) == 128);
inline constexpr uint16_t kNoPool = 0xffff;

// The name that clients put before a pool's, as in `name::pool`.
struct alignas(64) BoardCluster {
    std::atomic<uint64_t> sequence;
    uint8_t name_size;
    uint8_t reserved0[23];
    char name[32];  // zero padded
};
static_assert(sizeof(BoardCluster) == 64);

// A log-linear histogram of nanoseconds: shm/histogram.hpp says which bucket is which.
struct alignas(64) BoardHistogram {
    std::atomic<uint64_t> bucket[kHistogramBuckets];
};
static_assert(sizeof(BoardHistogram) == 5120);

struct alignas(64) BoardHead {
    uint64_t magic;
    std::atomic<uint32_t> version;
    uint32_t pools_max;
    uint64_t size;
    std::atomic<uint64_t> epoch;
    std::atomic<uint64_t> turns;
    std::atomic<uint32_t> pools;  // blocks in use; pairs with the readers' acquire
    std::atomic<uint32_t> sessions;
    std::atomic<uint64_t> net_found_work;  // re-rings for an unread entry: of its own user and root
    std::atomic<uint64_t> time_ns;         // broker time of the last turn that published
    BoardHistogram self_reported;          // sum of what the clients recorded, clamped
    // then pools_max × BoardPool, BoardPoolTotals, BoardPoolName, BoardHistogram (dispatch),
    // kSetsMax × BoardSet, BoardCluster, and as many BoardAccount, by row, as `size` has room for
};
static_assert(sizeof(BoardHead) == 64 + 5120);
inline constexpr uint64_t kBoardMagic = 0x4452414f42424944ULL;  // "DIBBOARD"

// ------------------------------------------------------------------------------------------
// Rings: 64-byte entries, the sequence inside the line. The entry at index i of a ring of n
// entries carries sequence = i + 1 for the i-th entry ever (i counts from 0 and never wraps).
// The producer stores the sequence last (release); it pairs with the consumer's acquire load.

enum class Op : uint8_t {
    kNop = 0,
    kClaim = 1,
    kCancel = 2,     // tag
    kRelease = 3,    // id = lease, fence
    kFail = 4,       // release: what was granted is broken; its worker must say ready again
    kKeepalive = 5,  // id = lease, fence, interval
    kAnnounce = 6,   // a slot: payload = name, labels, attributes
    kReady = 7,      // id = slot, round
    kConfirm = 8,    // id = slot, round, payload = answer
    kRefuse = 9,     // id = slot, round, code; kTryAgain says retriable
    kDone = 10,      // id = slot, round, payload = answer; kThenReady
    kWithdraw = 11,  // id = slot
    kProtect = 12,   // id = slot; kOn
    kClose = 13,
    kAdopt = 14,        // id = lease, fence, tag: it becomes this session's
    kProvide = 15,      // payload = a type's name: kOn takes the role of its provisioner
    kProvisioned = 16,  // id = order, units = the answer (ProvisionAnswer), tag = ProvisionScope
    kApplication = 17,  // payload: what is asked of which application (schemas/application.fbs)
};

namespace OpFlag {
inline constexpr uint8_t kQuiet = 1;      // a completion only if it fails
inline constexpr uint8_t kTryAgain = 2;   // kRefuse: retriable
inline constexpr uint8_t kThenReady = 4;  // kDone, kAnnounce: and ready at once
inline constexpr uint8_t kOn = 8;         // kProtect, kProvide; kAnnounce: protected
inline constexpr uint8_t kOfSet = 8;      // kClaim: `pool` is a set ranked by load (set_of_claim)
inline constexpr uint8_t kReject = 16;    // kClaim: when busy, reject
inline constexpr uint8_t kCold = 32;      // kClaim: when busy, cold
inline constexpr uint8_t kWait = 64;      // kClaim: when busy, wait whatever the pool says
inline constexpr uint8_t kByWord = 128;   // kClaim: its tag's touch word keeps the interval, too
}  // namespace OpFlag

// Client → broker. Writer: the client. Untrusted: copied once, then checked.
struct alignas(64) SubmissionEntry {
    std::atomic<uint64_t> sequence;
    uint64_t user_data;
    Op op;
    uint8_t flags;  // OpFlag
    uint16_t pool;
    uint16_t units;
    uint16_t tag;             // kClaim, kCancel, kAdopt: the session's handle, < tags_max
    uint32_t payload_offset;  // in the payload area of UP
    uint32_t payload_size;
    uint64_t id;      // claim: timeout_ns (kNever = for ever); else lease or slot id
    uint64_t fence;   // claim: interval_ns; lease ops: fence; worker ops: round
    uint8_t key[16];  // claim: idempotency key; keepalive: interval (8); refuse: code (8)
};
static_assert(sizeof(SubmissionEntry) == 64);

enum class CompletionKind : uint8_t {
    kResult = 0,  // of an operation: code
    kClaim = 1,   // a claim's one outcome
    kAssign = 2,  // to a worker: id = slot, fence = round, data = the claim's payload
    kRevoke = 3,  // to a worker: id = slot, fence = round: say ready when it is clean
    kSlot = 4,    // to a worker: announced; id = slot
    kNotice =
        5,  // to a worker: its lease is being taken, value = ns that are left; kRevoke follows
    kCreate = 6,       // to a provisioner: make a worker for this order; id = order
    kStop = 7,         // to a provisioner: stop the worker that was made for this order; id = order
    kApplication = 8,  // to a manager: its application, id = number, has another state: value =
                       // AppState, reason; a task that failed without a claim: kTask
};

// How a claim ended. kBrokerLost is said by the library alone.
enum class Outcome : uint8_t {
    kNone = 0,
    kGranted = 1,
    kExpired = 2,
    kCancelled = 3,
    kRejected = 4,
    kBrokerLost = 5
};

// Why. One list for outcomes and results, so that a code has one meaning everywhere.
enum class Reason : int16_t {
    kOk = 0,
    kAlreadyEnded = 1,  // the same (id, fence) again: nothing to do
    kMayPark = 2,       // of a grant: the holder may put the lease aside
    kByWord = 3,        // of an adoption: its interval is kept by the tag's touch word, too
    kUnknownPool = -1,
    kTooManyUnits = -2,
    kBacklogFull = -3,
    kArenaFull = -4,
    kBusy = -5,  // none idle, and the claim would not wait
    kCold = -6,  // none idle: make your own and register it
    kDraining = -7,
    kDuplicate = -8,   // its key is in use; id names the first claim
    kLimit = -9,       // leases or claims of this session or user
    kPayload = -10,    // malformed or too large for the pool
    kNotFound = -11,   // no such lease, claim or slot
    kStale = -12,      // fence or round of an earlier grant
    kNotHolder = -13,  // another session's
    kState = -14,      // not allowed in this state
    kRefused = -15,    // by the worker; value = its code
    kNoRoom = -16,     // the session's DOWN has no room for the grant
    kNameInUse = -17,
    kTablesFull = -18,  // rows of the broker
    kHolderGone = -19,
    kWorkerLost = -20,
    kExpiredLease = -21,
    kDone = -22,       // the worker said done
    kMalformed = -23,  // an operation that is not one
    kNotAllowed = -24,
    kRevoked = -25,       // ended from outside, or taken for a better claim
    kStateLost = -26,     // the broker's state failed its checks; it has begun anew
    kUnkillable = -27,    // strict expiry: the broker could not kill this process
    kEnded = -28,         // the lease has ended: nothing to adopt
    kAdopted = -29,       // another session of its user has adopted the lease
    kUnavailable = -30,   // no slot of the pool is as large; id = the place of the first resource
    kVector = -31,        // what it wants is no vector of the pool's resources
    kOfferExpired = -32,  // an accept: the slot has not so much any more, or is not open
    kElsewhere = -33,     // a target of another cluster
    kAppEnded = -34,      // its application has ended, or is ending
    kReservationTimeOut = -35,  // not all placeholders of a gang came in time
    kReservationFailed = -36,   // they cannot come: its pool drains or goes
    kManagerGone = -37,         // nobody has adopted the application in time
};

// Broker → client. Writer: the turn.
struct alignas(64) CompletionEntry {
    std::atomic<uint64_t> sequence;
    uint64_t user_data;
    CompletionKind kind;
    Outcome outcome;
    Reason reason;
    uint16_t units;  // of a claim that was not granted: its pool, or kNoPool
    uint16_t tag;
    uint64_t id;      // lease or slot id; duplicate: the first claim's number
    uint64_t fence;   // fence, or round
    uint64_t value;   // granted: interval_ns; rejected: retry_after_ns, worker's code, rule.hpp;
                      // held by another: how long, in ns
    uint64_t claim;   // the claim's number (arrival)
    uint32_t data;    // offset in the payload area of DOWN; kNoRow = none
    uint32_t holder;  // uid of the holder of what was wanted; data size for kCreate, and kAssign
                      // (then behind it `tag` bytes: what its part has); granted: the preferred
                      // labels that every slot has, a bit each
};
static_assert(sizeof(CompletionEntry) == 64);

// The grant room of a claim in DOWN: a GrantHead, then `units` regions of `stride` bytes, each a
// GrantSlot, its attributes (key=value, each ended by a zero byte) and, at attributes_max bytes
// behind the GrantSlot, two answers of its worker: what it confirmed with, and in the second half
// of what is left of the region what it said done with, because the holder may be reading the first
// one then. Written before the completion or event that announces it; held until the lease, or the
// claim without one, has ended.
struct GrantHead {
    uint16_t units;
    uint16_t pool;  // which a claim of a set cannot know; kGrantOfSeveral
    uint32_t stride;
    uint32_t answer_place;  // of the first answer within its region, from the GrantSlot
    uint32_t left_ms;       // of kGrace and kRevoking, from then on; all ones = no end is set.
                            // Stored before the event
};
static_assert(sizeof(GrantHead) == 16);
// In `pool`: over several pools. The units are those of all, one pool's behind the other's, and
// GrantParts lies behind the last region.
inline constexpr uint16_t kGrantOfSeveral = 0x8000;
static_assert(kPoolsMax <= kGrantOfSeveral);
struct GrantSlot {
    uint32_t number;  // within the pool (device index of a counted pool)
    uint32_t attributes_size;
    uint32_t answer_size;  // stored after the answer's bytes
    uint32_t done_size;    // of the last answer, likewise; counts if the lease's event says kDone
};
static_assert(sizeof(GrantSlot) == 16);

struct GrantPart {
    uint16_t pool;
    uint16_t units;
    uint32_t first_unit;  // its first region
    uint64_t lease;       // its own: the first one's is the handle
    uint64_t fence;
};
static_assert(sizeof(GrantPart) == 24);
inline constexpr uint32_t kGrantPartsMax = 8;
struct GrantParts {
    uint32_t count;
    uint32_t reserved0;
    GrantPart parts[kGrantPartsMax];
};
static_assert(sizeof(GrantParts) == 200);

// How much of a region each of its two answers may have; the last one lies that far behind the
// first. answer_place is at most stride.
constexpr uint32_t grant_answer_room(uint32_t stride, uint32_t answer_place) {
    return (stride - answer_place) / 2;
}

// A lease's event word in DOWN: state in the low 8 bits, then the lease's generation.
namespace LeaseEvent {
inline constexpr uint8_t kNone = 0;
inline constexpr uint8_t kGrace = 1;     // expired: release, or keepalive, before the grace ends
inline constexpr uint8_t kEnded = 2;     // bits 8..23 carry −reason, bits 32..63 the generation
inline constexpr uint8_t kRevoking = 3;  // wanted for a better claim: release before the time ends
inline constexpr uint8_t kRequeued = 4;  // ended as above, and its claim waits again
}  // namespace LeaseEvent

// UP: per session. Writer: its client.
struct alignas(64) UpHead {
    // line 0: written by the broker before the client has it
    uint64_t magic;
    uint32_t version;
    uint32_t session;
    uint32_t generation;
    uint32_t submission_entries;
    uint32_t payload_size;
    uint32_t tags;
    uint32_t reserved0;
    uint32_t submission_offset;
    uint32_t payload_offset;
    uint32_t lease_word_offset;
    uint32_t touch_word_offset;
    uint32_t histogram_offset;
    uint64_t size;
    // line 1: written when the client goes to sleep or wakes. `sleeping` pairs with
    // DownHead.completion_tail: each side stores its own, then loads the other's (both seq_cst).
    std::atomic<uint32_t> sleeping;  // ClientSleep
    std::atomic<uint32_t> cpu;       // where the client last ran
    uint8_t pad0[56];
    // line 2. Pairs with the broker's acquire: entries below it may be overwritten.
    std::atomic<uint64_t> completion_head;
    uint8_t pad1[56];
    // line 3. Pairs with DownHead.need_wakeup, as above.
    std::atomic<uint64_t> submission_tail;
    std::atomic<uint64_t> net_rings;  // re-rings by the safety net that were needed
    uint8_t pad2[48];
};
static_assert(sizeof(UpHead) == 256);
inline constexpr uint64_t kUpMagic = 0x5055534249440001ULL;

namespace ClientSleep {
inline constexpr uint32_t kAwake = 0;
inline constexpr uint32_t kFutex = 1;  // on DownHead.wake
inline constexpr uint32_t kPoll = 2;   // in an event loop, on the socket
}  // namespace ClientSleep

// Of each tag, in UP: whether its holder has put the tag's lease aside. Writer: its client and
// the turn, which sets kWanted by fetch_or and stores nothing else. The word names the lease by its
// claim's number, because a tag has one lease after the other; one that names another says: taken.
//
//   grant ──► taken ──── park (client, CAS) ────► free ── recall (turn) ──► free + wanted: ended
//              │ ▲                                 │
//              │ └──── take (client, CAS) ─────────┘
//              └── wanted (turn) ──► taken + wanted: no more parked, released through the ring
//
// The client's stores are a release, the turn's fetch_or is both: who takes sees what the last
// holder of the slot wrote, and a recalled lease is not taken any more.
struct LeaseWord {
    std::atomic<uint64_t> word;   // number << 2 | LeaseWordBit
    std::atomic<uint64_t> fence;  // of its present or last take; stored before the word is taken
};
static_assert(sizeof(LeaseWord) == 16);

namespace LeaseWordBit {
inline constexpr uint64_t kFree = 1;
inline constexpr uint64_t kWanted = 2;
}  // namespace LeaseWordBit

// Of each tag, in UP: how often its holder has touched the lease. Writer: its client, which sets it
// to 0 before it publishes a claim or adoption with the tag, and adds one at each touch. The turn
// reads it as the lease is about to expire: another value than at the last look prolongs the lease.
// Pairs with nothing: the value alone counts, and no other memory is read by it.
struct TouchWord {
    std::atomic<uint64_t> touches;
};
static_assert(sizeof(TouchWord) == 8);

struct UpHistogram {
    std::atomic<uint32_t> bucket[kHistogramBuckets];
};

// DOWN: per session. Writer: the broker's turn (and, before it is handed over, the control
// thread). The client maps it read-only.
struct alignas(64) DownHead {
    // line 0
    uint64_t magic;
    uint32_t version;
    uint32_t session;
    uint32_t generation;
    uint32_t completion_entries;
    uint32_t payload_size;
    uint32_t tags;
    uint32_t completion_offset;
    uint32_t payload_offset;
    uint32_t event_offset;
    uint32_t reserved0;
    uint64_t epoch;
    uint64_t size;
    // line 1. need_wakeup pairs with UpHead.submission_tail.
    std::atomic<uint32_t> need_wakeup;
    std::atomic<uint32_t> cpu;  // where the broker last ran
    uint8_t pad0[56];
    // line 2. submission_consumed: committed; pairs with the client's acquire: lines below it may
    // be written again.
    std::atomic<uint64_t> submission_consumed;
    std::atomic<uint32_t> session_state;  // SessionState
    std::atomic<int32_t> end_reason;      // Reason, once the session is dying
    uint8_t pad1[48];
    // line 3. wake: the client's futex word. completion_tail pairs with UpHead.sleeping.
    std::atomic<uint32_t> wake;
    std::atomic<uint32_t> events;  // grows when any lease's event word changes
    std::atomic<uint64_t> completion_tail;
    uint8_t pad2[48];
};
static_assert(sizeof(DownHead) == 256);
inline constexpr uint64_t kDownMagic = 0x4e574f4453494444ULL;

}  // namespace dibs::shm
