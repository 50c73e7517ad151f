// broker/core/ledger/preemption.cpp -- takes a slot from a cheaper claim for a better one.
//
// The slot is *promised* to the better claim: whatever ends the victim's lease, the slot goes to
// that claim when it would become idle. So a preemption at once and one with grace, on a counted
// slot and on a worker's, follow one path and differ only in its length.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

// Does a claim wait here that may preempt, and is there a slot to take?
bool Preemption::preemption_possible() const {
    const AccountPass& pass = book()->pass;
    assert(pass.at_class < kFreeClass);
    const uint8_t flags = state.pools[pass.pool].flags;
    if ((flags & shm::PoolFlag::kNoPreemption) != 0 || pass.stopped ||
        !book()->waits_at(pass.at_class)) {
        return false;
    }
    const std::vector<uint32_t>& stalls = book()->stalls_of_pool[pass.pool];
    return std::any_of(stalls.begin(), stalls.end(), [&](uint32_t place) {
        const auto& leases = book()->stalls[place].leases;
        return std::any_of(leases.begin() + pass.at_class + 1, leases.end(), [&](uint32_t root) {
            return book()->stall_leases.first(root) != kNoRow;
        });
    });
}

// Candidates, the cheapest first: the cheapest of each stall are compared. Where no claim can take
// the cheapest of a stall, no claim can take a dearer one there, so the stall is done with.
bool Preemption::preempt_for_class() {
    AccountPass& pass = book()->pass;
    std::vector<CrowdAtHead>& crowds = book()->takers;
    crowds.clear();
    for (const uint32_t place : book()->crowds_at[pass.at_class]) {
        const Crowd& crowd = book()->crowds[place];
        if (!book()->waits_here(crowd) || crowd.units != 1) continue;
        assert(crowd.account != kNoRow);
        if (book()->banned_in[crowd.account] == book()->bans) continue;
        crowds.push_back({crowd.quality, place, crowd.claims.head_number()});
    }
    if (crowds.empty()) return true;
    std::vector<uint32_t>& stalls = book()->stall_scratch;
    stalls = book()->stalls_of_pool[pass.pool];
    while (!crowds.empty() && !stalls.empty() && !pass.stopped) {
        if (turn().full()) return false;
        size_t at = 0;
        const uint32_t victim = cheapest_candidate(stalls, &at);
        if (victim == kNoRow) break;
        const size_t taker =
            best_taker(crowds, book()->stalls[stalls[at]].labels, ledger().cost_of(victim));
        if (taker == crowds.size()) {
            stalls.erase(stalls.begin() + static_cast<ptrdiff_t>(at));
            continue;
        }
        const uint32_t place = crowds[taker].crowd;
        preempt(victim, book()->crowds[place].claims.head());
        const Crowd& crowd = book()->crowds[place];
        if (crowd.waiting == 0) {
            crowds.erase(crowds.begin() + static_cast<ptrdiff_t>(taker));
        } else {
            crowds[taker].number = crowd.claims.head_number();
        }
    }
    return true;
}

// The cheapest of the list that was not granted by this turn's passes: one turn is one pass,
// however often it looks again, and what it grants is not revoked at the same instant.
uint32_t Preemption::first_candidate(uint32_t root) const {
    const auto is_older = [&](uint32_t lease) { return book()->granted_in[lease] != book()->turn; };
    uint32_t first = book()->stall_leases.first(root);
    if (first == kNoRow || is_older(first)) return first;
    book()->is_deferred = true;
    first = kNoRow;
    book()->stall_leases.each(root, [&](uint32_t lease) {
        if (first == kNoRow && is_older(lease)) first = lease;
    });
    return first;
}

uint32_t Preemption::cheapest_candidate(const std::vector<uint32_t>& stalls, size_t* at) const {
    uint32_t best = kNoRow;
    Cost best_cost = {};
    for (size_t place = 0; place < stalls.size(); ++place) {
        for (uint32_t q = book()->pass.at_class + 1U; q < kClassesAndFree; ++q) {
            const uint32_t lease = first_candidate(book()->stalls[stalls[place]].leases[q]);
            if (lease == kNoRow) continue;
            const Cost cost = ledger().cost_of(lease);
            const auto number = [&](uint32_t row) {
                return state.slots[state.leases[row].first_slot].number;
            };
            if (best == kNoRow || cost < best_cost ||
                (cost == best_cost && number(lease) < number(best))) {
                best = lease;
                best_cost = cost;
                *at = place;
            }
        }
    }
    return best;
}

size_t Preemption::best_taker(const std::vector<CrowdAtHead>& takers,
                              uint32_t labels,
                              const Cost& cost) {
    size_t best = takers.size();
    for (size_t at = 0; at < takers.size(); ++at) {
        if (best != takers.size() && takers[at] < takers[best]) continue;
        const Crowd& crowd = book()->crowds[takers[at].crowd];
        if (!book()->labels.covers(labels, crowd.base) || crowds().fanout_left(crowd) == 0)
            continue;
        if (!crowds().labels_allow(crowd.account, crowd.pool, labels, false)) continue;
        Cost balance;
        for (uint32_t p = 0; p < shm::kClasses; ++p)
            balance[p] = ledger().balance_at(crowd.account, p);
        if (cost < balance) best = at;
    }
    return best;
}

void Preemption::preempt(uint32_t victim, uint32_t claim_row) {
    AccountPass& pass = book()->pass;
    // The claim keeps the cost that it takes over in the arena.
    if (!free_rows().lease_row_left() || !arena().has_room(sizeof(Cost))) {
        pass.stopped = true;
        crowds().note_kept(claim_row);
        book()->lacks_room = book()->lacks_room || free_rows().lease_row_left();
        return;
    }
    const shm::LeaseRow& lease = state.leases[victim];
    const uint32_t slot = lease.first_slot;
    assert((lease.flags & shm::LeaseFlag::kTaken) == 0 && lease.units == 1);
    assert(book()->promised_to[slot] == kNoRow && lease.account_class > pass.at_class);
    const Cost cost = ledger().cost_of(victim);
    crowds().leave_waiting(claim_row);
    shm::ClaimRow& claim = edit().row(state.claims[claim_row], kClaimRunLines);
    assert(claim.state == shm::ClaimState::kWaiting && claim.pool == lease.pool);
    put(claim.account_class, pass.at_class);
    put(claim.state, shm::ClaimState::kPromised);
    put(claim.first_slot, slot);
    ++free_rows().confirming_total;
    tell_preemption(claim_row, victim, cost);
    ledger().end_run(victim);
    settle_preemption(claim_row, victim, cost);
    crowds().count_fanout(claim_row, claim.account_class, 1);
    crowds().count_labels(claim.account, slot, 1);
    book()->come_to_hold(claim.account, slot);
    book()->promised_to[slot] = claim_row;
    // A reported worker learns what to abort when it asks.
    if (state.slots[slot].session == kNoRow) {
        put(edit().row(state.slots[slot], 1U << 1U).worker_tag, lease.arrival);
    }
    const uint32_t victim_claim = book()->claim_of_lease[victim];
    const shm::ClaimRow& run = state.claims[victim_claim];
    const bool grace =
        static_cast<shm::PreemptMode>(run.preempt_mode) == shm::PreemptMode::kWithGrace &&
        run.preempt_grace_ns != 0;
    shm::LeaseRow& revoked = edit().row(lease, 0x7U);
    put(revoked.flags, revoked.flags | shm::LeaseFlag::kTaken);
    put(revoked.state, shm::LeaseState::kRevoking);
    if (grace) return begin_revoking(victim, run.preempt_grace_ns);
    end_revoked(victim);
}

void Preemption::tell_preemption(uint32_t claim, uint32_t victim, const Cost& cost) {
    const shm::LeaseRow& lease = state.leases[victim];
    for (const DecisionKind kind : {DecisionKind::kPreempt, DecisionKind::kRefund}) {
        const bool refund = kind == DecisionKind::kRefund;
        Decision& told = turn().decide_that(kind);
        told.pool = lease.pool;
        told.claim = state.claims[claim].arrival;
        told.holder_claim = lease.arrival;
        told.account = refund ? lease.account : state.claims[claim].account;
        told.slot_number = state.slots[lease.first_slot].number;
        told.slots_begin = static_cast<uint32_t>(turn().decided_amounts.size());
        told.is_void = refund && (lease.account == kNoRow || (state.accounts[lease.account].flags &
                                                              shm::AccountFlag::kConfigured) == 0);
    }
    turn().decided_amounts.insert(turn().decided_amounts.end(), cost.begin(), cost.end());
}

// The victim's account gets it back, the other one pays, and its run will begin with that cost.
void Preemption::settle_preemption(uint32_t claim_row, uint32_t victim, const Cost& cost) {
    const uint32_t loser = state.leases[victim].account;
    shm::ClaimRow& claim = edit().row(state.claims[claim_row], kClaimRunLines);
    if (loser != kNoRow && (state.accounts[loser].flags & shm::AccountFlag::kConfigured) != 0) {
        ledger().pay(loser, cost, true);
        book()->has_refunded = true;
    }
    ledger().pay(claim.account, cost, false);
    Cost carried = cost;
    if (claim.carried_cost != kNoRow) {
        Cost before;
        arena().copy(claim.carried_cost, sizeof(Cost), reinterpret_cast<std::byte*>(before.data()));
        arena().free(claim.carried_cost, sizeof(Cost));
        for (uint32_t p = 0; p < shm::kClasses; ++p)
            carried[p] += before[p];
    }
    put(claim.carried_cost,
        arena().store({reinterpret_cast<const uint8_t*>(carried.data()), sizeof(Cost)}));
    assert(claim.carried_cost != kNoRow);
}

void Preemption::begin_revoking(uint32_t row, TimeNs grace_ns) {
    shm::LeaseRow& lease = edit().row(state.leases[row], 0x7U);
    assert(lease.state == shm::LeaseState::kRevoking && grace_ns != 0);
    const TimeNs wanted = std::min(sum_or_never(turn().now_ns, grace_ns), lease.expires_ns);
    const TimeNs until = std::max(wanted, turn().now_ns);  // in its pool's grace it has expired
    put(lease.grace_until_ns, until);
    turn().timers.set(TimerKind::kGrace, row, until, lease.arrival);
    Decision& told = leases().tell_of_lease(DecisionKind::kLeaseGrace, row);
    told.reason = Reason::kRevoked;
    told.value = until;
    for (uint32_t slot = lease.first_slot; slot != kNoRow; slot = state.slots[slot].holder_next) {
        if (slots().tell_revoke(slot)) {
            turn().decisions.back().claim = lease.arrival;
            turn().decisions.back().value = until;
        }
    }
    turn().touched.add(lease.pool);
    matcher().account_news();
}

// The end of a lease whose slot is promised, at once or after its grace. In a pool of strict expiry
// no claim gets the slot before the holder's death is proved.
void Preemption::end_revoked(uint32_t row) {
    assert(state.leases[row].state == shm::LeaseState::kRevoking);
    assert((state.leases[row].flags & shm::LeaseFlag::kTaken) != 0);
    if (state.leases[row].mode == shm::ExpiryMode::kStrict) return leases().kill_holder(row);
    const uint32_t claim = book()->claim_of_lease[row];
    const bool again = (state.claims[claim].flags & shm::ClaimFlag::kRequeue) != 0;
    if (again) book()->pass.requeued = true;
    leases().end_lease(row, Reason::kRevoked, Tell::kHolder, false, kNoRow, again);
}

// A slot would become idle: its successor gets it. False if it lacks by now a label that the claim
// must have, or that claim's deadline has passed: then its timer ends it in this turn.
bool Preemption::serve_successor(uint32_t slot) {
    const uint32_t claim = book()->promised_to[slot];
    const shm::ClaimRow& row = state.claims[claim];
    assert(row.state == shm::ClaimState::kPromised && row.pool == state.slots[slot].pool);
    if (turn().now_ns > row.deadline_ns ||
        !book()->labels.covers(state.slots[slot].label_set, row.label_set)) {
        drop_successor(slot);
        return false;
    }
    // A claim that is held over already comes first, when the pool is passed.
    const bool is_asked = state.slots[slot].session != kNoRow;
    if (is_asked && (!may_ask(state.pools[row.pool], 1) || holds_others_over(row.pool, slot))) {
        hold_over(slot);
        return true;
    }
    give_promised(slot);
    return true;
}

void Preemption::give_promised(uint32_t slot) {
    const uint32_t claim = book()->promised_to[slot];
    const shm::ClaimRow& row = state.claims[claim];
    assert(row.units == 1 && row.pool == state.slots[slot].pool);
    break_promise(slot);
    matcher().claim_stops_waiting(claim);
    turn().touched.add(row.pool);
    matcher().account_news();
    // Not given back in between, it has kept its place among the leased ones.
    if (state.slots[slot].state == SlotState::kLeased) {
        crowds().leave_leased(slot);
        crowds().stand_leased(slot);
    }
    book()->chosen.assign(1, slot);
    crowds().give_slots(claim, book()->chosen, state.slots[slot].session == kNoRow ? 0 : 1);
}

// As many workers are being asked as the pool allows: the slot waits for its turn, and no other
// claim gets it meanwhile.
void Preemption::hold_over(uint32_t slot) {
    shm::SlotRow& held = edit().row(state.slots[slot], 1);
    assert(book()->promised_to[slot] != kNoRow && held.holder == kNoRow);
    put(held.flags, shm::SlotFlag::kSaidReady);
    slots().recover(slot);
    std::vector<uint32_t>& all = book()->held_over[held.pool];
    if (std::find(all.begin(), all.end(), slot) == all.end()) all.push_back(slot);
}

bool Preemption::is_held_over(uint32_t row) const {
    constexpr auto kStops =
        static_cast<uint8_t>(shm::SlotFlag::kProtected | shm::SlotFlag::kUnqualified);
    const shm::SlotRow& slot = state.slots[row];
    return slot.state == SlotState::kRecovering && slot.holder == kNoRow &&
           (slot.flags & shm::SlotFlag::kSaidReady) != 0 && (slot.flags & kStops) == 0 &&
           matcher().successor_of(row) != kNoRow;
}

bool Preemption::holds_others_over(uint32_t pool, uint32_t slot) const {
    const std::vector<uint32_t>& held = book()->held_over[pool];
    return std::any_of(held.begin(), held.end(), [&](uint32_t other) {
        return other != slot && state.slots[other].pool == pool && is_held_over(other);
    });
}

// Before any other worker is asked: the claims that a slot has been taken for have paid for it.
bool Preemption::hand_over_held(uint32_t pool) {
    std::vector<uint32_t>& held = book()->held_over[pool];
    if (held.empty() || !may_ask(state.pools[pool], 1)) return true;
    std::erase_if(held, [&](uint32_t slot) {  // a row that has gone may be another pool's by now
        return state.slots[slot].pool != pool || !is_held_over(slot);
    });
    const auto number = [&](uint32_t slot) {
        return state.claims[book()->promised_to[slot]].arrival;
    };
    std::sort(held.begin(), held.end(), [&](uint32_t left, uint32_t right) {
        return number(left) < number(right);
    });
    size_t next = 0;
    for (; next < held.size() && may_ask(state.pools[pool], 1); ++next) {
        if (turn().full()) break;
        put(edit().row(state.slots[held[next]], 1).flags, 0);
        give_promised(held[next]);
    }
    const bool goes_on = next < held.size() && may_ask(state.pools[pool], 1);
    held.erase(held.begin(), held.begin() + static_cast<ptrdiff_t>(next));
    return !goes_on;
}

// Takes the promise back; the claim is left to the caller, still marked promised.
void Preemption::break_promise(uint32_t slot) {
    const uint32_t row = book()->promised_to[slot];
    book()->promised_to[slot] = kNoRow;
    const shm::ClaimRow& claim = state.claims[row];
    assert(claim.state == shm::ClaimState::kPromised && claim.first_slot == slot);
    assert(free_rows().confirming_total != 0);
    crowds().count_fanout(row, claim.account_class, -1);
    crowds().count_labels(claim.account, slot, -1);
    free_rows().lease_row_comes();
    --free_rows().confirming_total;
    put(edit().row(claim, 1).first_slot, kNoRow);
}

// The slot goes before the claim has it: the claim waits again. The previous run has ended, and the
// next claim for the slot has nothing aborted for it.
void Preemption::drop_successor(uint32_t slot) {
    const uint32_t row = matcher().successor_of(slot);
    if (row == kNoRow) return;
    break_promise(slot);
    const shm::SlotRow& left = state.slots[slot];
    if (left.session == kNoRow && left.worker_tag != 0) {
        put(edit().row(left, 1U << 1U).worker_tag, 0);
    }
    put(edit().row(state.claims[row], 1).state, shm::ClaimState::kWaiting);
    crowds().wait_in_crowd(row);
    if ((state.claims[row].flags & kImpatient) != 0) matcher().impatient.push_back(row);
    matcher().touch(state.claims[row].pool);
}

}  // namespace dibs::core
