// broker/core/match/pass.cpp -- grants slots to waiting claims at the end of a turn.
//
// The pass runs once all of a turn's commands and timers are in, and walks a pool's backlog from
// its head, or from the best priority. The first patient claim that cannot be served stops the
// service, so that no claim behind it takes a slot that it could have used; impatient claims behind
// it still end, because they must not outlive the pass.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace ClaimFlag = shm::ClaimFlag;

// Claims that a pass goes on behind: it is bounded, however many wait.
constexpr uint32_t kPassedOverMax = 32;

bool Matcher::pass() {
    if (book()) book()->is_passing = book()->has_passed = true;
    if (several_pools().waiting != 0) [[unlikely]] {
        if (!several_pools().pass_over_all()) return false;
    } else {
        for (uint32_t pool = turn().dirty.first(0); pool != kNoRow;
             pool = turn().dirty.first(pool + 1)) {
            looked_again = false;
            if (!pass_over(pool)) return false;
            if (!looked_again) turn().dirty.remove(pool);
        }
    }
    if (book()) end_account_turn();
    return true;
}

bool Matcher::servable(uint32_t row, uint32_t units) const {
    const shm::PoolRow& pool = state.pools[row];
    if (pool.idle < units || !free_rows().lease_row_left()) return false;
    return pool.kind == shm::PoolKind::kCounted || may_ask(pool, units);
}

bool Matcher::pass_over(uint32_t pool) {
    if (!serves_by_arrival(pool)) {
        if (by_priority(pool)) return pass_by_priority(pool);
        return crowds().pass_by_account(pool) && (looked_again || provisioning().provision(pool));
    }
    // Fresh claims are older than what waits: they are fresh because nothing waited.
    if (turn().fresh_of_pool[pool].count != 0) early_grants().serve_fresh(pool);
    return serve_pool(pool);
}

bool Matcher::serve_pool(uint32_t pool) {
    // Once more for an application that holds a part only now: all its asks come first; and for
    // those before an ask for which another one has given way.
    do {
        gangs().is_new_holder = gangs().has_given_way = false;
        const bool is_over = serve_in_order(pool);
        vectors().held_back.clear();
        if (!is_over) return false;
    } while (gangs().has_given_way || (gangs().is_new_holder && gangs().holder[pool] != kNoRow));
    return impatient.empty() || end_impatient_of(pool);
}

// Where locks have changed the order, another claim may be the first one now.
bool Matcher::pass_by_priority(uint32_t pool) {
    do {
        if (!serve_pool(pool) || !provisioning().provision(pool)) return false;
    } while (provisioning().reordered);
    return true;
}

bool Matcher::serve_in_order(uint32_t pool) {
    uint32_t last = kNoRow;  // that was passed over
    uint32_t passed_over = 0;
    if (gangs().holder[pool] != kNoRow && !gangs().serve_holder(pool)) return false;
    for (uint32_t claim = next_claim(pool); claim != kNoRow; claim = next_behind(pool, last)) {
        if (turn().full()) return false;
        if (is_several(state.claims[claim])) [[unlikely]] {
            if (!several_pools().can_serve(claim)) return true;
            several_pools().serve(claim);
            return false;
        }
        if (is_ask(state.claims[claim])) [[unlikely]] {
            const uint32_t group = state.claims[claim].group;
            if (!gangs().serve_ask(claim)) return false;
            if (state.groups[group].claim == kNoRow) continue;  // it lacks nothing
            if (passed_over >= kPassedOverMax || !vectors().hold_back(claim)) break;
            last = claim;
            ++passed_over;
            continue;
        }
        const uint32_t units = state.claims[claim].units;
        const bool waits = (state.claims[claim].flags & kImpatient) == 0;
        if (!can_serve(claim)) {
            const bool goes_on = has_resources(state.pools[pool])
                                     ? vectors().collect(claim, units)
                                     : leases().collect(pool, units, !waits);
            if (!goes_on) return false;
        }
        if (can_serve(claim)) {
            serve(claim);
        } else if (!waits && last == kNoRow) {
            end_impatient(claim);
        } else if (passed_over < kPassedOverMax && (!waits || vectors().hold_back(claim))) {
            last = claim;
            ++passed_over;
        } else {
            break;
        }
    }
    return true;
}

// Those of the pool that have not been served.
bool Matcher::end_impatient_of(uint32_t pool) {
    // Behind a claim over several pools they may still be served in this turn.
    if (several_pools().waiting != 0 && backlog.head(pool) != kNoRow &&
        is_several(state.claims[backlog.head(pool)])) {
        return true;
    }
    const auto number = [&](uint32_t claim) { return state.claims[claim].arrival; };
    // In order of number, and once each: a claim that came back stands in the list twice.
    turn().scratch.clear();
    for (const uint32_t claim : impatient) {
        const shm::ClaimRow& row = state.claims[claim];
        if (row.state != shm::ClaimState::kWaiting || row.pool != pool) continue;
        if ((row.flags & kImpatient) == 0 || is_several(row)) continue;
        turn().scratch.push_back(claim);
    }
    std::sort(turn().scratch.begin(), turn().scratch.end(), [&](uint32_t left, uint32_t right) {
        return number(left) < number(right);
    });
    turn().scratch.erase(std::unique(turn().scratch.begin(), turn().scratch.end()),
                         turn().scratch.end());
    for (const uint32_t claim : turn().scratch) {
        if (turn().full()) return false;
        end_impatient(claim);
    }
    return true;
}

void Matcher::end_impatient(uint32_t claim) {
    const shm::ClaimRow& row = state.claims[claim];
    assert(row.state == shm::ClaimState::kWaiting && (row.flags & kImpatient) != 0);
    if (accepts_offer(claim)) {  // there are other offers, and no time to wait for them
        return claims().end_claim(claim, Outcome::kRejected, Reason::kOfferExpired, 0, true);
    }
    const Reason reason = (row.flags & ClaimFlag::kCold) != 0 ? Reason::kCold : Reason::kBusy;
    claims().end_claim(
        claim, Outcome::kRejected, reason, state.pools[row.pool].retry_after_ns, true);
}

// The chain is the head of the ready queue, so it is unlinked as a whole.
uint32_t Matcher::take_idle(uint32_t pool_row, uint32_t units, SlotState to) {
    const bool leased = to == SlotState::kLeased;
    shm::PoolRow& pool = edit().row(state.pools[pool_row], leased ? kPoolHot : kPoolStates);
    assert(pool.idle >= units);
    const uint32_t first = pool.ready_head;
    uint32_t slot = first;
    for (uint32_t unit = 1; unit <= units; ++unit) {
        shm::SlotRow& taken = edit().row(state.slots[slot], 1);
        slot = taken.ready_next;
        put(taken.state, to);
        put(taken.round, taken.round + 1);
        put(taken.holder_next, unit < units ? slot : kNoRow);
    }
    state.slots.fetch(slot);  // the next claim's
    // The next slots' places are in rows that are still on their way from memory. Slots mostly
    // queue as far from each other as these two, so their places are guessed: a claim takes less
    // time than a memory access.
    state.slots.fetch(slot + 2 * (slot - first));
    put(pool.ready_head, slot);
    if (slot == kNoRow) put(pool.ready_tail, kNoRow);
    put(pool.idle, pool.idle - units);
    uint32_t& count = leased ? pool.leased : pool.reserved;
    put(count, count + units);
    turn().touched.add(pool_row);
    for (slot = has_resources(pool) ? first : kNoRow; slot != kNoRow;
         slot = state.slots[slot].holder_next)
        vectors().slot_changes(slot);
    return first;
}

// The same of slots that need not be the first.
uint32_t Matcher::take_these(std::span<const uint32_t> these, SlotState to) {
    uint32_t next = kNoRow;
    for (size_t unit = these.size(); unit-- != 0;) {
        shm::SlotRow& taken = edit().row(state.slots[these[unit]], 1);
        slots().move_slot(these[unit], to);
        put(taken.round, taken.round + 1);
        put(taken.holder_next, next);
        next = these[unit];
    }
    return next;
}

// Of an elastic pool those that became idle last, so that the others may be stopped (S1.35).
uint32_t Matcher::take_last_idle(uint32_t pool, uint32_t units) {
    turn().scratch.clear();
    uint32_t slot = state.pools[pool].ready_tail;
    for (uint32_t unit = 0; unit < units; ++unit, slot = state.slots[slot].ready_prev)
        turn().scratch.push_back(slot);
    return take_these(turn().scratch, SlotState::kReserved);
}

void Matcher::serve(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    if (wants_part(claim)) {
        const uint32_t slot = vectors().slot_for(row);
        claim_stops_waiting(row);
        const uint32_t part = vectors().cut_part(row, slot);
        return give(row, part, state.slots[part].state);
    }
    if (!vectors().held_back.empty()) {
        const auto others = vectors().idle_for_others(claim.pool, claim.units);
        claim_stops_waiting(row);
        return give(row, take_these(others, SlotState::kReserved), SlotState::kReserved);
    }
    const bool counted = state.pools[claim.pool].kind == shm::PoolKind::kCounted;
    const SlotState to = counted ? SlotState::kLeased : SlotState::kReserved;
    claim_stops_waiting(row);
    const bool last = by_priority(claim.pool) && provisioning().is_elastic(claim.pool);
    give(row,
         last ? take_last_idle(claim.pool, claim.units) : take_idle(claim.pool, claim.units, to),
         to);
}

void Matcher::reserve(uint32_t row) {
    shm::ClaimRow& claim = edit().row(state.claims[row], 1U << 1U);
    assert(claim.state != shm::ClaimState::kReserved && claim.first_slot != kNoRow);
    shm::PoolRow& pool = edit().row(state.pools[claim.pool], kPoolStates);
    put(claim.state, shm::ClaimState::kReserved);
    put(claim.confirmed, 0);
    put(claim.reserved_until_ns,
        pool.reservation_ttl_ns < kNever - turn().now_ns ? turn().now_ns + pool.reservation_ttl_ns
                                                         : kNever);
    put(pool.confirming, pool.confirming + 1);
    ++free_rows().confirming_total;
    put(pool.unconfirmed, pool.unconfirmed + claim.units);
    turn().timers.set(TimerKind::kReservation, row, claim.reserved_until_ns, claim.arrival);
    if (by_account(claim.pool)) crowds().occupy(row, claim.first_slot, 1);
    for (uint32_t slot = claim.first_slot; slot != kNoRow;) {
        shm::SlotRow& taken = edit().row(state.slots[slot], 1);
        put(taken.holder, row);
        holder_changes(slot);
        if (taken.session == kNoRow) {  // reported: no session to ask
            put(taken.flags, taken.flags | shm::SlotFlag::kConfirmed);
            assert(claim.confirmed < claim.units && pool.unconfirmed != 0);
            put(claim.confirmed, claim.confirmed + 1);
            put(pool.unconfirmed, pool.unconfirmed - 1);
            slot = taken.holder_next;
            continue;
        }
        Decision& assign = turn().decide_that(DecisionKind::kAssign);
        assign.session = taken.session;
        assign.pool = claim.pool;
        assign.units = claim.units;
        assign.claim = claim.arrival;
        assign.user_data = taken.worker_tag;
        assign.id = row_id(taken.head.generation, slot);
        assign.round = taken.round;
        assign.slot_number = taken.number;
        assign.room = taken.room;
        assign.value = several_pools().first_claim(row);  // its payload is still there
        if (taken.part_of != kNoRow) vectors().list_part(&assign, slot, row);
        assign.provision = by_account(claim.pool) && crowds().lacks_preferred(row, slot);
        slot = taken.holder_next;
    }
}

}  // namespace dibs::core
