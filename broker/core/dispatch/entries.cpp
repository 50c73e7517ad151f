// broker/core/dispatch/entries.cpp -- applies what is reported and asked of entries of a queue.
//
// Somebody else keeps the queue, so a report is as old as the reading that it comes from: one that
// began before the last local change of the entry says nothing (S1.26).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/dispatch/entry_change.hpp"

namespace dibs::core {

using shm::EntryOp;
using shm::EntryState;
namespace EntryFlag = shm::EntryFlag;

namespace {

bool is_final(const shm::EntryRow& entry) {
    return entry.state == EntryState::kComplete || entry.state == EntryState::kCancelled;
}

EntryState state_of(QueueState told) {
    constexpr auto kFirst = static_cast<uint8_t>(EntryState::kQueued);
    return static_cast<EntryState>(kFirst + static_cast<uint8_t>(told));
}

// Had not the last local change been seen by who began to read the queue then?
bool is_older(TimeNs began_ns, const shm::EntryRow& entry) {
    return entry.changed_ns != kNever && began_ns <= entry.changed_ns;
}

}  // namespace

Reason Dispatch::refusal(uint32_t pool, std::string_view name) const {
    if (!pools().pool_lives(pool)) return Reason::kUnknownPool;
    if (!is_dispatched(pool)) return Reason::kState;
    return name.empty() || name.size() > shm::kNameMax ? Reason::kMalformed : Reason::kOk;
}

void Dispatch::refuse(uint64_t user_data, Reason reason) {
    turn().result(kNoRow, user_data, reason);
}

uint64_t Dispatch::types_of(const EntryReport& report) const {
    if (report.types.empty()) return kAnyType;
    uint64_t found = 0;
    for (const std::string_view name : report.types) {
        const uint32_t type = provisioning().find_type(report.pool, name);
        if (type < kTypesOfEntry) found |= uint64_t{1} << type;
    }
    return found;
}

void Dispatch::apply(const EntryReport& report) {
    if (const Reason reason = refusal(report.pool, report.claim); reason != Reason::kOk) {
        return refuse(report.user_data, reason);
    }
    const TimeNs event_ns = turn().event_time(report.event_ns);
    const uint64_t types = types_of(report);
    uint32_t row = find(report.pool, report.claim);
    const bool returns = row != kNoRow && state.entries[row].state == EntryState::kAbsent;
    if (row != kNoRow) {
        const shm::EntryRow& known = state.entries[row];
        if (is_older(event_ns, known) || event_ns < known.event_ns) return;
    }
    if (types == 0 && row != kNoRow && !returns) {
        if (!is_final(state.entries[row])) end(row, Outcome::kRejected, Reason::kUnavailable);
        return;
    }
    if (types == 0) {  // S1.28
        Decision& ended = turn().decide_that(DecisionKind::kEnd);
        ended.pool = report.pool;
        ended.entry = keep_name(report.claim);
        ended.outcome = Outcome::kRejected;
        ended.reason = Reason::kUnavailable;
        return;
    }
    if (row == kNoRow && free_.empty()) return refuse(report.user_data, Reason::kTablesFull);
    if (row == kNoRow) row = make_entry(report.pool, report.claim);
    const uint64_t named = state.entries[row].types;
    change(row, [&](shm::EntryRow& entry) {
        if (returns) fill_new(entry);
        if (entry.state == EntryState::kAbsent) put(entry.state, EntryState::kQueued);
        if (report.state_given) put(entry.state, state_of(report.state));
        if (report.priority_given) put(entry.priority, report.priority);
        if (report.types_given) put(entry.types, types);
        const uint32_t others = entry.flags & ~uint32_t{EntryFlag::kSupervisor};
        if (report.supervisor_given) {
            put(entry.flags, report.supervisor ? others | EntryFlag::kSupervisor : others);
        }
        put(entry.event_ns, event_ns);
    });
    if (state.entries[row].types != named) unname(named);
}

// A reading that is older than the last one says nothing.
void Dispatch::apply(const QueueRead& read) {
    const Reason reason = refusal(read.pool, "queue");
    if (reason != Reason::kOk) return refuse(read.user_data, reason);
    const shm::ElasticRow& elastic = state.elastics[read.pool];
    if (read.failed || read.started_ns < elastic.queue_read_ns) return;
    shm::ElasticRow& row = edit().row(elastic, 1U << 2U);
    put(row.queue_read_ns, read.started_ns);
    if (row.phase == shm::DispatchPhase::kReading) {
        put(row.phase, shm::DispatchPhase::kStale);
        put(row.stale_until_ns, sum_or_never(turn().now_ns, row.stale_lock_timeout_ns));
    }
    named_.assign(named_.size(), false);
    for (const std::string_view name : read.claims) {
        const uint32_t known = find(read.pool, name);
        if (known != kNoRow) named_[known] = true;
    }
    for (uint32_t at = of_pool_.head(read.pool); at != kNoRow;) {
        const uint32_t next = of_pool_.next(at);
        const shm::EntryRow& entry = state.entries[at];
        const bool is_known_later =
            entry.event_ns >= read.started_ns ||
            (entry.changed_ns != kNever && entry.changed_ns >= read.started_ns);
        if (!named_[at] && !is_known_later) leave_queue(at);
        at = next;
    }
    matcher().touch(read.pool);
}

// It is not in the queue any more, and stays as long as a process of it is known.
void Dispatch::leave_queue(uint32_t row) {
    const shm::EntryRow& entry = state.entries[row];
    if (!has_process(entry)) return free_entry(row);
    if (entry.state == EntryState::kAbsent) return;
    change(row, [](shm::EntryRow& left) { put(left.state, EntryState::kAbsent); });
}

void Dispatch::set_queue_state(uint32_t row, EntryState queue_state) {
    change(row, [&](shm::EntryRow& entry) {
        put(entry.state, queue_state);
        put(entry.changed_ns, turn().now_ns);
    });
}

void Dispatch::end(uint32_t row, Outcome outcome, Reason reason) {
    set_queue_state(row, EntryState::kCancelled);
    Decision& ended = tell(DecisionKind::kEnd, row);
    ended.outcome = outcome;
    ended.reason = reason;
}

// S1.29: it waits again, unless it has been locked too often.
void Dispatch::unlock_ends(uint32_t row) {
    const shm::EntryRow& entry = state.entries[row];
    const uint32_t most = state.elastics[entry.pool].attempts_max;
    if (most != 0 && entry.lock_count >= most) return end(row, Outcome::kCancelled, Reason::kLimit);
    set_queue_state(row, EntryState::kQueued);
}

void Dispatch::apply(const QueueOperation& asked) {
    Reason reason = refusal(asked.pool, asked.claim);
    const uint32_t row = reason == Reason::kOk ? find(asked.pool, asked.claim) : kNoRow;
    if (reason == Reason::kOk) {
        const bool is_there = row != kNoRow && state.entries[row].state != EntryState::kAbsent;
        reason = !is_there                                 ? Reason::kNotFound
                 : state.entries[row].op != EntryOp::kNone ? Reason::kBusy
                 : !allows(state.entries[row], asked.word) ? Reason::kState
                                                           : Reason::kOk;
    }
    if (reason != Reason::kOk) return refuse(asked.user_data, reason);
    matcher().touch(asked.pool);
    switch (asked.word) {
        case QueueWord::kLock:
            change(row, [](shm::EntryRow& entry) { put(entry.lock_count, entry.lock_count + 1); });
            return set_queue_state(row, EntryState::kLocked);
        case QueueWord::kUnlock:
            return unlock_ends(row);
        case QueueWord::kCancel:
            return end(row, Outcome::kCancelled, Reason::kRevoked);
        case QueueWord::kForget:
            return leave_queue(row);
    }
}

// S1.25, S1.27.
bool Dispatch::allows(const shm::EntryRow& entry, QueueWord word) {
    const bool queued = entry.state == EntryState::kQueued;
    switch (word) {
        case QueueWord::kLock:
            return queued && entry.priority >= 1;
        case QueueWord::kUnlock:
            return entry.state == EntryState::kLocked;
        case QueueWord::kCancel:
            return !is_final(entry);
        case QueueWord::kForget:
            return is_final(entry) || (queued && entry.priority < 1);
    }
    return false;
}

// S1.18. A lock or an unlock that has succeeded counts, though a report may have told of it first.
void Dispatch::apply(const OperationDone& done) {
    Reason reason = refusal(done.pool, done.claim);
    const uint32_t row = reason == Reason::kOk ? find(done.pool, done.claim) : kNoRow;
    const bool is_busy = row != kNoRow && state.entries[row].op != EntryOp::kNone;
    if (reason == Reason::kOk && !is_busy) reason = Reason::kNotFound;
    if (reason != Reason::kOk) return refuse(done.user_data, reason);
    const shm::EntryRow& entry = state.entries[row];
    const EntryOp op = entry.op;
    const bool is_hopeless = op == EntryOp::kKill && !done.ok && is_alive(entry);
    change(row, [&](shm::EntryRow& ended) {
        put(ended.op, EntryOp::kNone);
        if (is_hopeless) put(ended.flags, ended.flags | EntryFlag::kHopeless);
    });
    if (is_hopeless) provisioning().slot_changes(entry.worker);
    if (!done.ok) return;
    if (op == EntryOp::kKill) return drop_process(row);
    const bool waits_on = entry.state == EntryState::kQueued || entry.state == EntryState::kLocked;
    if (!waits_on) return;
    if (op == EntryOp::kUnlock) return unlock_ends(row);
    change(row, [](shm::EntryRow& locked) { put(locked.lock_count, locked.lock_count + 1); });
    if (entry.state == EntryState::kQueued) set_queue_state(row, EntryState::kLocked);
}

}  // namespace dibs::core
