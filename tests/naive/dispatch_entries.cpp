// tests/naive/dispatch_entries.cpp -- what is reported of a queue that is kept elsewhere, and what
// becomes of the operations on it.
//
// What names a statement is written from it, what quotes is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using shm::Outcome;
using shm::Reason;

namespace {

EntryIs state_of(core::QueueState state) {
    switch (state) {
        case core::QueueState::kQueued:
            return EntryIs::kQueued;
        case core::QueueState::kLocked:
            return EntryIs::kLocked;
        case core::QueueState::kRunning:
            return EntryIs::kRunning;
        case core::QueueState::kComplete:
            return EntryIs::kComplete;
        case core::QueueState::kCancelled:
            return EntryIs::kCancelled;
    }
    return EntryIs::kQueued;
}

bool is_final(const Entry& entry) {
    return entry.is == EntryIs::kComplete || entry.is == EntryIs::kCancelled;
}

}  // namespace

// "malformed: a name that is empty or longer than 63."
Reason NaiveCore::dispatch_refusal(uint32_t pool,
                                   std::initializer_list<std::string_view> names) const {
    if (!pool_lives(pool)) return Reason::kUnknownPool;
    if (!is_dispatched(pool)) return Reason::kState;
    const bool are_sound = std::all_of(names.begin(), names.end(), [](std::string_view name) {
        return !name.empty() && name.size() <= shm::kNameMax;
    });
    return are_sound ? Reason::kOk : Reason::kMalformed;
}

Entry* NaiveCore::entry_named(uint32_t pool, std::string_view name) {
    for (auto& [id, entry] : m_.entries) {
        if (entry.pool == pool && entry.name == name) return &entry;
    }
    return nullptr;
}

Entry* NaiveCore::new_entry(uint32_t pool, std::string_view name) {
    if (m_.entries.size() >= limits_.entries) return nullptr;
    Entry entry;
    entry.id = ++m_.entries_seen;
    entry.number = ++m_.pools.at(pool).elastic.entries_seen;
    entry.pool = pool;
    entry.name = name;
    return &(m_.entries[entry.id] = entry);
}

// "Unknown names beside known ones are passed over." None: any.
std::optional<std::set<uint32_t>> NaiveCore::types_named(
    uint32_t pool, std::span<const std::string_view> names) const {
    if (names.empty()) return {};
    std::set<uint32_t> places;
    for (const std::string_view name : names) {
        const uint32_t place = type_named(pool, name);
        if (place != shm::kNoRow) places.insert(place);
    }
    return places;
}

// S1.26: what was changed here behind the beginning of a reading is not undone by it. S1.28.
void NaiveCore::apply(const core::EntryReport& report) {
    const auto tell = [&](Reason reason) { tell_result(shm::kNoRow, report.user_data, reason); };
    const Reason refusal = dispatch_refusal(report.pool, {report.claim});
    if (refusal != Reason::kOk) return tell(refusal);
    const TimeNs at = event_time(report.event_ns);
    Entry* known = entry_named(report.pool, report.claim);
    if (known != nullptr) {
        const bool is_protected = known->changed_ns != shm::kNever && at <= known->changed_ns;
        if (is_protected || at < known->event_ns) return;
    }
    const auto types = types_named(report.pool, report.types);
    if (report.types_given && types && types->empty()) {
        suits_no_type(report, known);
        return;
    }
    if (known == nullptr) known = new_entry(report.pool, report.claim);
    if (known == nullptr) return tell(Reason::kTablesFull);
    Entry& entry = *known;
    const auto named = entry.types;
    if (entry.is == EntryIs::kAbsent) come_back(entry);
    entry.event_ns = at;
    if (report.types_given) entry.types = types;
    if (report.state_given) entry.is = state_of(report.state);
    if (report.priority_given) entry.priority = report.priority;
    if (report.supervisor_given) entry.is_supervisor = report.supervisor;
    for (const uint32_t place : named.value_or(std::set<uint32_t>{}))
        type_goes(place);
}

// "It is as new, but keeps its process."
void NaiveCore::come_back(Entry& entry) {
    Entry fresh;
    fresh.id = entry.id;
    fresh.pool = entry.pool;
    fresh.name = entry.name;
    fresh.number = ++m_.pools.at(entry.pool).elastic.entries_seen;
    fresh.operation = entry.operation;
    fresh.has_process = entry.has_process;
    fresh.is_starting = entry.is_starting;
    fresh.is_hopeless = entry.is_hopeless;
    fresh.worker = entry.worker;
    fresh.exited_ns = entry.exited_ns;
    entry = fresh;
}

// S1.28: "it never appears". One that is in the queue is cancelled.
void NaiveCore::suits_no_type(const core::EntryReport& report, Entry* known) {
    if (known != nullptr && is_final(*known)) return;
    if (known == nullptr || known->is == EntryIs::kAbsent) {
        Entry never;
        never.pool = report.pool;
        never.name = report.claim;
        end_entry(never, Outcome::kRejected, Reason::kUnavailable);
        return;
    }
    known->is = EntryIs::kCancelled;
    known->changed_ns = m_.now;
    end_entry(*known, Outcome::kRejected, Reason::kUnavailable);
}

// S1.21, S1.22, S1.26
void NaiveCore::apply(const core::QueueRead& read) {
    const Reason refusal = dispatch_refusal(read.pool, {});
    if (refusal != Reason::kOk) return tell_result(shm::kNoRow, read.user_data, refusal);
    Elastic& elastic = m_.pools.at(read.pool).elastic;
    if (read.failed || read.started_ns < elastic.queue_read_ns) return;
    if (elastic.phase == Elastic::Phase::kReading) {
        elastic.phase = Elastic::Phase::kStale;
        elastic.stale_until_ns = later(m_.now, m_.pools.at(read.pool).config.stale_lock_timeout_ns);
    }
    elastic.queue_read_ns = read.started_ns;
    for (const uint64_t id : entries_by_number(read.pool)) {
        Entry& entry = m_.entries.at(id);
        const bool is_named =
            std::find(read.claims.begin(), read.claims.end(), entry.name) != read.claims.end();
        const bool was_changed =
            entry.changed_ns != shm::kNever && entry.changed_ns >= read.started_ns;
        if (is_named) {
            continue;
        } else if (!was_changed && entry.event_ns < read.started_ns) {
            leave_queue(entry);
        }
    }
}

void NaiveCore::leave_queue(Entry& entry) {
    if (entry.has_process) {
        entry.is = EntryIs::kAbsent;
    } else {
        const auto named = entry.types;
        m_.entries.erase(entry.id);
        for (const uint32_t place : named.value_or(std::set<uint32_t>{}))
            type_goes(place);
    }
}

// S1.25, S1.27
Reason NaiveCore::operation_refusal(const Entry* entry, core::QueueWord word) const {
    if (entry == nullptr || entry->is == EntryIs::kAbsent) return Reason::kNotFound;
    if (entry->operation != Operation::kNone) return Reason::kBusy;
    bool may = false;
    switch (word) {
        case core::QueueWord::kLock:  // S1.29
            may = entry->is == EntryIs::kQueued && entry->priority >= 1;
            break;
        case core::QueueWord::kUnlock:
            may = entry->is == EntryIs::kLocked;
            break;
        case core::QueueWord::kCancel:
            may = !is_final(*entry);
            break;
        case core::QueueWord::kForget:
            may = is_final(*entry) || (entry->is == EntryIs::kQueued && entry->priority < 1);
            break;
    }
    return may ? Reason::kOk : Reason::kState;
}

void NaiveCore::apply(const core::QueueOperation& operation) {
    Reason refusal = dispatch_refusal(operation.pool, {operation.claim});
    Entry* entry = nullptr;
    if (refusal == Reason::kOk) {
        entry = entry_named(operation.pool, operation.claim);
        refusal = operation_refusal(entry, operation.word);
    }
    if (refusal != Reason::kOk) return tell_result(shm::kNoRow, operation.user_data, refusal);
    switch (operation.word) {
        case core::QueueWord::kLock:
            return lock(*entry);
        case core::QueueWord::kUnlock:
            return unlock(*entry);
        case core::QueueWord::kCancel:
            cancel(*entry, Reason::kRevoked);
            return;
        case core::QueueWord::kForget:
            return leave_queue(*entry);
    }
}

// S1.29. It may have been reported as locked meanwhile.
void NaiveCore::lock(Entry& entry) {
    entry.lock_count += 1;
    if (entry.is != EntryIs::kQueued) return;
    entry.is = EntryIs::kLocked;
    entry.changed_ns = m_.now;
}

void NaiveCore::unlock(Entry& entry) {
    const uint32_t most = m_.pools.at(entry.pool).config.attempts_max;
    if (most > 0 && entry.lock_count >= most) {
        cancel(entry, Reason::kLimit);
        return;
    }
    entry.is = EntryIs::kQueued;
    entry.changed_ns = m_.now;
}

// S1.18: looked at again, as reports may have come between.
void NaiveCore::apply(const core::OperationDone& done) {
    const auto tell = [&](Reason reason) { tell_result(shm::kNoRow, done.user_data, reason); };
    const Reason refusal = dispatch_refusal(done.pool, {done.claim});
    if (refusal != Reason::kOk) return tell(refusal);
    Entry* entry = entry_named(done.pool, done.claim);
    if (entry == nullptr || entry->operation == Operation::kNone) return tell(Reason::kNotFound);
    const Operation was = std::exchange(entry->operation, Operation::kNone);
    const bool waits = entry->is == EntryIs::kQueued || entry->is == EntryIs::kLocked;
    switch (was) {
        case Operation::kLock:
            if (done.ok && waits) lock(*entry);
            break;
        case Operation::kUnlock:
            if (done.ok && waits) unlock(*entry);
            break;
        case Operation::kKill:
            if (done.ok) {
                process_is_gone(entry->id);
            } else if (entry->worker != kNoWorker) {
                entry->is_hopeless = true;
            }
            break;
        case Operation::kNone:
            break;
    }
}

}  // namespace dibs::naive
