// tests/naive/journal_of_elastic.cpp -- pools whose workers are made: their types, and provisioners
// that answer in time, late, twice, wrongly, or not at all.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "tests/naive/journal_writer.hpp"

namespace dibs::naive {

using Answer = core::Provisioned::Answer;
using Scope = core::Provisioned::Scope;
using shm::OrderState;

std::string Writer::any_type() {
    return dice_.one_of<const char*>({"big", "big", "small", "small", "spot"});
}

uint32_t Writer::any_elastic_pool() {
    std::vector<uint32_t> pools;
    for (uint32_t pool = 0; pool < journal_.pools.size(); ++pool) {
        if (core_->is_elastic(player_->pool_row(pool))) pools.push_back(pool);
    }
    return pools.empty() || dice_.percent(2) ? any_pool(false) : dice_.any(pools);
}

// Also of one that is there, which changes it.
void Writer::set_type() {
    Step step;
    step.kind = StepKind::kSetType;
    step.pool = any_elastic_pool();
    step.name = any_type();
    step.type.cost = dice_.between(1, 3);
    if (dice_.percent(1)) step.type.cost = 0;
    step.type.provider_type = dice_.one_of<const char*>({"", "metal", "metal", "cloud"});
    step.type.preemptible = dice_.percent(30);
    step.type.quota_group = dice_.one_of<const char*>({"", "eu", "eu", "us"});
    if (character_.accounts && dice_.percent(60)) step.labels = some_labels(3);
    put(step);
}

void Writer::delete_type() {
    Step step;
    step.kind = StepKind::kDeleteType;
    step.pool = any_elastic_pool();
    step.name = any_type();
    put(step);
}

// Mostly of a type that has no provisioner.
void Writer::provide() {
    Step step;
    step.kind = StepKind::kProvide;
    step.session = any_session();
    step.pool = any_elastic_pool();
    step.name = any_type();
    bool is_free = false;
    for (const auto& [place, type] : model().types) {
        if (type.session != shm::kNoRow || dice_.percent(30)) continue;
        step.pool = label_of_pool(type.pool);
        step.name = type.name;
        is_free = true;
    }
    if (!is_free && dice_.percent(85)) return;
    step.on = dice_.percent(is_free ? 98 : 70);
    if (step.pool != kNoLabel) put(step);
}

// Slots that are or were orders; of none if there is none.
const Slot* Writer::any_order(bool open) {
    std::vector<const Slot*> orders;
    for (const auto& [id, slot] : model().slots) {
        const bool is_open = slot.is == SlotIs::kOrdered;
        if (slot.order != OrderState::kNone && (is_open || !open)) orders.push_back(&slot);
    }
    return orders.empty() ? nullptr : dice_.any(orders);
}

void Writer::provisioned() {
    // Mostly of one that has not been answered, and now and then of one that is gone.
    const Slot* order = any_order(dice_.percent(85));
    for (const auto& [id, slot] : model().slots) {
        if (slot.order == OrderState::kAsked && dice_.percent(50)) order = &slot;
        if (slot.is_stop_told && dice_.percent(25)) order = &slot;
    }
    Step step;
    step.kind = StepKind::kProvisioned;
    step.session = any_session();
    step.subject = order_label(any_elastic_pool(), static_cast<uint32_t>(dice_.below(6)));
    if (order != nullptr && dice_.percent(97)) {
        step.subject = order_label(label_of_pool(order->pool), order->number);
        const uint32_t provisioner = model().types.at(order->type).session;
        if (provisioner != shm::kNoRow && dice_.percent(95))
            step.session = label_of_session(provisioner);
    } else if (order == nullptr && dice_.percent(80)) {
        return;
    }
    static constexpr Answer kAnswers[] = {Answer::kCreated,
                                          Answer::kFailed,
                                          Answer::kQuota,
                                          Answer::kCapacity,
                                          Answer::kOverload,
                                          Answer::kStopped};
    step.answer = kAnswers[dice_.weighed({character_.created_weight,
                                          10,
                                          10,
                                          12,
                                          8,
                                          order != nullptr && order->is_stop_told ? 60U : 4U})];
    step.scope = dice_.one_of({Scope::kEverything, Scope::kQuotaGroup, Scope::kType, Scope::kType});
    if (step.scope == Scope::kQuotaGroup)
        step.name = dice_.one_of<const char*>({"", "", "eu", "us", "none"});
    put(step);
}

// With the order, with one that is not there any more, or with another pool's; or of a type.
void Writer::announce_for_order() {
    const Slot* order = any_order(dice_.percent(96));
    if (order == nullptr) return;
    Step step;
    step.kind = StepKind::kAnnounce;
    step.session = any_session();
    step.pool = dice_.percent(95) ? label_of_pool(order->pool) : any_pool(true);
    step.subject = order_label(label_of_pool(order->pool), order->number);
    step.announce.worker_tag = journal_.steps.size();
    step.announce.is_protected = dice_.percent(10);
    step.announce.ready = dice_.percent(75);
    if (dice_.percent(60)) step.name = "worker" + std::to_string(dice_.below(8));
    if (character_.accounts) {
        step.labels = dice_.percent(80)
                          ? std::vector<std::string>(order->labels.begin(), order->labels.end())
                          : some_labels(3);
    }
    if (dice_.percent(85)) step.labels.emplace_back("gpu");
    if (dice_.percent(10)) step.type_name = any_type();
    if (dice_.percent(3)) step.attributes_size = 10'000;
    announce_vector(step);
    put_announcement(step);
}

// What was told to stop goes, sooner or later.
void Writer::stopped_worker_goes() {
    for (const auto& [id, slot] : model().slots) {
        if (!slot.is_stop_told || slot.session == shm::kNoRow || dice_.percent(60)) continue;
        Step step;
        step.kind = StepKind::kWord;
        step.subject = label_of_slot_.at(slot.id);
        step.session = label_of_session(slot.session);
        step.word.kind = core::WorkerWord::Kind::kWithdraw;
        put(step);
        return;
    }
}

void Writer::put_announcement(const Step& step) {
    put(step);
    const auto slot = player_->slots().find(journal_.steps.back().label);
    if (slot != player_->slots().end()) label_of_slot_.try_emplace(slot->second, slot->first);
}

// False: the step is another one.
bool Writer::write_one_of_elastic() {
    if (!character_.elastic) return false;
    const size_t types = model().types.size();
    const bool has_order = any_order(true) != nullptr;
    if (types < 2 * journal_.pools.size() && dice_.percent(30)) {
        set_type();
    } else if (dice_.percent(1)) {
        dice_.percent(50) ? set_type() : delete_type();
    } else if (dice_.percent(types == 0 ? 1 : character_.provide_percent)) {
        provide();
    } else if (dice_.percent(has_order ? character_.answer_percent : 2)) {
        provisioned();
    } else if (has_order && dice_.percent(character_.announce_percent)) {
        announce_for_order();
    } else if (dice_.percent(5)) {
        stopped_worker_goes();
    } else {
        return false;
    }
    return true;
}

}  // namespace dibs::naive
