// broker/core/pulls.cpp -- workers that ask for work, what was assigned to them and not confirmed,
// and reported workers that are forgotten.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace SlotFlag = shm::SlotFlag;

// A lease begins on a slot: if a reported worker's, it is to confirm.
void Core::Parts::assignment_begins(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    if (slot.session != kNoRow || state.pools[slot.pool].kind == shm::PoolKind::kCounted) return;
    shm::SlotRow& assigned = edit.row(slot, 1);
    put(assigned.flags, assigned.flags | SlotFlag::kAssigned);
    book->assignments[slot.pool].insert({state.leases[slot.holder].granted_ns, slot.number, row});
}

// It is confirmed, or its lease ends.
void Core::Parts::assignment_ends(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    if ((slot.flags & SlotFlag::kAssigned) == 0) return;
    book->assignments[slot.pool].erase({state.leases[slot.holder].granted_ns, slot.number, row});
    shm::SlotRow& assigned = edit.row(slot, 1U << 1U);
    put(assigned.flags, assigned.flags & ~uint32_t{SlotFlag::kAssigned});
    // Unless it is promised: then it has been set for the next one.
    if (book->promised_to[row] == kNoRow) put(assigned.worker_tag, 0);
}

// Whatever holds nothing is forgotten when nothing has been heard of it for too long.
void Core::Parts::watch_reported(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    const bool held = slot.state == SlotState::kFree || slot.state == SlotState::kLeased ||
                      slot.state == SlotState::kReserved;
    if (held) return book->forgotten.remove(TimerKind::kKept, row);
    const TimeNs expiry = state.pools[slot.pool].account_expiry_ns;
    const uint64_t number = (uint64_t{slot.pool} << 32U) | slot.number;
    book->forgotten.set(TimerKind::kKept, row, sum_or_never(slot.confirmed_ns, expiry) + 1, number);
}

// Its pool's expiry is another one now.
void Core::Parts::watch_all_reported(uint32_t pool) {
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const shm::SlotRow& slot = state.slots[row];
        const bool is_reported = slot.state != SlotState::kFree && slot.session == kNoRow;
        if (is_reported && slot.pool == pool) watch_reported(row);
    }
}

TimeNs Core::Parts::next_forgotten() const {
    return book->forgotten.empty() ? kNever : book->forgotten.first().due_ns;
}

bool Core::Parts::forget_workers() {
    forgetting = true;
    while (!book->forgotten.empty() && next_forgotten() <= now_ns) {
        if (full()) return false;
        remove_slot(book->forgotten.first().row);
    }
    forgetting = false;
    return true;
}

// Time goes over accounts and reported workers before a turn's commands. Pools ordered by account
// are looked at in every turn in which somebody waits or runs there.
void Core::Parts::open_account_turn() {
    step_accounts();
    forget_workers();
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool) {
        if (by_account(pool) && state.pools[pool].waiting + state.pools[pool].leased != 0) {
            dirty.add(pool);
        }
    }
}

void Core::Parts::apply(const Pull& command) {
    const auto refuse = [&](Reason reason) { result(kNoRow, command.user_data, reason); };
    for (const Pull::Worker& worker : command.workers) {
        const Reason reason = report_refusal(command.pool, worker.name);
        if (reason != Reason::kOk) return refuse(reason);
        if (!LabelSets::well_formed(worker.labels)) return refuse(Reason::kPayload);
    }
    if (command.workers.empty()) return;
    const TimeNs event_ns = event_time(command.event_ns);
    time_out_assignments(command.pool, event_ns);
    for (const Pull::Worker& worker : command.workers) {
        uint32_t slot = find_name(command.pool, worker.name);
        const bool told = slot != kNoRow && (state.slots[slot].flags & SlotFlag::kAssigned) != 0;
        if (!told) {
            const Reason reason =
                report_idle(command.pool, worker.name, worker.labels, event_ns, &slot);
            if (reason != Reason::kOk) {
                refuse(reason);
                continue;
            }
        }
        book->pulling.push_back({slot, state.slots[slot].head.generation});
    }
}

void Core::Parts::time_out_assignments(uint32_t pool, TimeNs event_ns) {
    const TimeNs limit = state.pools[pool].queue_timeout_ns;
    const auto& waiting = book->assignments[pool];
    while (!waiting.empty()) {
        const auto [granted_ns, number, slot] = *waiting.begin();
        if (sum_or_never(granted_ns, limit) > event_ns) return;
        unassign(runs_on(slot), event_ns);
    }
}

// The last duty of a turn: each worker that asked is told.
bool Core::Parts::tell_pulled() {
    for (; book->pulled < book->pulling.size(); ++book->pulled) {
        if (full()) return false;
        const auto [row, generation] = book->pulling[book->pulled];
        const shm::SlotRow& slot = state.slots[row];
        if (slot.state == SlotState::kFree || slot.head.generation != generation) continue;
        Decision& told = decide_that(DecisionKind::kPulled);
        told.pool = slot.pool;
        told.slot_number = slot.number;
        told.id = row_id(generation, row);
        if ((slot.flags & SlotFlag::kAssigned) == 0) continue;
        told.claim = state.leases[slot.holder].arrival;
        told.holder_claim = slot.worker_tag;
        told.provision = lacks_preferred(runs_on(row), row);
    }
    book->pulling.clear();
    book->pulled = 0;
    return true;
}

}  // namespace dibs::core
