// broker/core/rules/pulls.cpp -- serves workers that pull, and times out workers and assignments.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace SlotFlag = shm::SlotFlag;

// A lease begins on a slot: if a reported worker's, it is to confirm.
void Reports::assignment_begins(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    if (slot.session != kNoRow || state.pools[slot.pool].kind == shm::PoolKind::kCounted) return;
    shm::SlotRow& assigned = edit().row(slot, 1);
    assert((assigned.flags & SlotFlag::kAssigned) == 0);
    put(assigned.flags, assigned.flags | SlotFlag::kAssigned);
    book()->assignments.push_back(slot.pool, row);
}

// It is confirmed, or its lease ends. What its worker is to abort is forgotten with it, unless the
// slot is promised: then that has been set for the next one.
void Reports::assignment_ends(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    if ((slot.flags & SlotFlag::kAssigned) != 0) {
        book()->assignments.remove(slot.pool, row);
        shm::SlotRow& assigned = edit().row(slot, 1);
        put(assigned.flags, assigned.flags & ~uint32_t{SlotFlag::kAssigned});
    }
    const bool aborts = slot.session == kNoRow && slot.worker_tag != 0;
    if (aborts && book()->promised_to[row] == kNoRow) put(edit().row(slot, 1U << 1U).worker_tag, 0);
}

namespace {

bool is_held(const shm::SlotRow& slot) {
    return slot.state == SlotState::kLeased || slot.state == SlotState::kReserved ||
           being_killed_for(slot);
}

}  // namespace

TimeNs Reports::forgotten_at(const shm::SlotRow& slot) const {
    return sum_or_never(slot.confirmed_ns, state.pools[slot.pool].account_expiry_ns) + 1;
}

// A worker that holds nothing is forgotten when no report on it has come for too long. A worker
// that comes to hold something keeps its timer, and so does one with a new report: the code that
// looks at the earliest timer corrects it if it is stale. So a worker that is leased and released,
// again and again, costs nothing here.
void Reports::watch_reported(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    assert(slot.session == kNoRow);
    if (slot.order != shm::OrderState::kNone) return;  // an order, which has a boot time-out
    if (slot.state == SlotState::kFree) return book()->forgotten.remove(TimerKind::kKept, row);
    if (is_held(slot)) return;
    const TimeNs due_ns = forgotten_at(slot);
    if (book()->forgotten.has(TimerKind::kKept, row) &&
        book()->forgotten.due_ns(TimerKind::kKept, row) <= due_ns) {
        return;
    }
    set_forgotten(row, due_ns);
}

void Reports::set_forgotten(uint32_t row, TimeNs due_ns) {
    const shm::SlotRow& slot = state.slots[row];
    const uint64_t number = (uint64_t{slot.pool} << 32U) | slot.number;
    book()->forgotten.set(TimerKind::kKept, row, due_ns, number);
}

// Its pool's expiry is another one now.
void Reports::watch_all_reported(uint32_t pool) {
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const shm::SlotRow& slot = state.slots[row];
        const bool is_reported = slot.state != SlotState::kFree && slot.session == kNoRow;
        if (is_reported && slot.pool == pool) watch_reported(row);
    }
}

TimeNs Reports::next_forgotten() {
    while (!book()->forgotten.empty()) {
        const Timer first = book()->forgotten.first();
        const shm::SlotRow& slot = state.slots[first.row];
        assert(slot.state != SlotState::kFree && slot.session == kNoRow);
        const TimeNs due_ns = forgotten_at(slot);
        if (is_held(slot)) {
            book()->forgotten.remove(TimerKind::kKept, first.row);
        } else if (due_ns != first.due_ns) {
            set_forgotten(first.row, due_ns);
        } else {
            return first.due_ns;
        }
    }
    return kNever;
}

bool Reports::forget_workers() {
    turn().forgetting = true;
    while (!book()->forgotten.empty() && book()->forgotten.first().due_ns <= turn().now_ns &&
           next_forgotten() <= turn().now_ns) {
        if (turn().full()) return false;
        slots().remove_slot(book()->forgotten.first().row);
    }
    turn().forgetting = false;
    return true;
}

void Reports::apply(const Pull& command) {
    const auto refuse = [&](Reason reason) { turn().result(kNoRow, command.user_data, reason); };
    const Reason of_pool = report_refusal(command.pool, "anybody");
    if (of_pool != Reason::kOk) return refuse(of_pool);
    for (const Pull::Worker& worker : command.workers) {
        const Reason reason = report_refusal(command.pool, worker.name);
        if (reason != Reason::kOk) return refuse(reason);
        if (!LabelSets::well_formed(worker.labels)) return refuse(Reason::kPayload);
    }
    size_t next = 0;
    if (book()->kept_pulls.empty() && carry_out(command, &next)) return;
    book()->kept_pulls.emplace_back(command, next);
}

KeptPull::KeptPull(const Pull& pull, size_t next_worker) : command(pull), next(next_worker) {
    const auto keep = [this](std::string_view said) -> std::string_view {
        return texts.emplace_back(said);
    };
    for (const Pull::Worker& worker : pull.workers) {
        std::vector<std::string_view>& own = labels.emplace_back();
        for (const std::string_view label : worker.labels)
            own.push_back(keep(label));
        workers.push_back({keep(worker.name), own});
    }
    command.workers = workers;
}

// Before anything else that a turn decides: a pull is a command, wherever the log has cut it.
bool Reports::go_on_pulling() {
    for (; !book()->kept_pulls.empty(); book()->kept_pulls.pop_front()) {
        KeptPull& kept = book()->kept_pulls.front();
        if (!carry_out(kept.command, &kept.next)) return false;
    }
    return true;
}

// From the worker *next on. False: the log is full, go on in the next turn.
bool Reports::carry_out(const Pull& command, size_t* next) {
    assert(*next <= command.workers.size());
    const TimeNs event_ns = turn().event_time(command.event_ns);
    if (*next == 0 && !time_out_assignments(command.pool, event_ns)) return false;
    for (; *next < command.workers.size(); ++*next) {
        if (turn().full()) return false;
        const Pull::Worker& worker = command.workers[*next];
        uint32_t slot = workers().find_name(command.pool, worker.name);
        const bool told = slot != kNoRow && (state.slots[slot].flags & SlotFlag::kAssigned) != 0;
        if (!told) {
            const Reason reason =
                report_idle(command.pool, worker.name, worker.labels, event_ns, &slot);
            if (reason != Reason::kOk) {
                turn().result(kNoRow, command.user_data, reason);
                continue;
            }
        }
        book()->pulling.push_back({slot,
                                   state.slots[slot].head.generation,
                                   command.user_data,
                                   {worker.labels.begin(), worker.labels.end()}});
    }
    return true;
}

// As many as there are, each with rows and decisions of its own. False: the log is full.
bool Reports::time_out_assignments(uint32_t pool, TimeNs event_ns) {
    const TimeNs limit = state.pools[pool].queue_timeout_ns;
    const auto granted_ns = [&](uint32_t slot) {
        return state.leases[state.slots[slot].holder].granted_ns;
    };
    TimeNs ordered_ns = kNever;  // those of this instant stand in order
    for (;;) {
        const uint32_t oldest = book()->assignments.head(pool);
        if (oldest == kNoRow || sum_or_never(granted_ns(oldest), limit) > event_ns) return true;
        if (turn().full()) return false;
        if (granted_ns(oldest) != ordered_ns) {
            ordered_ns = granted_ns(oldest);
            order_oldest_assignments(pool);
            continue;
        }
        unassign(runs_on(oldest), event_ns);
    }
}

// Those of the oldest instant, which are the first ones, in order of their slots' numbers.
void Reports::order_oldest_assignments(uint32_t pool) {
    const auto granted_ns = [&](uint32_t slot) {
        return state.leases[state.slots[slot].holder].granted_ns;
    };
    std::vector<uint32_t>& slots = book()->row_scratch;
    slots.clear();
    uint32_t behind = book()->assignments.head(pool);
    assert(behind != kNoRow);
    for (const TimeNs first = granted_ns(behind); behind != kNoRow && granted_ns(behind) == first;
         behind = book()->assignments.next(behind)) {
        slots.push_back(behind);
    }
    std::sort(slots.begin(), slots.end(), [&](uint32_t left, uint32_t right) {
        return state.slots[left].number < state.slots[right].number;
    });
    for (const uint32_t slot : slots) {
        book()->assignments.remove(pool, slot);
        book()->assignments.insert_before(pool, slot, behind);
    }
}

// The last duty of a turn, after its last pass: it answers each worker that asked. What a worker
// must provision depends on the labels that it came with: a held slot keeps its earlier ones.
bool Reports::tell_pulled() {
    assert(book()->pulled <= book()->pulling.size());
    for (; book()->pulled < book()->pulling.size(); ++book()->pulled) {
        if (turn().full()) return false;
        const auto& [row, generation, user_data, labels] = book()->pulling[book()->pulled];
        const shm::SlotRow& slot = state.slots[row];
        if (slot.state == SlotState::kFree || slot.head.generation != generation) continue;
        Decision& told = turn().decide_that(DecisionKind::kPulled);
        told.pool = slot.pool;
        told.slot_number = slot.number;
        told.id = row_id(generation, row);
        told.user_data = user_data;
        if ((slot.flags & SlotFlag::kAssigned) == 0) continue;
        assert(slot.state == SlotState::kLeased);
        told.claim = state.leases[slot.holder].arrival;
        told.holder_claim = slot.worker_tag;
        told.provision = book()->lacks_preferred(labels, state.claims[runs_on(row)].preferred_set);
    }
    book()->pulling.clear();
    book()->pulled = 0;
    return true;
}

}  // namespace dibs::core
