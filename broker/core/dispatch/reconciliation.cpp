// broker/core/dispatch/reconciliation.cpp -- reconciles what a queue says of its entries with the
// processes that are known of them (S1.19 to S1.21).
//
// An entry with an operation under way is left alone until that has ended. Reconciliation comes
// before the pass, so that a second look at the same rows changes nothing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/dispatch/entry_change.hpp"

namespace dibs::core {

using shm::EntryOp;
using shm::EntryState;

std::string_view Dispatch::keep_name(std::string_view name) {
    assert(told_names.size() + name.size() <= told_names.capacity());
    const size_t place = told_names.size();
    told_names.append(name);
    return std::string_view{told_names}.substr(place);
}

Decision& Dispatch::tell(DecisionKind kind, uint32_t row) {
    const shm::EntryRow& entry = state.entries[row];
    Decision& told = turn().decide_that(kind);
    told.pool = entry.pool;
    told.entry = keep_name(name_of(entry));
    told.id = entry.number;
    return told;
}

// Decides an operation, or a start, which is one until its process is reported.
void Dispatch::ask(uint32_t row, EntryOp op) {
    constexpr DecisionKind kKinds[] = {DecisionKind::kStart,
                                       DecisionKind::kLock,
                                       DecisionKind::kUnlock,
                                       DecisionKind::kKillProcess};
    Decision& asked = tell(kKinds[static_cast<size_t>(op)], row);
    const uint32_t worker = state.entries[row].worker;
    if (worker != kNoRow) {
        asked.slot_number = state.slots[worker].number;
        asked.type = state.slots[worker].type;
    }
    change(row, [&](shm::EntryRow& entry) {
        put(entry.asked, entry.asked + 1);
        if (op != EntryOp::kNone) put(entry.op, op);
    });
}

bool Dispatch::reconcile(uint32_t pool) {
    for (uint32_t row = unsettled_.first(pool); row != kNoRow;) {
        const uint32_t next = unsettled_.after(pool, row, by_number());
        do {
            if (turn().full()) return false;
        } while (settle(row));
        row = next;
    }
    return true;
}

// What follows for an unsettled entry, one thing at a time; false: nothing more.
bool Dispatch::settle(uint32_t row) {
    const shm::EntryRow& entry = state.entries[row];
    if (is_settled(entry)) return false;
    const shm::ElasticRow& elastic = state.elastics[entry.pool];
    const bool exited = has_process(entry) && !is_alive(entry);
    const bool held = entry.priority < 1;
    const bool is_newer = exited && elastic.queue_read_ns > entry.exited_ns;
    // S1.20.
    const bool is_sure = state.pools[entry.pool].unknown == 0;
    // What was changed here may be undone by a reading that began before: as long as one may come,
    // the entry is remembered.
    const bool is_seen = entry.changed_ns == kNever ||
                         entry.changed_ns < std::max(elastic.queue_read_ns, entry.event_ns);
    if (is_alive(entry)) {
        ask(row, EntryOp::kKill);
        return false;
    }
    switch (entry.state) {
        case EntryState::kRunning:
            if (!exited || is_newer) {
                if (is_sure) end(row, Outcome::kCancelled, Reason::kWorkerLost);
                return is_sure;
            }
            if (held) forget_process(row);
            return held;
        case EntryState::kLocked:
            if (!exited || is_newer) ask(row, EntryOp::kUnlock);
            return false;
        case EntryState::kQueued:
            if (exited) {
                forget_process(row);
                return true;
            }
            break;
        default:
            break;
    }
    if (entry.state == EntryState::kAbsent || is_seen) forget(row);
    return false;
}

void Dispatch::forget_process(uint32_t row) {
    tell(DecisionKind::kForget, row);
    drop_process(row);
}

void Dispatch::forget(uint32_t row) {
    tell(DecisionKind::kForget, row);
    free_entry(row);
}

}  // namespace dibs::core
