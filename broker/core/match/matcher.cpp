// broker/core/match/matcher.cpp -- lets claims, leases and slots enter and leave the matcher.
//
// The rules call these at each event of a claim's, lease's or slot's life and never ask what orders
// the pool: that is asked here. Of a pool in order of arrival the backlog and the ready queue say
// all; of one ordered by account the book is kept.
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "broker/core/parts.hpp"

namespace dibs::core {

void Matcher::pool_opens(uint32_t pool) {
    if (by_account(pool)) ledger().open_book();
    if (by_priority(pool)) open_priorities();
}

// 1 = the next one; 0 = held.
uint32_t Matcher::place_in_order(uint32_t row) const {
    const shm::ClaimRow& claim = state.claims[row];
    if (!by_priority(claim.pool)) return backlog.ahead(claim.pool, row) + 1;
    return claim.priority < 1 ? 0 : ahead_by_priority(row) + 1;
}

// Chosen slots count as held until then.
void Matcher::claim_leaves_slots(uint32_t row, uint32_t first_slot) {
    if (by_account(state.claims[row].pool)) crowds().occupy(row, first_slot, -1);
}

// Its row is about to be freed. One that confirms has left its slots before.
void Matcher::claim_ends(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    const bool promised = claim.state == shm::ClaimState::kPromised;
    if (promised || claim.state == shm::ClaimState::kWaiting) claim_stops_waiting(row);
    if (!by_account(claim.pool)) return;
    if (promised) {
        const uint32_t slot = claim.first_slot;
        assert(book()->promised_to[slot] == row);
        const bool is_ready = preemption().is_held_over(slot);
        preemption().break_promise(slot);
        if (is_ready) slots().make_idle(slot);
    }
    crowds().forget_claim(row);
}

uint32_t Matcher::run_ends(uint32_t lease) {
    ledger().end_run(lease);
    touch(state.leases[lease].pool);  // its slots may stay where they are: recovering
    assignments_end(lease);
    const uint32_t claim = book()->claim_of_lease[lease];
    assert(state.claims[claim].lease == lease);
    return claim;
}

// A lease whose holder is being killed loses a slot: what it pays is counted in whole leases.
void Matcher::lease_shrinks(uint32_t lease) {
    if (by_account(state.leases[lease].pool)) reports().end_strictly(lease);
}

uint32_t Matcher::claim_behind(uint32_t lease) const {
    return by_account(state.leases[lease].pool) ? book()->claim_of_lease[lease] : kNoRow;
}

void Matcher::assignments_end(uint32_t row) {
    const shm::LeaseRow& lease = state.leases[row];
    if (!takes_reports(lease.pool)) return;
    for (uint32_t slot = lease.first_slot; slot != kNoRow; slot = state.slots[slot].holder_next)
        reports().assignment_ends(slot);
}

// kOk: take_labels() gives them to the slot.
Reason Matcher::slot_labels_come(const Announce& command) {
    if (!by_account(command.pool)) return Reason::kOk;
    const Reason reason = crowds().intern_announced(command.labels);
    if (reason != Reason::kOk) return reason;
    // New labels have taken their part of the arena by now.
    return arena().has_room(command.attributes.size()) ? Reason::kOk : Reason::kArenaFull;
}

void Matcher::take_labels(uint32_t slot) {
    if (by_account(state.slots[slot].pool)) crowds().relabel(slot, book()->announced_set);
}

// The slot has the labels that the claim must have.
bool Matcher::could_use(uint32_t claim, uint32_t slot) const {
    return !by_account(state.slots[slot].pool) ||
           book()->labels.covers(state.slots[slot].label_set, state.claims[claim].label_set);
}

// Accounts and reported workers are brought up to date before a turn's commands. Pools ordered by
// account with waiting claims or runs are looked at, unless that cannot lead to anything.
void Matcher::open_account_turn() {
    if (!turn().passes_again) book()->begin_turn();
    // A balance above its cap falls in steps, one for each turn: its crossing cannot be computed in
    // advance.
    if (turn().now_ns >= book()->crossing_ns || !book()->above.empty())
        book()->crossing_known = false;
    ledger().step_accounts();
    book()->looks = book()->has_changed || !book()->crossing_known;
    book()->has_changed = false;
    if (book()->looks) wake_account_pools();
    reports().forget_workers();
}

// After the pass: one that has changed nothing need not be repeated before the next crossing.
void Matcher::end_account_turn() {
    assert(book()->pass.pool == kNoRow);
    book()->is_passing = false;
    if (!turn().full() && arena().take_shortage()) book()->sweep();
    if (book()->lacks_room && arena().will_have_room(sizeof(Cost))) {
        book()->lacks_room = false;
        account_news();
        wake_account_pools();  // account_news() wakes no pool if there was news before
    }
    if (std::exchange(book()->has_refunded, false)) {
        for (uint32_t pool = 0; pool < state.counters->pools; ++pool) {
            if (by_account(pool) && state.pools[pool].waiting != 0) turn().dirty.add(pool);
        }
    }
    if (book()->is_deferred) {  // to the next turn, not to another pass of this one
        book()->has_changed = true;
        book()->crossing_known = false;
    }
    if (book()->has_changed) return;
    if (book()->looks) (void)crowds().next_crossing();
    book()->looked_ns = turn().now_ns;
}

void Matcher::ask_comes(uint32_t claim) {
    const uint32_t pool = state.claims[claim].pool;
    backlog.forget_seat(pool, claim);
    if (by_priority(pool)) list_number(claim);
}

bool Matcher::takes_reports(uint32_t pool) const {
    return by_account(pool) && state.pools[pool].kind == shm::PoolKind::kWorker;
}

}  // namespace dibs::core
