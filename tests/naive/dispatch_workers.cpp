// tests/naive/dispatch_workers.cpp -- what is reported of workers that attach nowhere, and of the
// processes on them.
//
// What names a statement is written from it, what quotes is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using shm::OrderState;
using shm::Reason;
using State = core::WorkerReport::State;

// Alive there; so that the worker is not unknown.
void NaiveCore::put_on(Entry& entry, Slot& worker) {
    entry.has_process = true;
    entry.exited_ns = shm::kNever;
    entry.worker = worker.id;
    worker.entry = entry.id;
    worker.modified_ns = m_.now;
    worker.only_waits_for_admission = false;
    worker.is = SlotIs::kRecovering;
}

// Its worker, if it was alive, "is idle, unless it is unknown".
void NaiveCore::process_has_exited(Entry& entry, TimeNs at) {
    entry.exited_ns = at;
    entry.is_starting = false;
    entry.is_hopeless = false;
    const auto worker = m_.slots.find(std::exchange(entry.worker, kNoWorker));
    if (worker == m_.slots.end()) return;
    Slot& slot = worker->second;
    slot.entry = 0;
    slot.modified_ns = m_.now;
    m_.types.at(slot.type).backoff_ns = 0;  // as at a lease's end
    m_.types.at(slot.type).failed_until_ns = 0;
    if (slot.is != SlotIs::kUnknown) become_idle(slot.id);
}

// Nothing is known of it any more.
void NaiveCore::process_is_gone(uint64_t id) {
    Entry& entry = m_.entries.at(id);
    if (entry.worker != kNoWorker) process_has_exited(entry, m_.now);
    entry.has_process = false;
    entry.exited_ns = shm::kNever;
    entry.is_hopeless = false;
    entry.is_starting = false;
    if (entry.is == EntryIs::kAbsent) leave_queue(entry);
}

// S1.31: "the ordered slot of that type with the lowest number"; else it came by itself.
Slot* NaiveCore::new_worker(uint32_t pool, std::string_view name, uint32_t type) {
    Slot* slot = nullptr;
    for (auto& [id, known] : m_.slots) {
        const bool is_open =
            known.pool == pool && known.type == type && known.is == SlotIs::kOrdered;
        if (is_open && (slot == nullptr || known.number < slot->number)) slot = &known;
    }
    if (slot == nullptr) {
        if (slot_rows_used() >= limits_.slots) return nullptr;
        const uint64_t id = m_.slots_seen++;
        slot = &m_.slots[id];
        slot->id = id;
        slot->pool = pool;
        slot->number = m_.pools.at(pool).number_next++;
        slot->type = type;
    }
    slot->is = SlotIs::kRecovering;
    slot->order = OrderState::kAnnounced;
    slot->boot_until_ns = shm::kNever;
    slot->name = name;
    slot->came_ns = m_.now;
    slot->modified_ns = m_.now;
    return slot;
}

void NaiveCore::apply(const core::WorkerReport& report) {
    const auto tell = [&](Reason reason) { tell_result(shm::kNoRow, report.user_data, reason); };
    const Reason refusal = dispatch_refusal(report.pool, {report.worker});
    if (refusal != Reason::kOk) return tell(refusal);
    const TimeNs at = event_time(report.event_ns);
    Slot* slot = slot_named(report.pool, report.worker);
    const uint32_t type = type_named(report.pool, report.type);
    if (slot == nullptr) {
        if (type == shm::kNoRow || report.state == State::kAbsent) return tell(Reason::kNotFound);
        slot = new_worker(report.pool, report.worker, type);
        if (slot == nullptr) return tell(Reason::kTablesFull);
    } else {
        if (!report.type.empty() && type != slot->type) return tell(Reason::kState);
        if (at < slot->confirmed_ns) return;
    }
    slot->confirmed_ns = at;
    worker_says(*slot, report.state, at);
}

void NaiveCore::worker_says(Slot& slot, State state, TimeNs at) {
    const uint64_t id = slot.id;
    const bool is_ready = slot.is == SlotIs::kIdle || is_only_waiting(slot);
    switch (state) {
        case State::kRunning:
            if (slot.entry != 0) return worker_says(slot, State::kBooting, at);
            [[fallthrough]];
        case State::kUnknown:
            if (slot.is == SlotIs::kUnknown) return;
            slot.is = SlotIs::kUnknown;
            break;
        case State::kBooting:
            if (slot.is == SlotIs::kRecovering && !is_ready) return;
            slot.is = SlotIs::kRecovering;
            break;
        case State::kIdle:
            // A process is newer than what says that there is none.
            if (is_ready || (slot.entry != 0 && at <= slot.modified_ns)) return;
            slot.modified_ns = m_.now;
            if (slot.entry != 0) process_has_exited(m_.entries.at(slot.entry), at);
            if (slot.is != SlotIs::kIdle && !is_only_waiting(slot)) become_idle(id);
            return;
        case State::kShutdown:
            return behave(slot, shm::Behaviour::kDrain);
        case State::kAbsent:
            if (slot.entry != 0) process_is_gone(slot.entry);
            return leave(id);
    }
    slot.only_waits_for_admission = false;
    slot.modified_ns = m_.now;
}

void NaiveCore::apply(const core::ProcessReport& report) {
    const auto tell = [&](Reason reason) { tell_result(shm::kNoRow, report.user_data, reason); };
    const Reason refusal = dispatch_refusal(report.pool, {report.worker, report.claim});
    if (refusal != Reason::kOk) return tell(refusal);
    Slot* worker = slot_named(report.pool, report.worker);
    Entry* entry = entry_named(report.pool, report.claim);
    if (report.exited_ns != shm::kNever) {
        if (entry == nullptr) return;
        const bool is_alive = entry->has_process && entry->exited_ns == shm::kNever;
        if (is_alive && (worker == nullptr || worker->id != entry->worker)) return;
        const bool has_exited = entry->has_process && !is_alive;
        entry->has_process = true;
        const TimeNs before = has_exited ? entry->exited_ns : 0;
        process_has_exited(*entry, std::max(before, report.exited_ns));
        return;
    }
    if (worker == nullptr) return tell(Reason::kNotFound);
    if (entry == nullptr) {
        entry = new_entry(report.pool, report.claim);
        if (entry == nullptr) return tell(Reason::kTablesFull);
        entry->is = EntryIs::kAbsent;
    }
    entry->is_starting = false;
    entry->is_hopeless = false;
    if (entry->worker == worker->id) return;
    if (entry->worker != kNoWorker) process_has_exited(*entry, m_.now);
    if (worker->entry != 0) process_has_exited(m_.entries.at(worker->entry), m_.now);
    put_on(*entry, *worker);
}

// S1.38. Of a worker that has booted, and of one that has not.
void NaiveCore::apply(const core::Probe& probe) {
    const auto tell = [&](Reason reason) { tell_result(shm::kNoRow, probe.user_data, reason); };
    const Reason refusal = dispatch_refusal(probe.pool, {probe.worker});
    if (refusal != Reason::kOk) return tell(refusal);
    Slot* worker = slot_named(probe.pool, probe.worker);
    if (worker == nullptr) return tell(Reason::kNotFound);
    if (probe.started_ns < worker->modified_ns) return;
    if (probe.ok) {
        worker->probe_ns = std::max(worker->probe_ns, probe.started_ns);
        return;
    }
    const core::PoolConfig& pool = m_.pools.at(probe.pool).config;
    const bool is_booting = worker->is == SlotIs::kRecovering && worker->entry == 0 &&
                            !worker->only_waits_for_admission;
    const TimeNs most =
        is_booting || worker->is == SlotIs::kUnknown ? pool.boot_timeout_ns : pool.probe_timeout_ns;
    const TimeNs good = worker->probe_ns != 0 ? worker->probe_ns : worker->came_ns;
    const bool is_over =
        most != shm::kNever && probe.started_ns >= good && probe.started_ns - good >= most;
    if (!is_over || worker->is_held) return;
    worker->is_broken = true;
    behave(*worker, shm::Behaviour::kDrain);
}

// S1.35 to S1.37, S1.39
void NaiveCore::apply(const core::SetBehaviour& set) {
    const auto tell = [&](Reason reason) { tell_result(shm::kNoRow, set.user_data, reason); };
    if (!pool_lives(set.pool)) return tell(Reason::kUnknownPool);
    if (!is_elastic(set.pool)) return tell(Reason::kState);
    const auto known = std::find_if(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
        return entry.second.pool == set.pool && entry.second.number == set.number;
    });
    if (known == m_.slots.end()) return tell(Reason::kNotFound);
    if (known->second.is_stop_told) return tell(Reason::kState);
    behave(known->second, set.behaviour);
}

void NaiveCore::behave(Slot& slot, shm::Behaviour behaviour) {
    const bool is_held = behaviour == shm::Behaviour::kHold;
    const bool is_drained = behaviour == shm::Behaviour::kDrain;
    if (slot.is_stop_told || (slot.is_held == is_held && slot.is_drained == is_drained)) {
        return;
    }
    slot.is_held = is_held;
    slot.is_drained = is_drained;
    slot.is_protected = is_held || is_drained;
    if (!slot.holder_is_killed && slot.is_protected) protect(slot);
    if (!slot.holder_is_killed && !slot.is_protected) admit_if_only_waiting(slot);
}

}  // namespace dibs::naive
