// tests/naive/dispatch_table.cpp -- reconciles a queue that is kept elsewhere with what really
// runs: the table of S1.
//
// What names a statement is written from it, what quotes is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

using core::DecisionKind;
using shm::Outcome;
using shm::Reason;

// "Until nothing more follows."
void NaiveCore::reconcile(uint64_t id) {
    while (m_.entries.contains(id) && reconcile_once(m_.entries.at(id))) {
    }
}

// S1.19. Rows of the table by what the queue says, its columns by what the pool has. One step at a
// time: an operation is waited for (S1.18). False: nothing is to be done.
bool NaiveCore::reconcile_once(Entry& entry) {
    if (entry.operation != Operation::kNone) return false;
    const bool is_alive = entry.has_process && entry.exited_ns == shm::kNever;
    const bool has_exited = entry.has_process && !is_alive;
    // S1.21: the reading began strictly after the exit.
    const bool is_newer =
        has_exited && m_.pools.at(entry.pool).elastic.queue_read_ns > entry.exited_ns;
    const bool is_on_hold = entry.priority < 1;
    switch (entry.is) {
        case EntryIs::kRunning:
            if (is_alive) return is_on_hold && kill(entry);
            if (!entry.has_process || is_newer) {  // S1.20
                return !has_unknown_worker(entry.pool) && cancel(entry, Reason::kWorkerLost);
            }
            return is_on_hold && drop_exited(entry);
        case EntryIs::kComplete:
        case EntryIs::kCancelled:
            if (is_alive) return kill(entry);
            return may_be_forgotten(entry) && forget(entry);
        case EntryIs::kQueued:
            if (is_alive) return kill(entry);
            if (has_exited) return drop_exited(entry);
            return is_on_hold && may_be_forgotten(entry) && forget(entry);
        case EntryIs::kLocked:
            if (is_alive) return is_on_hold && kill(entry);
            if (has_exited) return is_newer && begin(entry, Operation::kUnlock);
            return is_on_hold && begin(entry, Operation::kUnlock);
        case EntryIs::kAbsent:
            return is_alive ? kill(entry) : forget(entry);
    }
    return false;
}

// S1.26: what was changed here is kept until its queue has been looked at again, or a report that
// is older would bring it back.
bool NaiveCore::may_be_forgotten(const Entry& entry) const {
    const TimeNs seen = std::max(m_.pools.at(entry.pool).elastic.queue_read_ns, entry.event_ns);
    return entry.changed_ns == shm::kNever || entry.changed_ns < seen;
}

// S1.37: one that could not be killed is hopeless, and not asked for again until it is reported.
bool NaiveCore::kill(Entry& entry) {
    return !entry.is_hopeless && begin(entry, Operation::kKill);
}

bool NaiveCore::cancel(Entry& entry, Reason reason) {
    entry.is = EntryIs::kCancelled;
    entry.changed_ns = m_.now;
    end_entry(entry, Outcome::kCancelled, reason);
    return true;
}

void NaiveCore::end_entry(const Entry& entry, Outcome outcome, Reason reason) {
    core::Decision& end = tell_of_entry(DecisionKind::kEnd, entry);
    end.outcome = outcome;
    end.reason = reason;
}

// The entry stays.
bool NaiveCore::drop_exited(Entry& entry) {
    tell_of_entry(DecisionKind::kForget, entry);
    process_is_gone(entry.id);
    return true;
}

bool NaiveCore::forget(Entry& entry) {
    tell_of_entry(DecisionKind::kForget, entry);
    entry.has_process = false;
    leave_queue(entry);
    return true;
}

}  // namespace dibs::naive
