// tests/crash/workload.cpp -- how each kind of operation is drawn.
// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/workload.hpp"

#include <cstring>

#include "broker/core/store/row_states.hpp"

namespace dibs::tests {

using core::WorkerWord;
using shm::kNoRow;
using shm::SlotState;

namespace {

// The worker pool whose slots have resources.
constexpr uint32_t kBoxes = 11;

constexpr std::array<const char*, kOperations> kNames = {
    "open session", "claim",          "claim many",    "claim pools",    "claim by load",
    "add app",      "claim member",   "add task",      "app goes on",    "app ends",
    "remove task",  "cancel",         "release",       "fail",           "keepalive",
    "adopt",        "kill failed",    "steer release", "steer renew",    "steer cancel",
    "announce",     "announce again", "ready",         "confirm",        "refuse for now",
    "refuse",       "done",           "withdraw",      "protect",        "session death",
    "holder death", "drain pool",     "undrain pool",  "drain all",      "undrain all",
    "grow pool",    "delete pool",    "set account",   "delete account", "reset balance",
    "report idle",  "report running", "report absent", "pull",           "unassign",
    "update claim", "harvest",        "touch",         "set type",       "provide",
    "answer order", "announce order", "dispatch",      "time passes"};

}  // namespace

const char* name_of(Operation operation) {
    return kNames[static_cast<size_t>(operation)];
}

uint32_t Workload::any_session() {
    const auto start = static_cast<uint32_t>(below(core_.sessions_max()));
    for (uint32_t step = 0; step < core_.sessions_max(); ++step) {
        const uint32_t row = (start + step) % core_.sessions_max();
        if (core_.session(row).state == shm::SessionState::kOpen) return row;
    }
    return kNoRow;
}

// One that its tree has outlived, or any.
uint32_t Workload::dying_session() {
    for (uint32_t row = 0; row < core_.sessions_max() && below(2) == 0; ++row) {
        if (core_.session(row).state == shm::SessionState::kOutlived) return row;
    }
    return any_session();
}

uint32_t Workload::any_lease(uint32_t flags) {
    const auto start = static_cast<uint32_t>(below(core_.leases_max()));
    for (uint32_t step = 0; step < core_.leases_max(); ++step) {
        const uint32_t row = (start + step) % core_.leases_max();
        const shm::LeaseRow& lease = core_.lease(row);
        if (lease.state != shm::LeaseState::kFree && (lease.flags & flags) == flags) return row;
    }
    return kNoRow;
}

// Nothing comes from a session whose process is dead.
bool Workload::is_open(uint32_t session) const {
    if (session == kNoRow) return false;  // of what a gang asks for
    return core_.session(session).state == shm::SessionState::kOpen;
}

uint32_t Workload::held_lease() {
    const uint32_t row = any_lease();
    return row != kNoRow && is_open(core_.lease(row).session) ? row : kNoRow;
}

uint32_t Workload::any_claim() {
    const auto start = static_cast<uint32_t>(below(core_.claims_max()));
    for (uint32_t step = 0; step < core_.claims_max(); ++step) {
        const uint32_t row = (start + step) % core_.claims_max();
        const shm::ClaimRow& claim = core_.claim(row);
        if (claim.state != shm::ClaimState::kFree && is_open(claim.session)) return row;
    }
    return kNoRow;
}

uint32_t Workload::any_slot(SlotState state, bool kept) {
    const auto start = static_cast<uint32_t>(below(core_.slots_max()));
    for (uint32_t step = 0; step < core_.slots_max(); ++step) {
        const uint32_t row = (start + step) % core_.slots_max();
        const shm::SlotRow& slot = core_.slot(row);
        const bool is_kept = state == SlotState::kReserved && slot.holder == kNoRow;
        const bool attached = slot.session != kNoRow && is_open(slot.session);
        if (slot.state == state && attached && is_kept == kept) return row;
    }
    return kNoRow;
}

// Most confirmations come in time; the others to a slot that is reserved no more.
SlotState Workload::asked_in_state() {
    if (below(4) != 0) return SlotState::kReserved;
    return below(2) == 0 ? SlotState::kRecovering : SlotState::kUnknown;
}

bool Workload::claim(uint16_t units_max) {
    const uint32_t session = any_session();
    if (session == kNoRow) return false;
    core::Claim claim;
    claim.session = session;
    claim.tag = static_cast<uint16_t>(below(8));
    claim.units = static_cast<uint16_t>(1 + below(units_max));
    claim.pool = static_cast<uint32_t>(below(core_.pools()));
    claim.timeout_ns = below(4) == 0 ? 0 : 1 + below(8000);
    claim.interval_ns = below(2) == 0 ? 0 : 500 + below(3000);
    claim.by_word = below(2) == 0;
    if (below(4) == 0) claim.key[0] = static_cast<uint8_t>(1 + below(3));
    // Half of them plain: those may be granted without ever having a row.
    claim.payload = std::span{payload_}.first(below(2) == 0 ? 0 : below(payload_.size()));
    for (size_t at = 0; at < payload_.size(); at += sizeof(uint64_t)) {
        const uint64_t bytes = random_();
        std::memcpy(payload_.data() + at, &bytes, sizeof bytes);
    }
    const std::string account = below(3) == 0 ? "" : any_account();
    const std::vector<std::string_view> labels = any_labels();
    const std::vector<std::string_view> provisionable = any_labels();
    const core::ClaimTerms terms{
        .account = account,
        .labels = labels,
        .provisionable = provisionable,
        .preempt_mode = static_cast<shm::PreemptMode>(below(3)),
        .preempt_grace_ns = below(3000),
        .requeue = below(2) == 0,
    };
    claim.terms = &terms;
    const core::Amount least[] = {{"cpu", static_cast<int64_t>(below(3))},
                                  {"mem", 1 + static_cast<int64_t>(below(5))}};
    const core::Amount most[] = {{"mem", 9}, {"cpu", 2 + static_cast<int64_t>(below(4))}};
    if (!core_.resources(claim.pool).empty() && below(4) != 0) {
        claim.units = 1;
        claim.least = least;
        if (below(2) == 0) claim.most = most;
    }
    core_.apply(claim);
    return true;
}

bool Workload::pledge() {
    const uint32_t session = any_session();
    if (session == kNoRow) return false;
    core::Claim claim;
    claim.session = session;
    claim.tag = static_cast<uint16_t>(below(8));
    claim.interval_ns = below(2) == 0 ? 0 : 500 + below(3000);
    const auto start = static_cast<uint32_t>(below(core_.pools()));
    core::Core::Foreseen seen;
    bool foreseen = false;
    // Only few pools can be foreseen at any moment; those ordered by account never.
    for (uint32_t step = 0; !foreseen && step < core_.pools(); ++step) {
        claim.pool = (start + step) % core_.pools();
        foreseen = core_.foresee(claim, &seen);
    }
    if (!foreseen) return false;
    const uint64_t told = core_.session(session).completion_tail;
    shm::Completion entry;
    entry.sequence = told + 1;
    entry.user_data = claim.user_data;
    entry.id = seen.lease;
    entry.fence = seen.fence;
    entry.value = seen.interval_ns;
    entry.claim = seen.claim;
    shm::set_grant(entry, 1, claim.tag, seen.reason, 0);
    claim.room = 0;
    core_.pledge(claim, entry);
    core_.apply(claim);
    core_.set_cursors(session, core_.session(session).submission_consumed + 1, told + 1);
    return true;
}

bool Workload::announce(bool again) {
    const uint32_t session = any_session();
    if (session == kNoRow) return false;
    const std::string name = "s" + std::to_string(below(again ? 6 : 40));
    const std::string attributes(below(700), 'a');
    core::Announce announce;
    announce.session = session;
    static constexpr uint32_t kWorkerPools[] = {1, 2, 4, 5, kFarm, kVault, kBoxes, kBoxes};
    announce.pool = kWorkerPools[below(8)];
    const core::Amount resources[] = {{"mem", static_cast<int64_t>(below(20))}, {"cpu", 5}};
    if (announce.pool == kBoxes) {
        announce.parts = static_cast<uint32_t>(below(5));
        if (below(2) == 0) announce.resources = resources;
    }
    const std::vector<std::string_view> labels = any_labels();
    announce.labels = labels;
    announce.name = name;
    announce.attributes = attributes;
    announce.is_protected = below(6) == 0;
    announce.ready = below(2) == 0;
    core_.apply(announce);
    return true;
}

bool Workload::say(WorkerWord::Kind kind, uint32_t row, bool flag) {
    if (row == kNoRow) return false;
    const shm::SlotRow& slot = core_.slot(row);
    WorkerWord word;
    word.kind = kind;
    word.try_again = flag;
    word.then_ready = flag;
    word.session = slot.session;
    word.slot = core::row_id(slot.head.generation, row);
    word.round = slot.round;
    word.answer = std::span{payload_}.first(kind == WorkerWord::Kind::kConfirm ? 16 : 0);
    core_.apply(word);
    return true;
}

bool Workload::end_lease(bool broken) {
    const uint32_t row = held_lease();
    if (row == kNoRow) return false;
    const shm::LeaseRow& lease = core_.lease(row);
    core_.apply(core::Release{.session = lease.session,
                              .broken = broken,
                              .lease = core::row_id(lease.head.generation, row),
                              .fence = lease.fence + core::takes_of(lease)});
    return true;
}

bool Workload::harvest() {
    const uint32_t row = any_lease(shm::LeaseFlag::kMayPark);
    if (row == kNoRow) return false;
    core_.apply(core::Harvest{.lease = core::row_id(core_.lease(row).head.generation, row),
                              .takes = core::takes_of(core_.lease(row)) + below(3),
                              .parked = below(2) == 0,
                              .recalled = below(3) == 0});
    return true;
}

bool Workload::touch() {
    const std::span<const uint32_t> lapsing = core_.lapsing();
    if (lapsing.empty()) return false;
    const uint32_t row = lapsing[below(lapsing.size())];
    core_.apply(core::Touch{.lease = core::row_id(core_.lease(row).head.generation, row),
                            .value = core_.lease(row).touched + 1});
    return true;
}

// Only what the core carries out counts: a refusal changes no row.
bool Workload::steer(core::Steer::Kind kind) {
    core::Steer steer;
    steer.kind = kind;
    if (kind == core::Steer::Kind::kCancel) {
        const uint32_t row = any_claim();
        if (row == kNoRow) return false;
        const shm::ClaimRow& claim = core_.claim(row);
        steer.session = claim.session;
        steer.tag = claim.tag;
        steer.number = claim.arrival;
    } else {
        const uint32_t row = any_lease();
        if (row == kNoRow) return false;
        steer.lease = core::row_id(core_.lease(row).head.generation, row);
        steer.interval_ns = below(2) == 0 ? 0 : 500 + below(3000);
    }
    core::TimeNs granted_ns = 0;
    return core_.apply(steer, &granted_ns) == shm::Reason::kOk;
}

std::vector<std::string_view> Workload::any_labels() {
    std::vector<std::string_view> labels;
    for (const std::string_view label : {"k:1", "k:2", "os:l"}) {
        if (below(3) == 0) labels.push_back(label);
    }
    return labels;
}

bool Workload::apply(Operation operation) {
    using Kind = core::ApplicationEvent::Kind;
    switch (operation) {
        case Operation::kOpenSession:
            return core_.open_session({.uid = static_cast<uint32_t>(below(3)), .tags_max = 8}) !=
                   kNoRow;
        case Operation::kClaim:
            return claim(1);
        case Operation::kClaimMany:
            return claim(5);
        case Operation::kClaimOverPools:
            return claim_over_pools();
        case Operation::kClaimByLoad:
            return claim_by_load();
        case Operation::kAddApplication:
            return add_application();
        case Operation::kClaimOfMember:
            return claim_of_member();
        case Operation::kAddTask:
            return say_of_application({Kind::kAddTask});
        case Operation::kApplicationGoesOn:
            return say_of_application({Kind::kAdopt, Kind::kRecovered, Kind::kCompleteTask});
        case Operation::kApplicationEnds:
            return say_of_application({Kind::kComplete, Kind::kFail, Kind::kKill, Kind::kRemove});
        case Operation::kRemoveTask:
            return say_of_application({Kind::kRemoveTask});
        case Operation::kCancel: {
            const uint32_t row = any_claim();
            if (row == kNoRow) return false;
            core_.apply(
                core::Cancel{.session = core_.claim(row).session, .tag = core_.claim(row).tag});
            return true;
        }
        case Operation::kRelease:
            return end_lease(false);
        case Operation::kFail:
            return end_lease(true);
        case Operation::kKeepalive: {
            const uint32_t row = held_lease();
            if (row == kNoRow) return false;
            const shm::LeaseRow& lease = core_.lease(row);
            core_.apply(core::Keepalive{.session = lease.session,
                                        .lease = core::row_id(lease.head.generation, row),
                                        .fence = lease.fence + core::takes_of(lease)});
            return true;
        }
        case Operation::kAdopt: {
            const uint32_t row = any_lease();
            const uint32_t session = any_session();
            if (row == kNoRow || session == kNoRow) return false;
            const shm::LeaseRow& lease = core_.lease(row);
            core_.apply(core::Adopt{.session = session,
                                    .tag = static_cast<uint16_t>(below(8)),
                                    .lease = core::row_id(lease.head.generation, row),
                                    .fence = lease.fence + core::takes_of(lease)});
            return true;
        }
        case Operation::kKillFailed: {
            const uint32_t row = any_lease();
            if (row == kNoRow) return false;
            core_.apply(core::KillFailed{core::row_id(core_.lease(row).head.generation, row)});
            return true;
        }
        case Operation::kSteerRelease:
            return steer(core::Steer::Kind::kRelease);
        case Operation::kSteerRenew:
            return steer(core::Steer::Kind::kRenew);
        case Operation::kSteerCancel:
            return steer(core::Steer::Kind::kCancel);
        case Operation::kAnnounce:
            return announce(false);
        case Operation::kAnnounceAgain:
            return announce(true);
        case Operation::kReady:
            return say(WorkerWord::Kind::kReady,
                       any_slot(below(2) == 0 ? SlotState::kRecovering : SlotState::kUnknown),
                       false);
        case Operation::kConfirm:
            return say(WorkerWord::Kind::kConfirm, any_slot(asked_in_state()), false);
        case Operation::kRefuseRetry:
            return say(WorkerWord::Kind::kRefuse, any_slot(SlotState::kReserved), true);
        case Operation::kRefuse:
            return say(WorkerWord::Kind::kRefuse, any_slot(SlotState::kReserved), false);
        case Operation::kDone:
            return say(WorkerWord::Kind::kDone, any_slot(SlotState::kLeased), below(2) == 0);
        case Operation::kWithdraw:
            return say(
                WorkerWord::Kind::kWithdraw, any_slot(static_cast<SlotState>(1 + below(5))), false);
        case Operation::kProtect:
            return say(below(3) == 0 ? WorkerWord::Kind::kProtect : WorkerWord::Kind::kUnprotect,
                       any_slot(below(2) == 0 ? SlotState::kIdle : SlotState::kRecovering),
                       false);
        case Operation::kSessionDeath: {
            const uint32_t session = dying_session();
            if (session == kNoRow) return false;
            core_.session_died(session);
            return true;
        }
        case Operation::kHolderDeath: {
            const uint32_t session = any_session();
            if (session == kNoRow) return false;
            core_.session_died(session, true);
            return true;
        }
        case Operation::kDrainPool:
            core_.apply(drain(true));
            return true;
        case Operation::kUndrainPool:
            core_.apply(drain(false));
            return true;
        case Operation::kDrainAll:
            core_.apply(core::Drain{.on = true});
            return true;
        case Operation::kUndrainAll:
            core_.apply(core::Drain{.on = false});
            return true;
        case Operation::kGrowPool: {
            const core::PoolConfig tokens =
                tokens_of(counted_slots_ + (counted_slots_ > 6 && below(2) == 0 ? -1U : 1U));
            if (tokens.slots > 18 || core_.set_pool(tokens, nullptr) == kNoRow) return false;
            counted_slots_ = tokens.slots;
            return true;
        }
        case Operation::kDeletePool: {
            core::PoolConfig spare;
            spare.name = "spare";
            spare.slots = 1 + static_cast<uint32_t>(below(6));
            const uint32_t row = core_.find_pool(spare.name);
            if (row == kNoRow) return core_.set_pool(spare, nullptr) != kNoRow;
            return core_.delete_pool(row, below(4) == 0) == shm::Reason::kOk;
        }
        case Operation::kSetAccount:
            return set_account();
        case Operation::kDeleteAccount:
            core_.delete_account(any_account());
            return true;
        case Operation::kResetBalance: {
            const std::array<int64_t, 2> balance = {static_cast<int64_t>(below(20)) - 10, 5};
            return core_.reset_balance(any_account(), balance, nullptr);
        }
        case Operation::kReportIdle:
            return report(core::Report::Kind::kIdle);
        case Operation::kReportRunning:
            return report(core::Report::Kind::kRunning);
        case Operation::kReportAbsent:
            return report(core::Report::Kind::kAbsent);
        case Operation::kPull:
            return pull();
        case Operation::kUnassign:
            core_.apply(
                core::Unassign{.pool = any_farm(), .claim = any_number(), .worker = any_worker()});
            return true;
        case Operation::kUpdateClaim:
            return update_claim();
        case Operation::kHarvest:
            return harvest();
        case Operation::kTouch:
            return touch();
        case Operation::kSetType:
            return set_type();
        case Operation::kProvide:
            return provide();
        case Operation::kAnswerOrder:
            return answer_order();
        case Operation::kAnnounceOrder:
            return announce_order();
        case Operation::kReportToDispatch:
            return report_to_dispatch();
        case Operation::kTimePasses:
            now_ += below(4000);
            return true;
        case Operation::kCount:
            break;
    }
    return false;
}

}  // namespace dibs::tests
