// broker/core/rules/workers.cpp -- applies what workers say of slots that they have announced.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace SlotFlag = shm::SlotFlag;
using Kind = WorkerWord::Kind;

void Workers::apply(const WorkerWord& word) {
    const uint32_t row = row_of(word.slot);
    const auto refuse = [&](Reason reason) { turn().result(word.session, word.user_data, reason); };
    if (row >= state.slots.size()) return refuse(Reason::kNotFound);
    const shm::SlotRow& slot = state.slots[row];
    // Slots of a deleted pool are not there any more, however many of them are still to go.
    if (slot.state == SlotState::kFree || row_id(slot.head.generation, row) != word.slot ||
        !pools().pool_lives(slot.pool)) {
        return refuse(Reason::kNotFound);
    }
    if (slot.session != word.session) return refuse(Reason::kNotHolder);
    const bool of_a_round = word.kind == Kind::kReady || word.kind == Kind::kConfirm ||
                            word.kind == Kind::kRefuse || word.kind == Kind::kDone;
    if (of_a_round && word.round != slot.round) return refuse(Reason::kStale);
    if (!allowed(word, row)) return refuse(Reason::kState);
    if (word.answer.size() > state.pools[slot.pool].answer_max) return refuse(Reason::kPayload);
    refuse(Reason::kOk);
    matcher().news_of(slot.pool);
    switch (word.kind) {
        case Kind::kReady:
            return say_ready(row);
        case Kind::kConfirm:
            return say_confirm(row, word);
        case Kind::kRefuse:
            return say_refuse(row, word);
        case Kind::kDone:
            return say_done(row, word);
        case Kind::kWithdraw:
            return say_withdraw(row);
        case Kind::kProtect:
            return protect(row, true);
        case Kind::kUnprotect:
            return protect(row, false);
    }
}

bool Workers::allowed(const WorkerWord& word, uint32_t row) const {
    const shm::SlotRow& slot = state.slots[row];
    switch (word.kind) {
        case Kind::kReady:
            return !being_killed_for(slot) && slot.state != SlotState::kShared;
        case Kind::kWithdraw:
        case Kind::kProtect:
        case Kind::kUnprotect:
            return slot.part_of == kNoRow;
        case Kind::kConfirm:
            return slot.state == SlotState::kUnknown || is_taken_back(slot) ||
                   (slot.state == SlotState::kReserved && slot.holder != kNoRow &&
                    (slot.flags & SlotFlag::kConfirmed) == 0);
        case Kind::kRefuse:
            return slot.state == SlotState::kUnknown ||
                   (slot.state == SlotState::kReserved && slot.holder != kNoRow);
        case Kind::kDone:
            return slot.state == SlotState::kLeased;
    }
    return false;
}

void Workers::say_ready(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    switch (slot.state) {
        case SlotState::kRecovering:
        case SlotState::kUnknown:
            return slots().make_idle(row);
        case SlotState::kReserved:
            break;
        case SlotState::kLeased:
            leases().end_lease(slot.holder, Reason::kDone, Tell::kHolder, false, row);
            return slots().make_idle(row);
        default:
            return;
    }
    assert(slots().kept_slots.has(TimerKind::kKept, row) == is_kept(slot));
    slots().kept_slots.remove(TimerKind::kKept, row);
    if (is_placeholder(slot)) return;
    if (is_kept(slot)) return slots().make_idle(row);
    const uint32_t claim = slot.holder;
    const uint32_t first = claims().unreserve(claim);
    slots().make_idle(row);
    claims().wait_again(claim);
    slots().give_back_chain(first, false, false, row);
}

// The slot's index among its holder's, then the bytes.
void Workers::tell_answer(uint32_t row, std::span<const uint8_t> answer) {
    if (answer.empty()) return;
    const shm::SlotRow& slot = state.slots[row];
    assert(slot.holder != kNoRow);
    const bool leased = slot.state == SlotState::kLeased;
    const uint32_t first =
        leased ? state.leases[slot.holder].first_slot : state.claims[slot.holder].first_slot;
    uint32_t index = 0;
    for (uint32_t at = first; at != row; at = state.slots[at].holder_next)
        ++index;
    Decision& told = turn().decide_that(DecisionKind::kAnswer);
    told.pool = slot.pool;
    told.slot_number = slot.number;
    told.slots_begin = index;
    told.answer = answer;
    if (leased) {
        const shm::LeaseRow& lease = state.leases[slot.holder];
        assert(lease.state != shm::LeaseState::kFree && index < lease.units);
        told.session = lease.session;
        told.tag = lease.tag;
        told.claim = lease.arrival;
        told.room = lease.room;
        told.reason = Reason::kDone;
        if (is_several(lease)) told.part = several_pools().part_of(state.leases, slot.holder);
    } else {
        const shm::ClaimRow& claim = state.claims[slot.holder];
        assert(claim.state == shm::ClaimState::kReserved && index < claim.units);
        told.session = claim.session;
        told.tag = claim.tag;
        told.claim = claim.arrival;
        told.room = claim.room;
        if (is_several(claim)) told.part = several_pools().part_of(state.claims, slot.holder);
    }
}

void Workers::say_confirm(uint32_t row, const WorkerWord& word) {
    if (state.slots[row].state != SlotState::kReserved) return confirm_late(row);
    // A claim whose deadline has passed ends in this turn, with its timer.
    const uint32_t first = several_pools().first_claim(state.slots[row].holder);
    const bool in_time = turn().now_ns <= state.claims[first].deadline_ns;
    if (in_time) tell_answer(row, word.answer);
    shm::SlotRow& slot = edit().row(state.slots[row], 1);
    // Its transition: protection that came before that ends with it (S0.23).
    const uint32_t ends = in_time && !is_withheld(slot) ? uint32_t{SlotFlag::kProtected} : 0;
    put(slot.flags, (slot.flags & ~ends) | uint32_t{SlotFlag::kConfirmed});
    shm::ClaimRow& claim = edit().row(state.claims[slot.holder], 1);
    assert(claim.state == shm::ClaimState::kReserved && claim.confirmed < claim.units);
    shm::PoolRow& pool = edit().row(state.pools[slot.pool], kPoolHot);
    assert(claim.pool == slot.pool && pool.unconfirmed != 0);
    put(claim.confirmed, claim.confirmed + 1);
    put(pool.unconfirmed, pool.unconfirmed - 1);
    matcher().touch(slot.pool);
    if (claim.confirmed < claim.units || !in_time) return;
    const uint32_t claim_row = slot.holder;
    if (is_several(claim)) return several_pools().grant_confirmed(claim_row);
    leases().grant(claim_row, claims().unreserve(claim_row));
}

// Its claim waits again or has ended: the slot is released at once. A worker that has been
// notified of that is not notified again.
void Workers::confirm_late(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    assert(slot.state == SlotState::kUnknown || is_taken_back(slot));
    const bool release_is_ready =
        (state.pools[slot.pool].flags & shm::PoolFlag::kReleaseIsReady) != 0;
    if (release_is_ready && is_taken_back(slot)) return slots().make_idle(row);
    if (slot.state == SlotState::kUnknown) return slots().make_recovering(row, true);
    put(edit().row(slot, 1).flags, slot.flags & ~uint32_t{SlotFlag::kTakenBack});
    if (slot.part_of != kNoRow) vectors().slot_changes(row);
}

void Workers::say_refuse(uint32_t row, const WorkerWord& word) {
    const shm::SlotRow& slot = state.slots[row];
    shm::PoolRow& pool = edit().row(state.pools[slot.pool], kPoolTotals);
    put(pool.refused_total, pool.refused_total + 1);
    if (slot.state == SlotState::kUnknown) return slots().make_idle(row);
    const uint32_t claim = slot.holder;
    const uint64_t until = state.claims[claim].reserved_until_ns;
    const uint32_t first = claims().unreserve(claim);
    if (word.try_again) {
        shm::SlotRow& stays = edit().row(slot, 1U << 1U);
        put(stays.flags, stays.flags & ~uint32_t{SlotFlag::kConfirmed});
        put(stays.holder, kNoRow);
        put(stays.reserved_until_ns, std::max<TimeNs>(until, 1));  // 0 is a placeholder's
        matcher().holder_changes(row);
        assert(is_kept(stays));
        const uint64_t number = (uint64_t{slot.pool} << 32U) | slot.number;
        slots().kept_slots.set(TimerKind::kKept, row, until, number);
        claims().wait_again(claim);
    } else {
        slots().make_idle(row);
        claims().end_claim(
            claim, Outcome::kRejected, Reason::kRefused, static_cast<uint64_t>(word.code), true);
    }
    slots().give_back_chain(first, false, false, row);
}

void Workers::say_done(uint32_t row, const WorkerWord& word) {
    assert(state.slots[row].state == SlotState::kLeased);
    tell_answer(row, word.answer);
    leases().end_lease(state.slots[row].holder, Reason::kDone, Tell::kHolder, false, row);
    if (word.then_ready) return slots().make_idle(row);
    slots().make_recovering(row, false);
}

void Workers::say_withdraw(uint32_t row) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1);
    if (slot.holder == kNoRow && slot.parts == 0) return slots().remove_slot(row);
    assert(slot.state == SlotState::kReserved || slot.state == SlotState::kLeased ||
           slot.state == SlotState::kRecovering || slot.state == SlotState::kShared);
    matcher().slot_changes(row, [&] { put(slot.flags, slot.flags | SlotFlag::kDraining); });
    if (slot.parts == 0) return;
    slot.session != kNoRow ? vectors().join_unheld(row) : gangs().whole_leaves(row);
}

void Workers::protect(uint32_t row, bool on) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1);
    assert(slot.state != SlotState::kFree);
    const uint32_t mark = on || is_withheld(slot) ? uint32_t{SlotFlag::kProtected} : 0;
    matcher().slot_changes(
        row, [&] { put(slot.flags, (slot.flags & ~uint32_t{SlotFlag::kProtected}) | mark); });
    readmit(row);
}

// After a change of protection or labels: into the queue or out of it.
void Workers::readmit(uint32_t row) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1);
    const bool stopped = (slot.flags & (SlotFlag::kProtected | SlotFlag::kUnqualified)) != 0;
    if (stopped && slot.state == SlotState::kIdle) {
        put(slot.flags, slot.flags | SlotFlag::kSaidReady);
        slots().move_slot(row, SlotState::kRecovering);
    } else if ((slot.flags & SlotFlag::kSaidReady) != 0) {
        if (!stopped) return slots().make_idle(row);
        preemption().drop_successor(row);  // it was held over
    } else if (slot.state == SlotState::kLeased || slot.state == SlotState::kShared) {
        matcher().touch(slot.pool);  // to collect its lease may be worth while now
    }
}

}  // namespace dibs::core
