// tests/naive/player.cpp -- labels to ids on the way in, ids to numbers on the way out.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/player.hpp"

#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "broker/core/core.hpp"
#include "broker/core/look.hpp"
#include "tests/naive/journal_bytes.hpp"
#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;

namespace {

// Where the slots of a counted pool are, by number: nobody announces them.
std::map<uint32_t, uint64_t> counted_slots(const NaiveCore& core, uint32_t pool) {
    std::map<uint32_t, uint64_t> ids;
    for (const auto& [id, slot] : core.model().slots) {
        if (slot.pool == pool && !slot.part_of) ids[slot.number] = id;
    }
    return ids;
}

std::map<uint32_t, uint64_t> counted_slots(const core::Core& core, uint32_t pool) {
    std::map<uint32_t, uint64_t> ids;
    for (uint32_t row = 0; row < core.slots_max(); ++row) {
        const shm::SlotRow& slot = core.slot(row);
        if (slot.state == shm::SlotState::kFree || slot.pool != pool) continue;
        if (slot.part_of != shm::kNoRow) continue;
        ids[slot.number] = core::row_id(slot.head.generation, row);
    }
    return ids;
}

std::string type_name(const NaiveCore& core, core::TypeId type) {
    return core.model().types.at(type).name;
}

std::string type_name(const core::Core& core, core::TypeId type) {
    const shm::TypeRow& row = core::Look::type(core, type);
    return {row.name, row.name_size};
}

}  // namespace

template <class CoreType>
void Player<CoreType>::play(const Step& step) {
    if (!can_take(step)) return;
    const uint32_t session = session_row(step.session);
    switch (step.kind) {
        case StepKind::kSetPool:
            set_pool(step);
            break;
        case StepKind::kChangePool:
            change_pool(step);
            break;
        case StepKind::kOpen: {
            core::SessionOpen open = step.open;
            open.account = step.name;
            const uint32_t row = core_.open_session(open);
            if (row != shm::kNoRow) sessions_[step.label] = row;
            break;
        }
        case StepKind::kDied:
        case StepKind::kHolderDied:
            core_.session_died(session, step.kind == StepKind::kHolderDied);
            listen();
            outlived_.erase(step.session);
            if (step.kind == StepKind::kDied) sessions_.erase(step.session);
            outlived_.insert(sessions_.extract(step.session));
            break;
        case StepKind::kClaim:
            claim(step);
            break;
        case StepKind::kCancel:
            core_.apply(core::Cancel{session, step.tag, step.label});
            break;
        case StepKind::kRelease: {
            const KnownLease lease = lease_of(step.subject);
            const uint64_t fence = lease.fence + static_cast<uint64_t>(int64_t{step.distance});
            core_.apply(core::Release{session, step.broken, lease.id, fence, step.label});
            break;
        }
        case StepKind::kKeepalive: {
            const KnownLease lease = lease_of(step.subject);
            const uint64_t fence = lease.fence + static_cast<uint64_t>(int64_t{step.distance});
            core_.apply(core::Keepalive{session, lease.id, fence, step.interval_ns, step.label});
            break;
        }
        case StepKind::kAdopt: {
            const KnownLease lease = lease_of(step.subject);
            core::Adopt adopt;
            adopt.session = session;
            adopt.tag = step.tag;
            adopt.lease = lease.id;
            adopt.fence = lease.fence + static_cast<uint64_t>(int64_t{step.distance});
            adopt.user_data = step.label;
            adopt.refusal = step.refusal;
            core_.apply(adopt);
            break;
        }
        case StepKind::kKillFailed:
            core_.apply(core::KillFailed{lease_of(step.subject).id});
            break;
        case StepKind::kHarvest:
            harvest(step);
            break;
        case StepKind::kTouch:
            core_.apply(core::Touch{lease_of(step.subject).id, step.touched});
            break;
        case StepKind::kAnnounce:
            announce(step);
            break;
        case StepKind::kWord:
            word(step);
            break;
        case StepKind::kDeletePool:
            delete_pool(step);
            break;
        case StepKind::kDrain: {
            if (step.pool != kNoLabel && !pools_.contains(step.pool)) break;
            drain(step);
            break;
        }
        case StepKind::kSteer:
            steer(step, session);
            break;
        case StepKind::kSetAccount:
            set_account(step);
            break;
        case StepKind::kDeleteAccount:
            core_.delete_account(step.name);
            break;
        case StepKind::kResetBalance: {
            std::string why;
            tell_accepted(step, core_.reset_balance(step.name, step.account.balance, &why));
            break;
        }
        case StepKind::kReport:
            report(step);
            break;
        case StepKind::kPull:
            pull(step);
            break;
        case StepKind::kUnassign:
            unassign(step);
            break;
        case StepKind::kUpdateClaim:
            update_claim(step);
            break;
        case StepKind::kSetType:
            set_type(step);
            break;
        case StepKind::kDeleteType:
            delete_type(step);
            break;
        case StepKind::kProvide:
            provide(step);
            break;
        case StepKind::kProvisioned:
            provisioned(step);
            break;
        case StepKind::kRestart:
        case StepKind::kTurnEnd:
            break;
        default:
            dispatch(step);
            break;
    }
    listen();
}

template <class CoreType>
void Player<CoreType>::set_pool(const Step& step) {
    const PoolSpec& spec = journal_.pools.at(step.label);
    core::PoolConfig config = spec.config;
    config.name = spec.name;
    config.required_label = spec.required_label;
    config.vector = spec.vector;
    config.create_min = spec.create_min;
    std::string why;
    const uint32_t row = core_.set_pool(config, &why);
    pool_was_set_ = row != shm::kNoRow;
    if (row == shm::kNoRow && pools_.contains(step.label)) return;  // it stays gone
    pools_[step.label] = row;
    if (pool_was_set_) label_of_row_[row] = step.label;
    slots_wanted_[step.label] = config.slots;
    if (config.kind == shm::PoolKind::kCounted && row != shm::kNoRow)
        meet_counted_slots(step.label);
}

// What a command returns is told like a result, so that the two cores must agree on that too.
template <class CoreType>
void Player<CoreType>::tell_accepted(const Step& step, bool accepted) {
    listen();
    DecisionLine line;
    line.user_data = step.label;
    line.value = accepted ? 1 : 0;
    lines_.push_back(line);
}

// A core may take some turns to make all slots of a large pool.
template <class CoreType>
void Player<CoreType>::meet_counted_slots(uint32_t pool) {
    const std::map<uint32_t, uint64_t> ids = counted_slots(core_, pools_.at(pool));
    for (const auto& [number, id] : ids)
        slots_[counted_label(pool, number)] = id;
    if (ids.size() < slots_wanted_.at(pool)) {
        growing_.insert(pool);
    } else {
        growing_.erase(pool);
    }
}

template <class CoreType>
void Player<CoreType>::announce(const Step& step) {
    core::Announce announce = step.announce;
    const std::vector<std::string_view> labels(step.labels.begin(), step.labels.end());
    const std::string attributes = attributes_of(step);
    announce.session = sessions_.at(step.session);
    announce.pool = pool_row(step.pool);
    announce.user_data = step.label;
    announce.name = step.name;
    announce.labels = labels;
    announce.attributes = attributes;
    announce.resources = step.least;
    announce.type = step.type_name;
    if (step.subject != kNoLabel) announce.order = slot_id(step.subject);
    announcing_ = step.label;
    core_.apply(announce);
    listen();
    announcing_ = kNoLabel;
}

template <class CoreType>
void Player<CoreType>::word(const Step& step) {
    core::WorkerWord word = step.word;
    const std::vector<uint8_t> answer(step.answer_size, static_cast<uint8_t>(step.label));
    word.session = sessions_.at(step.session);
    word.user_data = step.label;
    word.answer = answer;
    word.slot = slot_id(step.subject);
    word.round = rounds_[word.slot] + static_cast<uint32_t>(step.distance);
    core_.apply(word);
    listen();
}

template <class CoreType>
void Player<CoreType>::listen() {
    for (const uint32_t pool : std::set(growing_))
        meet_counted_slots(pool);
    const std::span<const Decision> decisions = core_.decisions();
    while (heard_ < decisions.size())
        hear(decisions[heard_++]);
}

template <class CoreType>
void Player<CoreType>::hear(const Decision& decision) {
    switch (decision.kind) {
        case DecisionKind::kAnnounced:
            slots_[announcing_] = decision.id;
            break;
        case DecisionKind::kCreate:
            slots_[order_label(pool_label(decision.pool), decision.slot_number)] = decision.id;
            break;
        case DecisionKind::kAssign:
            rounds_[decision.id] = decision.round;
            if (decision.resources_count != 0) slots_[part_label(decision.claim)] = decision.id;
            break;
        case DecisionKind::kGrant: {
            if (decision.part != 0) {  // the handle is another row
                std::vector<uint64_t>& before = claims_of_lease_row_[core::row_of(decision.id)];
                if constexpr (std::is_same_v<CoreType, core::Core>) {
                    reused_.insert(reused_.end(), before.begin(), before.end());
                    before.clear();
                }
                claims_of_leases_[decision.id] = decision.claim;
                break;
            }
            // A claim that was granted before and waited again: its old lease has no name any more.
            for (auto& [row, claims] : claims_of_lease_row_)
                std::erase(claims, decision.claim);
            leases_[decision.claim] = {decision.id, decision.fence, decision.may_park};
            claims_of_leases_[decision.id] = decision.claim;
            std::vector<uint64_t>& claims = claims_of_lease_row_[core::row_of(decision.id)];
            reused_.insert(reused_.end(), claims.begin(), claims.end());
            claims = {decision.claim};
            break;
        }
        case DecisionKind::kAdopted:
            leases_[claims_of_leases_.at(decision.id)].may_park = false;
            break;
        default:
            break;
    }
    lines_.push_back(line_of(decision));
}

template <class CoreType>
DecisionLine Player<CoreType>::line_of(const Decision& decision) const {
    DecisionLine line;
    line.kind = decision.kind;
    line.reason = decision.reason;
    const auto of_claim = [&] {
        line.session = session_label(decision.session);
        line.tag = decision.session == shm::kNoRow ? uint16_t{0} : decision.tag;
        line.claim = decision.claim;
    };
    const auto of_slot = [&] {
        line.pool = pool_label(decision.pool);
        line.slot = decision.slot_number;
    };
    const auto held_by = [&] {
        line.holder = {decision.holder_uid,
                       decision.holder_pid,
                       decision.holder_claim,
                       decision.holder_age_ns};
    };
    switch (decision.kind) {
        case DecisionKind::kResult:
            line.session = session_label(decision.session);
            line.user_data = decision.user_data;
            line.value = decision.value;
            held_by();
            break;
        case DecisionKind::kAnnounced:
            line.session = session_label(decision.session);
            line.user_data = decision.user_data;
            of_slot();
            break;
        case DecisionKind::kAssign:
            line.claim = decision.claim;
            line.provision = decision.provision;
            for (const int64_t amount : core_.decided_amounts(decision))
                line.resources.push_back(amount);
            [[fallthrough]];
        case DecisionKind::kRevoke:
            if (decision.kind == DecisionKind::kRevoke) line.value = decision.value;
            line.session = session_label(decision.session);
            line.user_data = decision.user_data;
            line.round = decision.round;
            of_slot();
            break;
        case DecisionKind::kAnswer:
            of_claim();
            line.claim = 0;
            line.part = decision.part;
            line.place = decision.slots_begin;
            line.answer.assign(decision.answer.begin(), decision.answer.end());
            break;
        case DecisionKind::kGrant:
            of_claim();
            line.user_data = decision.user_data;
            line.fence = decision.fence;
            line.value = decision.value;
            line.pool = pool_label(decision.pool);
            line.round = decision.round;
            line.part = decision.part;
            line.provision = decision.provision;
            line.may_park = decision.may_park;
            line.has_class = decision.has_class;
            line.to_class = decision.to_class;
            for (const core::DecidedSlot& slot : core_.decided_slots(decision))
                line.slots.push_back(slot.number);
            for (const int64_t amount : core_.decided_amounts(decision))
                line.resources.push_back(amount);
            break;
        case DecisionKind::kEnd:
            of_claim();
            line.entry = decision.entry;
            line.user_data = decision.user_data;
            line.outcome = decision.outcome;
            line.value = decision.value;
            if (decision.reason == shm::Reason::kDuplicate ||
                (decision.reason == shm::Reason::kUnavailable)) {
                line.first_claim = decision.id;
            }
            held_by();
            break;
        case DecisionKind::kAdopted:
            line.round = decision.round;
            line.part = decision.part;
            line.user_data = decision.user_data;
            line.value = decision.value;
            [[fallthrough]];
        case DecisionKind::kKill:
        case DecisionKind::kLeaseGrace:
        case DecisionKind::kLeaseEnd:
            of_claim();
            line.claim = claims_of_leases_.at(decision.id);
            line.fence = decision.fence;
            for (const core::DecidedSlot& slot : core_.decided_slots(decision))
                line.slots.push_back(slot.number);
            if (decision.kind == DecisionKind::kLeaseGrace ||
                decision.kind == DecisionKind::kLeaseEnd) {
                line.value = decision.value;
            }
            break;
        case DecisionKind::kSlotGone:
            of_slot();
            break;
        case DecisionKind::kDemand:
            line.pool = pool_label(decision.pool);
            line.value = decision.value;
            line.user_data = decision.id;
            line.round = decision.hit_permille;
            break;
        case DecisionKind::kDrained:
            line.pool = pool_label(decision.pool);
            break;
        case DecisionKind::kCreate:
            line.value = decision.value;
            for (const int64_t amount : core_.decided_amounts(decision))
                line.resources.push_back(amount);
            [[fallthrough]];
        case DecisionKind::kStop:
            line.session = session_label(decision.session);
            line.type = type_name(core_, decision.type);
            of_slot();
            break;
        case DecisionKind::kStart:
        case DecisionKind::kKillProcess:
            line.type = type_name(core_, decision.type);
            line.slot = decision.slot_number;
            [[fallthrough]];
        case DecisionKind::kLock:
        case DecisionKind::kUnlock:
        case DecisionKind::kForget:
            line.pool = pool_label(decision.pool);
            line.entry = decision.entry;
            line.value = decision.id;  // its number
            break;
        case DecisionKind::kPreempt:
        case DecisionKind::kRefund:
            line.is_void = decision.is_void;
            for (const int64_t cost : core_.decided_amounts(decision))
                line.cost.push_back(cost);
            [[fallthrough]];
        case DecisionKind::kPromote:
        case DecisionKind::kDemote:
            line.claim = decision.claim;
            line.other_claim = decision.holder_claim;
            line.account = decision.account;
            line.from_class = decision.from_class;
            line.to_class = decision.to_class;
            if (decision.kind != DecisionKind::kRefund) of_slot();
            break;
        case DecisionKind::kApplication:
        case DecisionKind::kTask:
        case DecisionKind::kPlaceholder:
            word_gang(decision, line);
            break;
        case DecisionKind::kPulled:
            of_slot();
            line.claim = decision.claim;
            line.user_data = decision.user_data;
            line.other_claim = decision.holder_claim;
            line.provision = decision.provision;
            break;
    }
    return line;
}

template <class CoreType>
uint32_t Player<CoreType>::session_row(uint32_t label) const {
    if (label == kNoLabel) return shm::kNoRow;
    return session_is_open(label) ? sessions_.at(label) : outlived_.at(label);
}

template <class CoreType>
uint32_t Player<CoreType>::session_label(uint32_t row) const {
    if (row == shm::kNoRow) return kNoLabel;
    for (const auto* all : {&sessions_, &outlived_})
        for (const auto& [label, known] : *all)
            if (known == row) return label;
    return kNoLabel - 1;  // told to a session that is not there
}

template <class CoreType>
std::vector<uint64_t> Player<CoreType>::take_leases_of_reused_rows() {
    return std::exchange(reused_, {});
}

template class Player<NaiveCore>;
template class Player<core::Core>;

}  // namespace dibs::naive
