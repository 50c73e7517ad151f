// tests/naive/journal.hpp -- a random journal: commands whose subjects have labels, not ids.
//
// A label is the name that the step which makes a thing gives it. Lease L is the lease of the
// claim labelled L, slot S the slot of the announcement labelled S. Fences and rounds are written
// as distances from what was last told or taken. So a journal means the same to two cores whose
// rows differ, and goes on meaning something when steps are dropped from it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "broker/core/command.hpp"
#include "broker/core/core.hpp"

namespace dibs::naive {

inline constexpr uint32_t kNoLabel = 0xffffffffU;

// Slot `number` of counted pool `pool`: nobody announces it, so its label is made of its place.
inline constexpr uint32_t kCountedLabel = 0x40000000U;
inline constexpr uint32_t counted_label(uint32_t pool, uint32_t number) {
    return kCountedLabel + pool * 65536 + number;
}

// The part that claim number `claim` was reserved last: nobody announces it, either.
inline constexpr uint32_t kPartLabel = 0x20000000U;
inline constexpr uint32_t part_label(uint64_t claim) {
    return kPartLabel + static_cast<uint32_t>(claim);
}

// The order of this number in pool `pool`: its announcement gives it another label as well.
inline constexpr uint32_t kOrderLabel = 0x60000000U;
inline constexpr uint32_t order_label(uint32_t pool, uint32_t number) {
    return kOrderLabel + pool * 65536 + number;
}

struct PoolSpec {
    std::string name;
    std::string required_label;
    core::PoolConfig config;  // without its views
    std::vector<core::Amount> vector;
    std::vector<core::Amount> create_min;
};

// What a claim, a report or a change says to a pool ordered by account, with its own strings.
struct Terms {
    std::string account;
    std::vector<std::string> base;
    std::vector<std::string> provisionable;
    shm::PreemptMode preempt_mode = shm::PreemptMode::kAtOnce;
    uint64_t grace_ns = 0;
    bool requeue = false;
    uint64_t enqueued_ns = shm::kNever;
    uint64_t event_ns = shm::kNever;
    bool account_given = false;  // update
    bool base_given = false;
    bool provisionable_given = false;
    bool priority_given = false;
};

// Of a claim that may be served from several pools, by their labels.
struct RouteSpec {
    std::vector<std::pair<uint32_t, core::RouteMember>> members;  // none: it is not routed
    core::Route route;
};

struct AccountSpec {
    std::vector<int64_t> rate;
    std::vector<int64_t> balance;
    uint64_t charge_max_ns = 0;
    uint32_t fanout_max = 0;
    std::vector<std::pair<std::string, uint32_t>> label_limits;
    bool free_tasks_disabled = false;
    bool keep_balance = false;
};

struct TypeSpec {
    uint64_t cost = 1;
    std::string provider_type;
    bool preemptible = false;
    std::string quota_group;
};

// What a dispatched pool is told.
struct DispatchSpec {
    bool state_given = false;
    core::QueueState state = core::QueueState::kQueued;
    bool supervisor_given = false;
    bool supervisor = false;
    bool types_given = false;
    std::vector<std::string> types;
    std::string worker;
    core::WorkerReport::State worker_state = core::WorkerReport::State::kUnknown;
    shm::Behaviour behaviour = shm::Behaviour::kRun;  // of slot `number`
    core::QueueWord word = core::QueueWord::kLock;
    bool ok = true;  // of an operation, a probe, a reading
};

// Of a group of an application's tasks.
struct GroupOfGang {
    std::string name;
    uint32_t members = 1;
    std::vector<core::Amount> resource;
};

// What is said of an application or of one of its tasks; of a claim, whose it is.
struct GangSpec {
    std::string application;  // of a claim: empty, it is none's
    bool is_member = false;   // claim
    std::string task;
    std::string group;
    int32_t priority = 1;
    core::ApplicationEvent::Kind kind = core::ApplicationEvent::Kind::kAdopt;
    uint32_t uid = 0;  // without a session
    bool assigned = false;
    std::vector<GroupOfGang> groups;
    uint64_t placeholder_timeout_ns = 0;
    uint64_t manager_timeout_ns = 0;
    shm::GangStyle style = shm::GangStyle::kSoft;
    std::string parameters;
    uint32_t tags_size = 0;
    bool recover = false;
};

struct Caller {
    std::string worker;
    std::vector<std::string> labels;
};

enum class StepKind {
    kSetPool,
    kChangePool,
    kDeletePool,
    kOpen,
    kDied,
    kHolderDied,  // and its tree lives on
    kClaim,
    kCancel,
    kRelease,
    kKeepalive,
    kAdopt,
    kKillFailed,
    kHarvest,
    kTouch,
    kAnnounce,
    kWord,
    kDrain,
    kSteer,
    kSetAccount,
    kDeleteAccount,
    kResetBalance,
    kReport,
    kPull,
    kUnassign,
    kUpdateClaim,
    kSetType,
    kDeleteType,
    kProvide,
    kProvisioned,
    kEntryReport,
    kQueueRead,
    kQueueOperation,
    kOperationDone,
    kWorkerReport,
    kProcess,
    kProbe,
    kBehaviour,
    kApplication,
    kApplicationEvent,
    kRestart,  // the core dies in the middle of a turn; another one takes that back and does it
               // again
    kTurnEnd,
};

// What becomes of the core at the end of a turn, and of every turn that it was cut into.
enum class Death { kNone, kBeforeClear, kAfterClear };

struct Step {
    StepKind kind = StepKind::kTurnEnd;
    uint32_t label = kNoLabel;    // of what it makes: pool, session, claim or slot
    uint32_t session = kNoLabel;  // who says it
    uint32_t pool = kNoLabel;     // of a claim, announcement, drain (kNoLabel = the broker), delete
    // The claim whose lease, or the announcement or order whose slot, it is of; of an announcement
    // the order that it names.
    uint32_t subject = kNoLabel;
    int32_t distance = 0;  // of its fence or round from the right one

    core::Claim claim;
    std::vector<core::Amount> least;
    std::vector<core::Amount> most;
    std::vector<std::pair<uint32_t, uint16_t>> also;  // claim: further pools, units
    RouteSpec route;                                  // claim
    std::string meta;                                 // claim
    uint64_t if_idle_for_ns = shm::kNever;            // drain
    uint32_t payload_size = 0;                        // claim
    uint16_t tag = 0;                                 // cancel, adopt
    shm::Reason refusal = shm::Reason::kOk;           // adopt
    bool broken = false;                              // release
    uint64_t interval_ns = 0;                         // keepalive
    core::Announce announce;                          // without its views
    std::string name;
    std::vector<std::string> labels;
    uint32_t attributes_size = 0;
    core::WorkerWord word;
    uint32_t answer_size = 0;
    core::Harvest harvest;       // of the subject's lease
    uint64_t touched = 0;        // touch: what its word says
    bool on = true;              // drain; delete pool: when it is unused
    uint32_t number = kNoLabel;  // drain: of this slot only
    core::Steer::Kind steer = core::Steer::Kind::kRelease;
    core::SessionOpen open;
    PoolSpec change;      // change pool
    AccountSpec account;  // set account, reset balance; `name` is its name
    Terms terms;          // claim, update claim; of reports the time
    core::Report::Kind report = core::Report::Kind::kIdle;  // `name` is the worker's
    std::vector<Caller> callers;
    TypeSpec type;          // set type; `name` is the type's, also of delete type and provide
    std::string type_name;  // announce
    core::Provisioned::Answer answer = core::Provisioned::Answer::kCreated;
    core::Provisioned::Scope scope = core::Provisioned::Scope::kType;  // `name` is a quota group
    // `name` is an entry's, `type_name` a worker's type, `terms.event_ns` when it was so; of a
    // reading of the queue `labels` are the names.
    DispatchSpec dispatch;
    GangSpec gang;
    uint64_t at_ns = 0;  // turn end: the time of the turn that it opens
    Death death = Death::kNone;
};

struct Journal {
    uint64_t seed = 0;
    core::Limits limits;
    std::vector<PoolSpec> pools;
    std::vector<Step> steps;
};

std::string to_string(const Step& step);
std::string to_string(const PoolSpec& pool);

}  // namespace dibs::naive
