// tests/naive/journal_generator.cpp -- the choices: what kind of journal, which step, of what.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/journal_generator.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/naive/journal_writer.hpp"

namespace dibs::naive {

using shm::WhenBusy;

void Writer::put(Step step) {
    if (step.label == kNoLabel) step.label = static_cast<uint32_t>(journal_.steps.size());
    player_->play(step);
    label_of_number_.resize(std::max(label_of_number_.size(), model().claims_seen + 1), kNoLabel);
    if (step.kind == StepKind::kClaim && player_->numbers().contains(step.label))
        label_of_number_.at(player_->numbers().at(step.label)) = step.label;
    journal_.steps.push_back(std::move(step));
}

void Writer::write(size_t steps) {
    core_->begin_turn(1000);
    for (uint32_t i = 0; i < journal_.pools.size(); ++i) {
        Step step;
        step.kind = StepKind::kSetPool;
        step.label = i;
        put(step);
    }
    for (const auto& [label, id] : player_->slots())
        label_of_slot_[id] = label;
    if (character_.large) steps /= 5;
    while (journal_.steps.size() < steps)
        write_one();
    end_turn();
}

void Writer::write_one() {
    const std::map<uint32_t, uint32_t>& sessions = player_->sessions();
    if (sessions.empty() || model().sessions.size() < character_.sessions) {
        if (sessions.empty() && !player_->outlived().empty()) return tree_died();
        if (sessions.empty() || dice_.percent(20)) {
            open();
            return;
        }
    }
    if (character_.restarts && dice_.percent(1)) {
        Step step;
        step.kind = StepKind::kRestart;
        put(step);
    } else if (dice_.percent(character_.turn_percent)) {
        end_turn();
    } else if (dice_.below(1000) < character_.death_permille) {
        died();
    } else if (!player_->outlived().empty() && dice_.percent(4)) {
        tree_died();
    } else if (character_.strict && dice_.percent(8)) {
        died_of_a_kill();
    } else if (dice_.below(1000) < character_.drain_permille ||
               (model().is_draining && dice_.percent(2))) {
        drain();
    } else if (dice_.below(1000) < character_.change_permille) {
        change_pool();
    } else if (dice_.below(1000) < character_.delete_permille) {
        Step step;
        step.kind = StepKind::kDeletePool;
        step.pool = any_pool(false);
        step.on = dice_.percent(40);
        put(step);
    } else if (character_.promises && promised_slot() != nullptr && dice_.percent(30)) {
        announce();
    } else if (dice_.below(1000) < character_.refusal_permille) {
        refuse_for_now();
    } else if (dice_.percent(3)) {
        steer();
    } else if (character_.priorities && dice_.percent(5)) {
        change_priority();
    } else if (has_parkable() && dice_.percent(25)) {
        harvest();
    } else if (has_lapsing() ? dice_.percent(50) : dice_.below(200) == 0) {
        touch();
    } else if (!write_one_of_accounts() && !write_one_of_dispatch() && !write_one_of_elastic() &&
               !write_one_of_gangs()) {
        switch (dice_.weighed(
            {character_.claim_weight, 4, character_.release_weight, 5, 8, 60, 3, 1})) {
            case 0:
                claim();
                break;
            case 1:
                cancel();
                break;
            case 2:
                release();
                break;
            case 3:
                keepalive();
                break;
            case 4:
                announce();
                break;
            case 5:
                word();
                break;
            case 6:
                adopt();
                break;
            case 7:
                kill_failed();
                break;
            default:
                break;
        }
    }
}

void Writer::open() {
    Step step;
    step.kind = StepKind::kOpen;
    step.open.uid = 1000 + static_cast<uint32_t>(dice_.below(character_.gangs ? 2 : 3));
    step.open.pid = 100 + static_cast<uint32_t>(journal_.steps.size());
    if (character_.accounts && dice_.percent(40)) step.name = any_account();
    step.open.tags_max = character_.large ? uint16_t{64} : dice_.one_of<uint16_t>({2, 6, 64});
    put(step);
}

// In pools of strict expiry: what a kill leads to.
void Writer::died_of_a_kill() {
    for (const auto& [number, lease] : model().leases) {
        if (!lease.is_being_killed || !dice_.percent(60)) continue;
        Step step;
        step.kind = StepKind::kDied;
        step.session = label_of_session(lease.session);
        put(step);
        return;
    }
}

void Writer::died() {
    Step step;
    step.kind = StepKind::kDied;
    step.session = any_session();
    // Rather a worker whose slots others hold.
    for (const auto& [id, slot] : model().slots) {
        const bool works = slot.is == SlotIs::kLeased && slot.session != shm::kNoRow;
        if (works && dice_.percent(50)) step.session = label_of_session(slot.session);
    }
    if (dice_.percent(40)) step.kind = StepKind::kHolderDied;
    put(step);
}

void Writer::tree_died() {
    Step step;
    step.kind = StepKind::kDied;
    step.session = dice_.any(player_->outlived()).first;
    put(step);
}

void Writer::claim() {
    Step step;
    step.kind = StepKind::kClaim;
    step.session = any_session();
    step.pool = dice_.percent(99) ? any_pool(false) : kNoLabel;
    step.claim.tag = any_tag(player_->sessions().at(step.session));
    const bool taken = core_->tag_in_use(player_->sessions().at(step.session), step.claim.tag);
    if (taken && dice_.percent(85)) return;
    if (step.pool != kNoLabel) {
        const core::PoolConfig& pool = model().pools[player_->pool_row(step.pool)].config;
        const bool counted = pool.kind == shm::PoolKind::kCounted;
        const uint64_t most = std::min(pool.units_max, counted ? pool.slots : pool.unconfirmed_max);
        step.claim.units = static_cast<uint16_t>(dice_.percent(65) ? 1 : dice_.between(1, most));
        if (dice_.percent(4))
            step.claim.units = static_cast<uint16_t>(dice_.one_of({uint64_t{0}, most + 1}));
        if (character_.large && dice_.percent(70)) step.claim.units = 250;
        const auto max = pool.payload_max;
        step.payload_size = dice_.one_of<uint32_t>({0, 0, 0, 0, 1, 508, 509, max, max});
        if (dice_.percent(2)) step.payload_size = max + 1;
        if (max > 4096 && dice_.percent(80)) step.payload_size %= 4096;
        if (character_.accounts) step.payload_size %= 1200;
        if (character_.accounts && !character_.units) step.claim.units = 1;
    }
    step.claim.timeout_ns = dice_.one_of<uint64_t>(
        {shm::kNever, shm::kNever, shm::kNever, 0, 1, 2, 5, 10, 30, 100, shm::kNever - 1});
    step.claim.interval_ns = dice_.one_of<uint64_t>({0, 0, 0, 1, 2, 5, 10, 30, 100, shm::kNever});
    step.claim.by_word = dice_.percent(step.claim.interval_ns == 0 ? 2 : 50);
    if (dice_.percent(25)) step.claim.key[0] = static_cast<uint8_t>(dice_.between(1, 4));
    step.claim.when_busy_given = dice_.percent(25);
    step.claim.when_busy = dice_.one_of({WhenBusy::kWait, WhenBusy::kReject, WhenBusy::kCold});
    if (dice_.percent(1))
        step.claim.refusal = dice_.one_of({shm::Reason::kMalformed, shm::Reason::kNoRoom});
    if (character_.priorities) step.claim.priority = any_priority();
    if (character_.accounts) {
        add_terms(step);
        take_longer(step.claim);
    } else if (dice_.percent(20)) {
        step.terms.enqueued_ns = model().now + 3 - std::min<TimeNs>(model().now, dice_.below(25));
    }
    if (dice_.percent(2)) {  // an instant, which may have passed
        step.claim.timeout_ns = shm::kNever;
        step.claim.deadline_ns =
            model().now + 9 - std::min<TimeNs>(model().now + 9, dice_.below(25));
    }
    const bool parks = step.pool != kNoLabel && core_->parks(player_->pool_row(step.pool));
    if (parks && dice_.percent(60)) make_plain(step);
    if (step.pool != kNoLabel && dice_.percent(80)) want_part(step);
    if (!character_.dispatched && dice_.percent(6)) route(step);
    if (character_.several && step.route.members.empty() && dice_.percent(45)) want_several(step);
    if (character_.gangs && dice_.percent(55)) be_member(step);
    put(step);
}

// Of one or two further pools, as much as there is at most; now and then what is none.
void Writer::want_several(Step& step) {
    const uint64_t count = dice_.percent(97) ? dice_.between(1, 2) : dice_.between(3, 9);
    for (uint64_t one = 0; one < count; ++one) {
        const uint32_t pool = dice_.percent(99) ? any_pool(false) : kNoLabel;
        const bool is_known = std::any_of(step.also.begin(),
                                          step.also.end(),
                                          [&](const auto& also) { return also.first == pool; });
        if ((is_known || pool == step.pool) && dice_.percent(98)) continue;
        uint64_t units = 1;
        if (pool != kNoLabel && dice_.percent(40)) {
            const core::PoolConfig& config = model().pools[player_->pool_row(pool)].config;
            const bool counted = config.kind == shm::PoolKind::kCounted;
            units = dice_.between(
                0, std::min(config.units_max, counted ? config.slots : config.unconfirmed_max));
        }
        step.also.emplace_back(pool, static_cast<uint16_t>(std::max<uint64_t>(units, 1)));
    }
    if (step.also.empty()) return;
    if (!dice_.percent(3)) {
        step.least.clear();
        step.most.clear();
        step.claim.offer = 0;
    }
    if (dice_.percent(80)) step.claim.units = std::min<uint16_t>(step.claim.units, 2);
    if (dice_.percent(70)) step.payload_size %= 60;
}

// Mostly of a claim that waits.
void Writer::change_priority() {
    if (label_of_number_.size() < 2) return;
    Step step;
    step.kind = StepKind::kUpdateClaim;
    step.subject = label_of_number_.at(dice_.between(1, label_of_number_.size() - 1));
    if (!model().claims.empty() && dice_.percent(90)) {
        step.subject = label_of_number_.at(dice_.any(model().claims).second.number);
    }
    if (step.subject == kNoLabel) return;  // an application's
    step.terms.priority_given = dice_.percent(95);
    step.claim.priority = any_priority();
    put(step);
}

int32_t Writer::any_priority() {
    return dice_.one_of({0, 1, 1, 1, 2, 2, 3, 1000});
}

void Writer::cancel() {
    if (model().claims.empty() && model().leases.empty() && dice_.percent(85)) return;
    Step step;
    step.kind = StepKind::kCancel;
    step.session = any_session();
    step.tag = static_cast<uint16_t>(dice_.below(8));
    if (!model().claims.empty() && dice_.percent(70)) {
        const Claim& claim = dice_.any(model().claims).second;
        if (claim.is_ask()) return;
        step.session = label_of_session(claim.session);
        step.tag = claim.tag;
    } else if (!model().leases.empty() && dice_.percent(60)) {
        const Lease& lease = dice_.any(model().leases).second;
        step.session = label_of_session(lease.session);
        step.tag = lease.tag;
    }
    put(step);
}

// From outside: a lease by its id, that lives or lived, or a claim that waits or confirms.
void Writer::steer() {
    Step step;
    step.kind = StepKind::kSteer;
    step.interval_ns = dice_.one_of<uint64_t>({0, 1, 9, 40, shm::kNever});
    if (dice_.percent(50)) {
        step.steer = dice_.percent(50) ? core::Steer::Kind::kRelease : core::Steer::Kind::kRenew;
        step.subject = any_lease_label();
    } else {
        step.steer = core::Steer::Kind::kCancel;
        if (model().claims.empty()) return;
        const auto& [number, claim] = dice_.any(model().claims);
        if (claim.is_ask()) return;
        step.subject = label_of_number_[number];
        step.session = label_of_session(claim.session);
        step.tag = claim.tag;
    }
    put(step);
}

// A lease that lives, or lived; now and then of a claim that never had one.
uint32_t Writer::any_lease_label() {
    if (!model().leases.empty() && dice_.percent(85)) {
        return label_of_number_[dice_.any(model().leases).first];
    }
    if (!model().ended.empty() && dice_.percent(85)) {
        const auto recent = std::min<uint64_t>(model().ended.size(), 6);
        return label_of_number_[std::prev(model().ended.end(),
                                          static_cast<std::ptrdiff_t>(1 + dice_.below(recent)))
                                    ->first];
    }
    return label_of_number_[dice_.below(label_of_number_.size())];
}

void Writer::release() {
    if (model().leases.empty() && dice_.percent(85)) return;
    Step step;
    step.kind = StepKind::kRelease;
    step.subject = any_lease_label();
    step.session = any_session();
    step.distance = distance_of_fence(step.subject);
    step.broken = dice_.percent(20);
    for (const auto& [number, lease] : model().leases) {
        if (label_of_number_[number] == step.subject && dice_.percent(92)) {
            step.session = label_of_session(lease.session);
        }
    }
    put(step);
}

void Writer::keepalive() {
    if (model().leases.empty() && dice_.percent(85)) return;
    Step step;
    step.kind = StepKind::kKeepalive;
    step.subject = any_lease_label();
    step.session = any_session();
    step.distance = distance_of_fence(step.subject);
    step.interval_ns = dice_.one_of<uint64_t>({0, 0, 1, 4, 9, 40, shm::kNever});
    for (const auto& [number, lease] : model().leases) {
        if (label_of_number_[number] == step.subject && dice_.percent(92)) {
            step.session = label_of_session(lease.session);
        }
    }
    put(step);
}

void Writer::adopt() {
    if (model().leases.empty() && dice_.percent(90)) return;
    Step step;
    step.kind = StepKind::kAdopt;
    step.subject = any_lease_label();
    step.session = any_session();
    step.tag = any_tag(player_->sessions().at(step.session));
    step.distance = distance_of_fence(step.subject);
    if (dice_.percent(2)) step.refusal = shm::Reason::kUnkillable;
    put(step);
}

void Writer::kill_failed() {
    if (model().leases.empty() && dice_.percent(90)) return;
    Step step;
    step.kind = StepKind::kKillFailed;
    step.subject = any_lease_label();
    for (const auto& [number, lease] : model().leases) {
        if (lease.is_being_killed && dice_.percent(70)) step.subject = label_of_number_[number];
    }
    put(step);
}

// The instants at which the state that was written so far has something due.
std::vector<TimeNs> Writer::instants() const {
    std::vector<TimeNs> instants;
    for (const auto& [number, claim] : model().claims) {
        instants.push_back(claim.deadline_ns);
        if (claim.is_confirming) instants.push_back(claim.reserved_until_ns);
    }
    for (const auto& [id, slot] : model().slots) {
        if (slot.is == SlotIs::kKept) instants.push_back(slot.kept_until_ns);
    }
    for (const TimeNs at : core_->provision_instants())
        instants.push_back(at);
    for (const auto& [number, lease] : model().leases) {
        if (lease.is_uncollected || lease.is_being_killed) continue;
        const bool ends = lease.is_in_grace || lease.is_revoking;
        instants.push_back(ends ? lease.grace_until_ns : lease.expires_ns);
    }
    for (const auto& [number, app] : model().applications) {
        instants.push_back(app.placeholder_until_ns);
        instants.push_back(app.manager_until_ns);
    }
    const TimeNs now = model().now;
    std::erase_if(instants, [&](TimeNs at) { return at >= shm::kNever - 1 || at < now; });
    std::sort(instants.begin(), instants.end());
    return instants;
}

void Writer::end_turn() {
    core_->decide();
    player_->listen();
    while (core_->wants_turn()) {
        core_->begin_turn(model().now);
        player_->turn_opened();
        core_->decide();
        player_->listen();
    }
    player_->forget_lines();
    const TimeNs now = model().now;
    TimeNs at = now + dice_.below(character_.time_max * character_.time_unit + 1);
    const std::vector<TimeNs> due = instants();
    if (!due.empty() && dice_.percent(60)) {
        const uint64_t nearest = dice_.percent(70) ? 1 : due.size();
        at = due[dice_.below(nearest)] + dice_.one_of<uint64_t>({0, 0, 1, 1, 2}) -
             (dice_.percent(15) ? 1 : 0);
    } else if (dice_.percent(15)) {
        at = now - dice_.below(3);  // time does not go back
    }
    Step step;
    step.kind = StepKind::kTurnEnd;
    step.at_ns = at;
    if (character_.restarts && dice_.percent(character_.large ? 50 : 5)) {
        step.death = dice_.one_of({Death::kBeforeClear, Death::kAfterClear});
    }
    core_->begin_turn(at);
    player_->turn_opened();
    put(step);
    // A draining journal goes nowhere: end drains after a while.
    for (uint32_t pool = 0; pool < journal_.pools.size(); ++pool) {
        const uint32_t row = player_->pool_row(pool);
        if (row == shm::kNoRow || !model().pools[row].is_draining || !dice_.percent(30)) continue;
        Step undrain;
        undrain.kind = StepKind::kDrain;
        undrain.pool = pool;
        undrain.on = false;
        put(undrain);
    }
    std::vector<const Slot*> drained;
    for (const auto& [id, slot] : model().slots) {
        if (slot.is_drained && dice_.percent(20)) drained.push_back(&slot);
    }
    for (const Slot* slot : drained) {
        Step undrain;
        undrain.kind = StepKind::kDrain;
        undrain.pool = label_of_pool(slot->pool);
        undrain.number = slot->number;
        undrain.on = false;
        put(undrain);
    }
    for (uint32_t pool = 0; pool < journal_.pools.size(); ++pool) {
        const uint32_t row = player_->pool_row(pool);
        const bool lives = row != shm::kNoRow && !model().pools[row].is_gone &&
                           model().pools[row].name == journal_.pools[pool].name;
        if (dice_.percent(lives ? 1 : 30)) bring_back(pool);
    }
}

uint32_t Writer::any_session() {
    return dice_.any(player_->sessions()).first;
}

uint32_t Writer::label_of_session(uint32_t id) const {
    for (const auto* all : {&player_->sessions(), &player_->outlived()}) {
        for (const auto& [label, row] : *all) {
            if (row == id) return label;
        }
    }
    return kNoLabel;
}

uint32_t Writer::label_of_pool(uint32_t row) const {
    for (uint32_t label = 0; label < journal_.pools.size(); ++label) {
        if (player_->pool_row(label) == row) return label;
    }
    return kNoLabel;
}

uint32_t Writer::any_pool(bool workers_only) {
    std::vector<uint32_t> pools;
    for (uint32_t i = 0; i < journal_.pools.size(); ++i) {
        const bool counted = journal_.pools[i].config.kind == shm::PoolKind::kCounted;
        const bool has_row = player_->pool_row(i) != shm::kNoRow;
        if (has_row && (!workers_only || !counted)) pools.push_back(i);
    }
    return pools.empty() ? 0 : dice_.any(pools);
}

uint16_t Writer::any_tag(uint32_t session_id) {
    const uint16_t tags_max = model().sessions.at(session_id).tags_max;
    if (dice_.percent(4)) return static_cast<uint16_t>(dice_.below(tags_max + uint64_t{2}));
    uint16_t tag = 0;
    while (tag + 1 < tags_max && core_->tag_in_use(session_id, tag))
        ++tag;
    return tag;
}

Journal generate_journal(uint64_t seed, size_t steps, Flavour flavour) {
    return Writer(seed, steps, flavour).take();
}

}  // namespace dibs::naive
