// broker/core/dispatch/worker_reports.cpp -- applies what is reported of workers and of processes
// that run on them.
//
// A dispatched worker is a slot without a session: unknown, idle, or recovering, which is booting
// unless an entry's process is alive on it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/dispatch/entry_change.hpp"

namespace dibs::core {

using shm::Behaviour;
using shm::EntryState;
using shm::OrderState;
namespace EntryFlag = shm::EntryFlag;
namespace SlotFlag = shm::SlotFlag;
using Seen = WorkerReport::State;

// The slot of a worker that was not known: the oldest order of its type that is open, else a new
// one (S1.31).
uint32_t Dispatch::worker_for(const WorkerReport& report, Reason* reason) {
    const uint32_t pool = report.pool;
    const uint32_t type = provisioning().find_type(pool, report.type);
    if (type == kNoRow || report.state == Seen::kAbsent) {
        *reason = Reason::kNotFound;
        return kNoRow;
    }
    uint32_t row = kNoRow;
    const uint32_t last = state.elastics[pool].ordered == 0 ? 0 : state.slots.size();
    for (uint32_t at = 0; at < last; ++at) {
        const shm::SlotRow& slot = state.slots[at];
        if (slot.state != SlotState::kOrdered || slot.type != type) continue;
        if (row == kNoRow || slot.number < state.slots[row].number) row = at;
    }
    if (row == kNoRow && pools().slot_rows_left(kNoRow) == 0) {
        *reason = Reason::kTablesFull;
        return kNoRow;
    }
    if (row == kNoRow) row = slots().make_slot(pool);
    shm::SlotRow& slot = edit().row(state.slots[row], 1U << 1U | 1U << 2U | 1U << 3U);
    put(slot.type, type);
    put(slot.order, OrderState::kAnnounced);
    put(slot.stop_told, 0);
    put(slot.boot_until_ns, kNever);  // from now on its probes say whether it boots
    put(slot.announced_ns, turn().now_ns);
    put(slot.modified_ns, turn().now_ns);
    report.worker.copy(slot.name, sizeof(slot.name));
    stored();
    put(slot.name_size, report.worker.size());
    slots().names.insert(workers().name_hash(pool, report.worker), row);
    slots().move_slot(row, SlotState::kRecovering);
    return row;
}

void Dispatch::apply(const WorkerReport& report) {
    Reason reason = refusal(report.pool, report.worker);
    const TimeNs event_ns = turn().event_time(report.event_ns);
    uint32_t row = reason == Reason::kOk ? workers().find_name(report.pool, report.worker) : kNoRow;
    if (row != kNoRow && !report.type.empty() &&
        provisioning().find_type(report.pool, report.type) != state.slots[row].type) {
        reason = Reason::kState;
    }
    if (reason == Reason::kOk && row == kNoRow) row = worker_for(report, &reason);
    if (reason != Reason::kOk) return refuse(report.user_data, reason);
    if (event_ns < state.slots[row].confirmed_ns) return;
    put(edit().row(state.slots[row], 1U << 2U).confirmed_ns, event_ns);
    matcher().touch(report.pool);
    see_worker(row, report.state, event_ns);
}

void Dispatch::see_worker(uint32_t row, Seen seen, TimeNs event_ns) {
    const shm::SlotRow& slot = state.slots[row];
    const bool runs = slot.entry != kNoRow;
    if (seen == Seen::kAbsent) {
        if (runs) drop_process(slot.entry);
        return slots().remove_slot(row);
    }
    if (seen == Seen::kShutdown) return pools().set_behaviour(row, Behaviour::kDrain);
    if (seen == Seen::kIdle && runs) {
        // It may have been seen before the process was started.
        if (event_ns > slot.modified_ns) process_ends(slot.entry, event_ns);
        if (slot.state != SlotState::kUnknown || slot.entry != kNoRow) return;
    }
    const bool is_idle = slot.state == SlotState::kIdle || (slot.flags & SlotFlag::kSaidReady) != 0;
    if (seen == Seen::kIdle) {
        if (is_idle) return;
        put(edit().row(slot, 1U << 2U).modified_ns, turn().now_ns);
        return slots().make_idle(row);
    }
    // What runs there is not known yet, unless an entry's process is.
    const bool is_unknown = seen == Seen::kUnknown || (seen == Seen::kRunning && !runs);
    const SlotState to = is_unknown ? SlotState::kUnknown : SlotState::kRecovering;
    if (slot.state == to && !is_idle) return;
    shm::SlotRow& moved = edit().row(slot, 1U << 2U);
    put(moved.flags, moved.flags & ~uint32_t{SlotFlag::kSaidReady});
    put(moved.modified_ns, turn().now_ns);
    slot.state == to ? provisioning().slot_changes(row) : slots().move_slot(row, to);
}

// The entry's process is alive there.
void Dispatch::run_on(uint32_t row, uint32_t worker, uint8_t flags) {
    shm::SlotRow& slot = edit().row(state.slots[worker], 1U << 1U | 1U << 2U);
    assert(slot.entry == kNoRow && slot.state != SlotState::kOrdered);
    change(row, [&](shm::EntryRow& entry) {
        assert(entry.worker == kNoRow);
        constexpr uint32_t kOfProcess =
            EntryFlag::kProcess | EntryFlag::kStarting | EntryFlag::kHopeless;
        put(entry.flags, (entry.flags & ~kOfProcess) | EntryFlag::kProcess | flags);
        put(entry.exited_ns, kNever);
        put(entry.worker, worker);
    });
    put(slot.entry, row);
    put(slot.flags, slot.flags & ~uint32_t{SlotFlag::kSaidReady});
    put(slot.modified_ns, turn().now_ns);
    slot.state == SlotState::kRecovering ? provisioning().slot_changes(worker)
                                         : slots().move_slot(worker, SlotState::kRecovering);
}

// Nothing runs there any more; whether an unknown one is idle nobody has said.
void Dispatch::leave_worker(uint32_t row) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1U << 1U | 1U << 2U);
    put(slot.entry, kNoRow);
    put(slot.modified_ns, turn().now_ns);
    provisioning().is_of_use(slot.type);
    slot.state == SlotState::kUnknown ? provisioning().slot_changes(row) : slots().make_idle(row);
}

void Dispatch::process_ends(uint32_t row, TimeNs exited_ns) {
    const uint32_t worker = state.entries[row].worker;
    change(row, [&](shm::EntryRow& entry) {
        constexpr uint32_t kOfLive = EntryFlag::kStarting | EntryFlag::kHopeless;
        put(entry.flags, (entry.flags & ~kOfLive) | EntryFlag::kProcess);
        // The time that means "alive" is no time.
        put(entry.exited_ns, std::min(exited_ns, kNever - 1));
        put(entry.worker, kNoRow);
    });
    if (worker != kNoRow) leave_worker(worker);
}

// Nothing is known of its process any more.
void Dispatch::drop_process(uint32_t row) {
    const uint32_t worker = state.entries[row].worker;
    change(row, [&](shm::EntryRow& entry) {
        put(entry.flags, entry.flags & EntryFlag::kSupervisor);
        put(entry.exited_ns, kNever);
        put(entry.worker, kNoRow);
    });
    if (worker != kNoRow) leave_worker(worker);
    if (state.entries[row].state == EntryState::kAbsent) free_entry(row);
}

void Dispatch::apply(const ProcessReport& report) {
    Reason reason = refusal(report.pool, report.worker);
    if (reason == Reason::kOk) reason = refusal(report.pool, report.claim);
    if (reason != Reason::kOk) return refuse(report.user_data, reason);
    const uint32_t worker = workers().find_name(report.pool, report.worker);
    uint32_t row = find(report.pool, report.claim);
    if (report.exited_ns != kNever) {
        if (row == kNoRow) return;
        const shm::EntryRow& entry = state.entries[row];
        if (is_alive(entry) && entry.worker != worker) return;
        const bool exited = has_process(entry) && !is_alive(entry);
        return process_ends(
            row, exited ? std::max(entry.exited_ns, report.exited_ns) : report.exited_ns);
    }
    if (worker == kNoRow) return refuse(report.user_data, Reason::kNotFound);
    if (row == kNoRow && free_.empty()) return refuse(report.user_data, Reason::kTablesFull);
    if (row == kNoRow) row = make_entry(report.pool, report.claim);
    const shm::SlotRow& slot = state.slots[worker];
    if (slot.entry == row) {  // as was known
        constexpr uint32_t kNews = EntryFlag::kStarting | EntryFlag::kHopeless;
        change(row, [&](shm::EntryRow& entry) { put(entry.flags, entry.flags & ~kNews); });
        return provisioning().slot_changes(worker);
    }
    if (slot.entry != kNoRow) process_ends(slot.entry, turn().now_ns);
    if (is_alive(state.entries[row])) process_ends(row, turn().now_ns);  // it has moved
    run_on(row, worker, 0);
}

// S1.38.
void Dispatch::apply(const Probe& probe) {
    const Reason reason = refusal(probe.pool, probe.worker);
    if (reason != Reason::kOk) return refuse(probe.user_data, reason);
    const uint32_t row = workers().find_name(probe.pool, probe.worker);
    if (row == kNoRow) return refuse(probe.user_data, Reason::kNotFound);
    const shm::SlotRow& slot = state.slots[row];
    if (probe.started_ns < slot.modified_ns) return;
    if (probe.ok) {
        return put(edit().row(slot, 1U << 2U).probe_ns, std::max(slot.probe_ns, probe.started_ns));
    }
    const shm::ElasticRow& elastic = state.elastics[probe.pool];
    const bool boots = slot.state == SlotState::kRecovering && slot.entry == kNoRow &&
                       (slot.flags & SlotFlag::kSaidReady) == 0;
    const TimeNs longest = boots || slot.state == SlotState::kUnknown ? elastic.boot_timeout_ns
                                                                      : elastic.probe_timeout_ns;
    const TimeNs since_ns = slot.probe_ns != 0 ? slot.probe_ns : slot.announced_ns;
    const bool is_too_long =
        longest != kNever && probe.started_ns >= since_ns && probe.started_ns - since_ns >= longest;
    if (!is_too_long || slot.behaviour == Behaviour::kHold) return;
    put(edit().row(slot, 1U << 1U).broken, 1);
    pools().set_behaviour(row, Behaviour::kDrain);
    provisioning().slot_changes(row);  // it may have been drained before
}

void Dispatch::apply(const SetBehaviour& set) {
    const auto tell_refusal = [&](Reason reason) { refuse(set.user_data, reason); };
    if (!pools().pool_lives(set.pool)) return tell_refusal(Reason::kUnknownPool);
    if (!provisioning().is_elastic(set.pool)) return tell_refusal(Reason::kState);
    const uint32_t row = pools().find_number(set.pool, set.number);
    if (row == kNoRow) return tell_refusal(Reason::kNotFound);
    if (provisioning().is_being_stopped(state.slots[row])) return tell_refusal(Reason::kState);
    pools().set_behaviour(row, set.behaviour);
}

}  // namespace dibs::core
