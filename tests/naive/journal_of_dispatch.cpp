// tests/naive/journal_of_dispatch.cpp -- dispatched pools: reports of a queue, of workers and of
// processes, which are mostly true, and sometimes late, doubled, contradictory or of nothing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "tests/naive/journal_writer.hpp"

namespace dibs::naive {

using core::QueueState;
using core::QueueWord;

uint32_t Writer::any_dispatched_pool() {
    std::vector<uint32_t> pools;
    for (uint32_t pool = 0; pool < journal_.pools.size(); ++pool) {
        if (core_->is_dispatched(player_->pool_row(pool))) pools.push_back(pool);
    }
    return pools.empty() || dice_.percent(1) ? any_pool(false) : dice_.any(pools);
}

// Mostly of that pool, and one that `wanted` likes, if there is one.
template <class Wanted>
const Entry* Writer::any_entry(uint32_t pool, const Wanted& wanted) {
    std::vector<const Entry*> entries;
    for (const auto& [id, entry] : model().entries) {
        if (label_of_pool(entry.pool) == pool && wanted(entry)) entries.push_back(&entry);
    }
    return entries.empty() ? nullptr : dice_.any(entries);
}

const Entry* Writer::any_entry(uint32_t pool) {
    return any_entry(pool, [](const Entry&) { return true; });
}

const Slot* Writer::any_worker_slot(uint32_t pool) {
    std::vector<const Slot*> slots;
    for (const auto& [id, slot] : model().slots) {
        const bool is_there = slot.is != SlotIs::kOrdered && !slot.name.empty();
        if (label_of_pool(slot.pool) == pool && is_there) slots.push_back(&slot);
    }
    return slots.empty() ? nullptr : dice_.any(slots);
}

// Around instants on which something depends.
TimeNs Writer::instant_near(std::initializer_list<TimeNs> instants) {
    std::vector<TimeNs> known = {model().now, model().now};
    for (const TimeNs at : instants)
        if (at != 0 && at < shm::kNever - 1) known.push_back(at);
    return dice_.any(known) + dice_.one_of<TimeNs>({0, 0, 0, 1, 2}) -
           dice_.one_of<TimeNs>({0, 0, 0, 1, 2});
}

// Mostly one that it has.
std::string Writer::any_type_of(uint32_t pool) {
    std::vector<std::string> names;
    for (const auto& [place, type] : model().types)
        if (label_of_pool(type.pool) == pool) names.push_back(type.name);
    return names.empty() || dice_.percent(4) ? any_type() : dice_.any(names);
}

std::string Writer::entry_name() {
    return "entry" + std::to_string(dice_.below(character_.entries));
}

void Writer::report_entry() {
    Step step;
    step.kind = StepKind::kEntryReport;
    step.pool = any_dispatched_pool();
    step.name = entry_name();
    const Entry* known = dice_.percent(40) ? any_entry(step.pool) : nullptr;
    if (known != nullptr) step.name = known->name;
    step.dispatch.state_given = dice_.percent(80);
    step.dispatch.state = dice_.one_of({QueueState::kQueued,
                                        QueueState::kQueued,
                                        QueueState::kQueued,
                                        QueueState::kLocked,
                                        QueueState::kRunning,
                                        QueueState::kComplete,
                                        QueueState::kCancelled});
    if (known != nullptr && dice_.percent(60)) {
        // The queue goes on as it was asked to.
        const bool runs = known->has_process && known->exited_ns == shm::kNever;
        step.dispatch.state = runs ? QueueState::kRunning : QueueState::kComplete;
        if (known->is == EntryIs::kQueued) step.dispatch.state = QueueState::kQueued;
    }
    step.terms.priority_given = dice_.percent(known == nullptr ? 90 : 30);
    step.claim.priority = any_priority();
    if (step.claim.priority == 0 && dice_.percent(60)) step.claim.priority = 1;
    step.dispatch.supervisor_given = dice_.percent(known == nullptr ? 80 : 20);
    step.dispatch.supervisor = dice_.percent(character_.supervisor_percent);
    step.dispatch.types_given = dice_.percent(35);
    if (step.dispatch.types_given && dice_.percent(95)) {
        step.dispatch.types.push_back(any_type_of(step.pool));
        if (dice_.percent(40)) step.dispatch.types.push_back(any_type_of(step.pool));
        if (dice_.percent(4)) step.dispatch.types = {"unheard-of"};
    }
    step.terms.event_ns = known == nullptr && dice_.percent(60)
                              ? shm::kNever
                              : instant_near({known != nullptr ? known->changed_ns : 0,
                                              known != nullptr ? known->event_ns : 0});
    if (dice_.percent(40)) step.terms.event_ns = shm::kNever;
    put(step);
}

void Writer::read_queue() {
    Step step;
    step.kind = StepKind::kQueueRead;
    step.pool = any_dispatched_pool();
    step.dispatch.ok = dice_.percent(88);
    TimeNs other = 0;
    for (const auto& [id, entry] : model().entries) {
        if (label_of_pool(entry.pool) != step.pool) continue;
        if (dice_.percent(character_.named_percent)) step.labels.push_back(entry.name);
        if (dice_.percent(40)) other = entry.changed_ns;
        if (dice_.percent(40)) other = entry.event_ns;
        if (entry.has_process && dice_.percent(60)) other = entry.exited_ns;
    }
    if (dice_.percent(3)) step.labels.emplace_back("unheard-of");
    step.terms.event_ns = instant_near({other, other});
    put(step);
}

void Writer::operate_queue() {
    Step step;
    step.kind = StepKind::kQueueOperation;
    step.pool = any_dispatched_pool();
    step.name = entry_name();
    const Entry* known = any_entry(step.pool);
    if (known != nullptr && dice_.percent(95)) step.name = known->name;
    step.dispatch.word = dice_.one_of({QueueWord::kLock,
                                       QueueWord::kLock,
                                       QueueWord::kUnlock,
                                       QueueWord::kUnlock,
                                       QueueWord::kCancel,
                                       QueueWord::kForget});
    put(step);
}

// Mostly of what is under way.
void Writer::end_operation() {
    Step step;
    step.kind = StepKind::kOperationDone;
    step.pool = any_dispatched_pool();
    step.name = entry_name();
    const Entry* known = any_entry(
        step.pool, [](const Entry& entry) { return entry.operation != Operation::kNone; });
    if (known == nullptr && dice_.percent(97)) return;
    if (known != nullptr && dice_.percent(97)) step.name = known->name;
    step.dispatch.ok = dice_.percent(85);
    put(step);
}

void Writer::report_worker() {
    Step step;
    step.kind = StepKind::kWorkerReport;
    step.pool = any_dispatched_pool();
    step.dispatch.worker = "worker" + std::to_string(dice_.below(8));
    step.type_name = any_type_of(step.pool);
    const Slot* order = any_order(true);
    const Slot* known = any_worker_slot(step.pool);
    using State = core::WorkerReport::State;
    step.dispatch.worker_state = dice_.one_of({State::kUnknown,
                                               State::kBooting,
                                               State::kIdle,
                                               State::kIdle,
                                               State::kIdle,
                                               State::kRunning});
    for (const auto& [id, slot] : model().slots) {
        const bool goes = slot.is_stop_told && label_of_pool(slot.pool) == step.pool;
        if (goes && dice_.percent(25)) known = &slot;
    }
    const bool goes = known != nullptr && known->is_stop_told;
    if (order != nullptr && !goes && dice_.percent(50)) {
        step.pool = label_of_pool(order->pool);
        step.type_name = model().types.at(order->type).name;
    } else if (known != nullptr && dice_.percent(85)) {
        step.dispatch.worker = known->name;
        const auto type = model().types.find(known->type);
        if (type != model().types.end() && dice_.percent(97)) step.type_name = type->second.name;
        if (known->entry != 0 && dice_.percent(70)) step.dispatch.worker_state = State::kRunning;
        if (dice_.percent(known->is_stop_told ? 60 : 4)) {
            step.dispatch.worker_state = dice_.percent(70) ? State::kAbsent : State::kShutdown;
        }
        if (dice_.percent(50)) step.terms.event_ns = instant_near({known->confirmed_ns});
    }
    if (dice_.percent(1)) step.type_name = "unheard-of";
    put(step);
}

// What was started runs, sooner or later it has exited; and now and then something else runs.
void Writer::report_process() {
    Step step;
    step.kind = StepKind::kProcess;
    step.pool = any_dispatched_pool();
    step.name = entry_name();
    const Slot* worker = any_worker_slot(step.pool);
    step.dispatch.worker = worker != nullptr && dice_.percent(97)
                               ? worker->name
                               : "worker" + std::to_string(dice_.below(8));
    const Entry* known = any_entry(step.pool, [](const Entry& entry) { return entry.has_process; });
    if (known != nullptr && dice_.percent(85)) {
        step.name = known->name;
        const auto slot = model().slots.find(known->worker);
        if (slot != model().slots.end() && dice_.percent(95))
            step.dispatch.worker = slot->second.name;
    } else if (worker != nullptr && dice_.percent(60)) {
        const Entry* other = any_entry(step.pool);
        if (other != nullptr) step.name = other->name;
    } else if (dice_.percent(70)) {
        return;
    }
    step.terms.event_ns = shm::kNever;
    if (dice_.percent(45)) {
        step.terms.event_ns =
            instant_near({model().pools.empty()
                              ? 0
                              : model().pools[player_->pool_row(step.pool)].elastic.queue_read_ns});
    }
    put(step);
}

void Writer::probe() {
    Step step;
    step.kind = StepKind::kProbe;
    step.pool = any_dispatched_pool();
    const Slot* worker = any_worker_slot(step.pool);
    if (worker == nullptr && dice_.percent(95)) return;
    step.dispatch.worker = worker != nullptr ? worker->name : "worker1";
    step.dispatch.ok = dice_.percent(40);
    step.terms.event_ns = instant_near({});
    if (worker != nullptr && dice_.percent(70)) {
        const core::PoolConfig& pool = model().pools[worker->pool].config;
        step.terms.event_ns = instant_near({worker->modified_ns,
                                            worker->probe_ns + pool.probe_timeout_ns,
                                            worker->came_ns + pool.boot_timeout_ns});
    }
    put(step);
}

void Writer::set_behaviour() {
    Step step;
    step.kind = StepKind::kBehaviour;
    step.pool = dice_.percent(90) ? any_dispatched_pool() : any_pool(false);
    const Slot* worker = any_worker_slot(step.pool);
    if (worker == nullptr && dice_.percent(95)) return;
    step.number = worker != nullptr && dice_.percent(97) ? worker->number : 0;
    using Is = shm::Behaviour;
    step.dispatch.behaviour = dice_.one_of({Is::kRun, Is::kRun, Is::kHold, Is::kHold, Is::kDrain});
    put(step);
}

bool Writer::all_queues_are_read() const {
    for (uint32_t pool = 0; pool < model().pools.size(); ++pool) {
        const bool is_read = model().pools[pool].elastic.phase != Elastic::Phase::kReading;
        if (core_->is_dispatched(pool) && !is_read) return false;
    }
    return true;
}

// False: the step is another one.
bool Writer::write_one_of_dispatch() {
    if (!character_.dispatched || dice_.percent(8)) return false;
    const bool has_order = any_order(true) != nullptr;
    const uint64_t read_weight =
        all_queues_are_read() ? character_.read_weight : character_.first_read_weight;
    switch (dice_.weighed({character_.entry_weight,
                           read_weight,
                           4,
                           character_.operation_weight,
                           character_.worker_weight,
                           character_.process_weight,
                           5,
                           4,
                           3,
                           character_.provide_percent,
                           has_order ? character_.answer_percent : 1})) {
        case 0:
            report_entry();
            break;
        case 1:
            read_queue();
            break;
        case 2:
            operate_queue();
            break;
        case 3:
            end_operation();
            break;
        case 4:
            report_worker();
            break;
        case 5:
            report_process();
            break;
        case 6:
            probe();
            break;
        case 7:
            set_behaviour();
            break;
        case 8:
            set_type();
            break;
        case 9:
            provide();
            break;
        default:
            provisioned();
            break;
    }
    return true;
}

}  // namespace dibs::naive
