// broker/core/rules/reports.cpp -- applies outside reports on workers, and resolves contradictions.
//
// A report carries the time of its observation. A report older than what is known changes nothing;
// equal counts as newer. Where two views cannot both be true, both sides forget the contradicting
// part, and it comes back when it is reported again.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::ClaimState;
namespace SlotFlag = shm::SlotFlag;

Reason Reports::report_refusal(uint32_t pool, std::string_view worker) const {
    if (!pools().pool_lives(pool)) return Reason::kUnknownPool;
    if (!matcher().takes_reports(pool)) return Reason::kState;
    if (worker.empty() || worker.size() > shm::kNameMax) return Reason::kMalformed;
    return Reason::kOk;
}

// The lease that the slot is under, also while its holder is being killed; or kNoRow.
uint32_t Reports::lease_on(uint32_t row) const {
    const shm::SlotRow& slot = state.slots[row];
    return slot.state == SlotState::kLeased || being_killed_for(slot) ? slot.holder : kNoRow;
}

// The claim that runs on the slot, or kNoRow.
uint32_t Reports::runs_on(uint32_t row) const {
    const uint32_t lease = lease_on(row);
    return lease == kNoRow ? kNoRow : book()->claim_of_lease[lease];
}

// Whatever is reported of a slot under a strict lease: no other claim gets it before the holder has
// released it or is dead.
bool Reports::is_held_strictly(uint32_t row) const {
    const uint32_t lease = lease_on(row);
    return lease != kNoRow && state.leases[lease].mode == shm::ExpiryMode::kStrict;
}

// What a report ends in a pool of strict expiry pays no more and counts nowhere; its slots stay
// under it until it has ended.
void Reports::end_strictly(uint32_t row) {
    assert(state.leases[row].mode == shm::ExpiryMode::kStrict);
    ledger().end_run(row);
    shm::LeaseRow& lease = edit().row(state.leases[row], 0x7U);
    put(lease.flags, lease.flags | shm::LeaseFlag::kTaken);
    if (lease.state != shm::LeaseState::kKilling) leases().kill_holder(row);
    matcher().touch(lease.pool);
}

// The slot is reserved for the claim.
bool Reports::is_asked_for(uint32_t row, uint32_t claim) const {
    const shm::SlotRow& slot = state.slots[row];
    return slot.state == SlotState::kReserved && slot.holder != kNoRow && slot.holder == claim;
}

// The claim for which the slot counts against label limits, or kNoRow.
uint32_t Reports::counts_on(uint32_t row) const {
    if (book()->promised_to[row] != kNoRow) return book()->promised_to[row];
    const shm::SlotRow& slot = state.slots[row];
    if (slot.state == SlotState::kReserved && slot.holder != kNoRow) {
        return slot.holder;
    }
    const uint32_t claim = runs_on(row);
    return claim != kNoRow && crowds().occupied_slot(claim) != kNoRow ? claim : kNoRow;
}

TimeNs Reports::latest_confirmed(uint32_t row) const {
    const uint32_t claim = runs_on(row);
    const TimeNs own = state.slots[row].confirmed_ns;
    return claim == kNoRow ? own : std::max(own, state.claims[claim].confirmed_ns);
}

void Reports::confirm_slot(uint32_t row, TimeNs event_ns) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1U << 2U);
    assert(slot.state != SlotState::kFree);
    put(slot.confirmed_ns, std::max(slot.confirmed_ns, event_ns));
    if (slot.session == kNoRow) watch_reported(row);
}

void Reports::confirm_claim(uint32_t row, TimeNs event_ns) {
    shm::ClaimRow& claim = edit().row(state.claims[row], kClaimRunLines);
    assert(claim.state != ClaimState::kFree);
    put(claim.confirmed_ns, std::max(claim.confirmed_ns, event_ns));
}

void Reports::apply(const Report& report) {
    const auto refuse = [&](Reason reason) { turn().result(kNoRow, report.user_data, reason); };
    const bool absent = report.kind == Report::Kind::kAbsent;
    const Reason reason =
        report_refusal(report.pool, absent ? std::string_view{"absent"} : report.worker);
    if (reason != Reason::kOk) return refuse(reason);
    const TimeNs event_ns = turn().event_time(report.event_ns);
    if (absent) return report_absent(report.claim, event_ns);
    if (report.kind == Report::Kind::kRunning) {
        const uint32_t worker = workers().find_name(report.pool, report.worker);
        if (worker == kNoRow && matcher().find_claim(report.claim) == kNoRow) {
            return refuse(Reason::kNotFound);
        }
        return report_running(report.claim, worker, event_ns);
    }
    uint32_t slot = kNoRow;
    const Reason told = report_idle(report.pool, report.worker, report.labels, event_ns, &slot);
    if (told != Reason::kOk) refuse(told);
}

Reason Reports::report_idle(uint32_t pool,
                            std::string_view worker,
                            std::span<const std::string_view> labels,
                            TimeNs event_ns,
                            uint32_t* slot_row) {
    const uint32_t known = workers().find_name(pool, worker);
    *slot_row = known;
    if (known != kNoRow && state.slots[known].session != kNoRow) return Reason::kState;
    if (known == kNoRow && pools().slot_rows_left(kNoRow) == 0) return Reason::kTablesFull;
    if (const Reason reason = crowds().intern_announced(labels); reason != Reason::kOk)
        return reason;
    const uint32_t set = book()->announced_set;
    if (known == kNoRow) {
        *slot_row = make_reported(pool, worker, set);
        confirm_slot(*slot_row, event_ns);
        workers().qualify(*slot_row, labels);
        slots().make_idle(*slot_row);
        return Reason::kOk;
    }
    if (event_ns < latest_confirmed(known)) return Reason::kOk;
    confirm_slot(known, event_ns);
    const shm::SlotRow& slot = state.slots[known];
    const bool other = slot.label_set != set;
    // Its claim waits for other slots to be confirmed and cannot use this one yet.
    if (slot.state == SlotState::kReserved) return Reason::kOk;
    if (is_held_strictly(known)) {
        end_strictly(slot.holder);
        workers().qualify(known, labels);
        if (other) crowds().relabel(known, set);
        shm::SlotRow& comes_back = edit().row(slot, 1U << 1U | 1U << 2U);
        put(comes_back.flags,
            (comes_back.flags | SlotFlag::kSaidReady) & ~uint32_t{SlotFlag::kDraining});
        put(comes_back.modified_ns, turn().now_ns);
        put(comes_back.worker_tag, 0);
        return Reason::kOk;
    }
    if (slot.state == SlotState::kLeased) {
        leases().end_lease(slot.holder, Reason::kDone, Tell::kHolder, false, known);
    }
    workers().qualify(known, labels);
    const bool qualified = (slot.flags & SlotFlag::kUnqualified) == 0;
    if (slot.state == SlotState::kIdle && !other && qualified) return Reason::kOk;
    if (slot.state == SlotState::kIdle) slots().move_slot(known, SlotState::kRecovering);
    if (other) crowds().relabel(known, set);
    put(edit().row(slot, 1U << 2U).modified_ns, turn().now_ns);
    put(edit().row(slot, 1U << 1U).worker_tag, 0);
    slots().make_idle(known);
    return Reason::kOk;
}

// A slot without a session, recovering.
uint32_t Reports::make_reported(uint32_t pool_row, std::string_view worker, uint32_t set) {
    const uint32_t row = slots().make_slot(pool_row);
    shm::SlotRow& slot = edit().row(state.slots[row], 1U << 1U | 1U << 2U | 1U << 3U);
    put(slot.label_set, set);
    put(slot.modified_ns, turn().now_ns);
    worker.copy(slot.name, sizeof(slot.name));
    stored();
    put(slot.name_size, worker.size());
    slots().names.insert(workers().name_hash(pool_row, worker), row);
    slots().move_slot(row, SlotState::kRecovering);
    return row;
}

void Reports::report_running(uint64_t number, uint32_t slot, TimeNs event_ns) {
    const bool assigned = slot != kNoRow && (state.slots[slot].flags & SlotFlag::kAssigned) != 0;
    if (assigned && state.leases[state.slots[slot].holder].granted_ns <= event_ns) {
        assignment_ends(slot);
    }
    const auto delete_unless_newer = [&](uint32_t worker) {
        if (worker != kNoRow && event_ns >= latest_confirmed(worker)) delete_worker(worker);
    };
    const uint32_t claim = matcher().find_claim(number);
    if (claim == kNoRow) return delete_unless_newer(slot);
    if (event_ns < state.claims[claim].confirmed_ns) return;
    if (slot != kNoRow && is_asked_for(slot, claim)) {  // the worker's own report decides
        confirm_claim(claim, event_ns);
        return confirm_slot(slot, event_ns);
    }
    if (state.claims[claim].state != ClaimState::kRunning) {
        drop_waiting(claim, Reason::kWorkerLost);
        return delete_unless_newer(slot);
    }
    if (slot != kNoRow && runs_on(slot) == claim) {
        confirm_claim(claim, event_ns);
        return confirm_slot(slot, event_ns);
    }
    drop_run(claim, Reason::kWorkerLost, false);
    // The slot may have been promised, and so be another's by now.
    delete_unless_newer(slot);
}

// Of the claim, made before that time.
void Reports::forget_cancellations(uint32_t pool, uint64_t number, TimeNs event_ns) {
    for (uint32_t slot = book()->assignments.head(pool); slot != kNoRow;
         slot = book()->assignments.next(slot)) {
        const shm::SlotRow& row = state.slots[slot];
        assert((row.flags & SlotFlag::kAssigned) != 0 && row.state == SlotState::kLeased);
        if (row.worker_tag == number && state.leases[row.holder].granted_ns < event_ns) {
            put(edit().row(row, 1U << 1U).worker_tag, 0);
        }
    }
}

// A claim is known by its number, whichever pool the report names.
void Reports::report_absent(uint64_t number, TimeNs event_ns) {
    book()->errors.erase(number);
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool)
        forget_cancellations(pool, number, event_ns);
    const uint32_t known = matcher().find_claim(number);
    if (known == kNoRow) return;
    const shm::ClaimRow& claim = state.claims[known];
    if (event_ns < claim.confirmed_ns) return;
    if (claim.state != ClaimState::kRunning) return drop_waiting(known, Reason::kHolderGone);
    const uint32_t slot = state.leases[claim.lease].first_slot;
    if (event_ns < state.slots[slot].confirmed_ns) return;
    drop_run(known, Reason::kHolderGone, false);
}

// The claim loses its lease, and its slots go with it. `again`: it waits again.
void Reports::drop_run(uint32_t claim, Reason reason, bool again) {
    const uint32_t lease = state.claims[claim].lease;
    assert(state.claims[claim].state == ClaimState::kRunning);
    assert(book()->claim_of_lease[lease] == claim);
    std::vector<uint32_t> slots;
    for (uint32_t slot = state.leases[lease].first_slot; slot != kNoRow;
         slot = state.slots[slot].holder_next) {
        slots.push_back(slot);
    }
    for (const uint32_t slot : slots)
        preemption().drop_successor(slot);
    if (state.leases[lease].mode == shm::ExpiryMode::kStrict) {
        end_strictly(lease);
    } else {
        leases().end_lease(lease, reason, Tell::kHolder, true, kNoRow, again);
    }
    for (const uint32_t slot : slots)
        send_away(slot);
}

void Reports::drop_waiting(uint32_t claim, Reason reason) {
    assert(state.claims[claim].state != ClaimState::kRunning);
    const bool confirming = state.claims[claim].state == ClaimState::kReserved;
    const uint32_t first = confirming ? claims().unreserve(claim) : kNoRow;
    claims().end_claim(claim, Outcome::kCancelled, reason, 0, true);
    slots().give_back_chain(first, false, false, kNoRow);
}

void Reports::delete_worker(uint32_t slot) {
    if (const uint32_t claim = runs_on(slot); claim != kNoRow) {
        return drop_run(claim, Reason::kWorkerLost, false);
    }
    send_away(slot);
}

// Removes a slot that is not held: a reported worker's is forgotten, an attached worker must report
// its own again. Under a lease whose holder is being killed, this happens when the lease has ended.
void Reports::send_away(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    const bool is_counted = state.pools[slot.pool].kind == shm::PoolKind::kCounted;
    if (being_killed_for(slot)) {
        if (slot.session != kNoRow || is_counted) return;
        shm::SlotRow& goes = edit().row(slot, 1);
        put(goes.flags, (goes.flags | SlotFlag::kDraining) & ~uint32_t{SlotFlag::kSaidReady});
        return;
    }
    const bool for_no_claim = is_kept(slot);
    const bool held = slot.state == SlotState::kFree || slot.state == SlotState::kLeased ||
                      (slot.state == SlotState::kReserved && !for_no_claim);
    // One that is held over is another claim's by now, as a reserved one.
    if (held || is_counted || preemption().is_held_over(row)) return;
    assert(slot.holder == kNoRow);
    if (slot.session == kNoRow) return slots().remove_slot(row);
    if (slot.state == SlotState::kUnknown) return;
    // A recovering one's worker must say ready anyway; unless it has said so before, and would take
    // a cleared mark for all that its slot still waits for. What it has said counts no more.
    const bool said_ready = (slot.flags & SlotFlag::kSaidReady) != 0;
    if (slot.state != SlotState::kRecovering || said_ready) slots().tell_revoke(row);
    if (for_no_claim) slots().kept_slots.remove(TimerKind::kKept, row);
    shm::SlotRow& asked = edit().row(slot, 1);
    put(asked.flags, asked.flags & ~uint32_t{SlotFlag::kSaidReady});
    if ((asked.flags & SlotFlag::kDraining) != 0)
        return slots().remove_slot(row);  // kept, and withdrawn
    slots().move_slot(row, SlotState::kUnknown);
}

void Reports::apply(const Unassign& command) {
    const auto refuse = [&](Reason reason) { turn().result(kNoRow, command.user_data, reason); };
    if (const Reason reason = report_refusal(command.pool, command.worker); reason != Reason::kOk) {
        return refuse(reason);
    }
    const uint32_t slot = workers().find_name(command.pool, command.worker);
    const uint32_t known = matcher().find_claim(command.claim);
    if (slot == kNoRow || known == kNoRow || runs_on(slot) != known) {
        return refuse(Reason::kNotFound);
    }
    if (!command.error.empty()) book()->errors[command.claim] = command.error;
    unassign(known, turn().event_time(command.event_ns));
}

void Reports::unassign(uint32_t claim_row, TimeNs event_ns) {
    const shm::ClaimRow& claim = state.claims[claim_row];
    const TimeNs age = event_ns - std::min(event_ns, claim.enqueued_ns);
    const bool is_young = age <= state.pools[claim.pool].request_age_max_ns;
    // A lease that is being revoked, and did not ask for a retry, does not come back, whatever ends
    // its grace.
    const bool revoked = state.leases[claim.lease].state == shm::LeaseState::kRevoking;
    const bool returns = !revoked || (claim.flags & shm::ClaimFlag::kRequeue) != 0;
    drop_run(claim_row, Reason::kWorkerLost, is_young && returns);
}

void Reports::apply(const UpdateClaim& command) {
    const auto refuse = [&](Reason reason) { turn().result(kNoRow, command.user_data, reason); };
    if (const uint32_t ranked = matcher().find_ranked(command.claim); ranked != kNoRow) {
        if (command.priority_given) matcher().change_priority(ranked, command.priority);
        return;
    }
    const uint32_t row = matcher().find_claim(command.claim);
    if (row == kNoRow) return refuse(Reason::kNotFound);
    const TimeNs event_ns = turn().event_time(command.event_ns);
    const shm::ClaimRow& claim = state.claims[row];
    if (claim.state != ClaimState::kRunning) return confirm_claim(row, event_ns);
    const uint32_t slot = state.leases[claim.lease].first_slot;
    if (event_ns < claim.confirmed_ns || event_ns < state.slots[slot].confirmed_ns) return;
    // Interned before anything changes.
    const ClaimTerms terms{.account = command.account,
                           .labels = command.labels,
                           .provisionable = command.provisionable};
    TermRows rows;
    const uint32_t session = claim.session;
    if (is_held_strictly(slot)) return drop_run(row, Reason::kWorkerLost, false);
    if (const Reason reason = crowds().take_terms(terms, session, 0, &rows);
        reason != Reason::kOk) {
        return refuse(reason);
    }
    book()->labels.hold(rows.base);
    book()->labels.hold(rows.preferred);
    drop_run(row, Reason::kWorkerLost, true);
    if (state.claims[row].state == ClaimState::kWaiting) {
        confirm_claim(row, event_ns);
        take_new_terms(row, command, rows);
    } else {
        ledger().release_account(rows.account);  // its pool drains: it has ended
    }
    book()->labels.drop(rows.base);
    book()->labels.drop(rows.preferred);
}

// Its old place, the new fields.
void Reports::take_new_terms(uint32_t row, const UpdateClaim& command, const TermRows& rows) {
    crowds().leave_waiting(row);
    crowds().leave_crowd(row);
    shm::ClaimRow& claim = edit().row(state.claims[row], kClaimRunLines);
    const uint32_t before = claim.account;
    if (command.account_given) put(claim.account, rows.account);
    if (command.labels_given) put(claim.label_set, rows.base);
    if (command.provisionable_given) put(claim.preferred_set, rows.preferred);
    crowds().join_crowd(row);
    crowds().wait_in_crowd(row);
    ledger().release_account(command.account_given ? before : rows.account);
}

}  // namespace dibs::core
