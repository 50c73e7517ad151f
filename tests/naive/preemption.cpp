// tests/naive/preemption.cpp -- "Preemption" of docs/scheduling.md: candidates, money, promises.
//
// Who is preempted and who pays is quoted from there; what becomes of claims and slots on the way
// is written from the statements named.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>
#include <utility>

#include "tests/naive/labels.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Outcome;
using shm::PreemptMode;
using shm::Reason;

// "Banned are the accounts that have a lease in this pool at a class > p, as of the start of this
// step. Candidates are leases of one unit at a class > p that may be preempted, cheapest first
// (cost, then slot number)." S2.19 "What the turn's passes have granted is no candidate in it."
void NaiveCore::preempt_at(Pass& pass, uint8_t at) {
    std::set<std::string> banned;
    std::map<std::tuple<Money, uint32_t>, uint64_t> candidates;
    for (const auto& [number, lease] : m_.leases) {
        if (lease.pool != pass.pool || lease.account_class <= at || lease.is_revoking) continue;
        banned.insert(lease.was.account);
        if (lease.is_being_killed) continue;
        const bool never = lease.was.preempt_mode == PreemptMode::kForbidden;
        const Slot& slot = m_.slots.at(lease.slots.front());
        const bool comes_back = !slot.is_protected && !slot.is_unqualified && !slot.is_draining;
        if (lease.slots.size() != 1 || never || !comes_back) continue;
        if (m_.granted_by_pass.contains(number)) continue;
        candidates[{lease.cost, m_.slots.at(lease.slots.front()).number}] = number;
    }
    for (const auto& [order, victim] : candidates) {
        if (pass.service_is_over) return;
        for (const uint64_t number : list_of(pass, at)) {
            const Claim& claim = m_.claims.at(number);
            if (banned.contains(claim.account)) continue;
            if (!may_preempt(claim, m_.leases.at(victim))) continue;
            pass.service_is_over = lease_rows_free() == 0;
            if (pass.service_is_over) {
                pass.kept_in_vain = pass.kept_in_vain || claim.is_impatient;
                return;
            }
            preempt(number, victim, at);
            break;
        }
    }
}

// "The first claim for one unit whose base labels the slot has, whose remaining fan-out is ≥ 1,
// whose label limits the slot passes, and whose account's balance vector is strictly greater than
// the candidate's cost."
bool NaiveCore::may_preempt(const Claim& claim, const Lease& victim) const {
    const Slot& slot = m_.slots.at(victim.slots.front());
    return claim.units == 1 && has_all(slot.labels, claim.base) && fanout_left(claim) >= 1 &&
           within_limits(claim, slot.id, {}) && configured(claim.account)->balance > victim.cost;
}

// "Carrying it out, in this order." S2.21
void NaiveCore::preempt(uint64_t number, uint64_t victim_id, uint8_t at) {
    Claim& claim = m_.claims.at(number);
    Lease& victim = m_.leases.at(victim_id);
    Slot& slot = m_.slots.at(victim.slots.front());
    Account& payer = m_.accounts.at(claim.account);

    Decision& preempts = tell(DecisionKind::kPreempt, shm::kNoRow);
    preempts.claim = number;
    preempts.pool = claim.pool;
    preempts.slot_number = slot.number;
    preempts.account = payer.place;
    preempts.holder_claim = victim_id;
    list_cost(preempts, victim.cost);

    const auto payee = m_.accounts.find(victim.was.account);
    Decision& refund = tell(DecisionKind::kRefund, shm::kNoRow);
    refund.claim = number;
    refund.holder_claim = victim_id;
    refund.pool = claim.pool;
    refund.account = payee == m_.accounts.end() ? shm::kNoRow : payee->second.place;
    refund.is_void = configured(victim.was.account) == nullptr;
    list_cost(refund, victim.cost);
    if (!refund.is_void) move_balance(payee->second, victim.cost, 1);
    move_balance(payer, victim.cost, -1);

    for (size_t i = 0; i < claim.carried.size(); ++i)
        claim.carried[i] += victim.cost[i];
    claim.served_class = at;
    claim.is_promised = true;
    claim.abort = victim_id;
    slot.promised_to = number;
    if (victim.was.preempt_mode == PreemptMode::kWithGrace && victim.was.preempt_grace_ns != 0) {
        revoke_with_grace(victim);
    } else {
        const bool comes_again = victim.was.requeue && !is_strict(victim);
        m_.pass_once_more = m_.pass_once_more || comes_again;
        revocation_over(victim_id);
    }
}

// "With grace it is revoking until now + grace (or its own expiry, if earlier; now, if that has
// passed): free of charge, at class free, no candidate, not counted; holder and worker are told."
void NaiveCore::revoke_with_grace(Lease& lease) {
    lease.grace_until_ns = std::min(later(m_.now, lease.was.preempt_grace_ns), lease.expires_ns);
    lease.grace_until_ns = std::max(lease.grace_until_ns, m_.now);
    lease.is_in_grace = false;
    lease.is_revoking = true;
    lease.account_class = kFreeClass;
    Decision& grace = tell_of_lease(DecisionKind::kLeaseGrace, lease);
    grace.value = lease.grace_until_ns;
    grace.reason = Reason::kRevoked;
    const Slot& slot = m_.slots.at(lease.slots.front());
    if (slot.session == shm::kNoRow) {
        m_.slots.at(slot.id).abort = lease.claim;  // nobody to tell: its worker hears when it asks
        return;
    }
    revoke(slot);
    decisions_.back().value = lease.grace_until_ns;
}

// "Its lease ends, revoked, its holder told; one that asked for requeue waits again in its old
// place." "In a pool of strict expiry its holder is killed instead."
void NaiveCore::revocation_over(uint64_t id) {
    if (is_strict(m_.leases.at(id))) return end_strictly(m_.leases.at(id));
    const Lease lease = m_.leases.at(id);
    Decision& end = tell_of_lease(DecisionKind::kLeaseEnd, lease);
    end.reason = Reason::kRevoked;
    end.value = lease.was.requeue ? 1 : 0;
    const std::vector<uint64_t> slots = remove_lease(id);
    if (lease.was.requeue) queue_again(lease);
    for (const uint64_t slot : slots)
        free_slot(slot);
}

// S0.25: it goes back to its old place, which its number is, as if it had just come: nothing is
// reserved for it, nobody is asked. S0.4: its enqueue time stays. S0.29: where the pool is closed
// it gets its result. "Without deadline, patient. It has no class in this pass; another pass over
// the pool follows at once, in a turn of its own at the same time."
void NaiveCore::queue_again(const Lease& lease) {
    Claim claim = lease.was;
    claim.session = lease.session;
    claim.tag = lease.tag;
    claim.user_data = lease.user_data;
    claim.deadline_ns = shm::kNever;
    claim.is_impatient = false;
    claim.is_confirming = false;
    claim.is_promised = false;
    claim.slots.clear();
    claim.carried = {};
    claim.abort = 0;
    claim.served_class = kFreeClass;
    claim.turn = 0;
    m_.claims[claim.number] = claim;
    m_.pools.at(claim.pool).totals.requeued += 1;
    wait_again(claim.number);
}

// S0.2: a claim that is over gets no slot. And the slot may have other labels by now.
bool NaiveCore::promise_is_void(const Slot& slot) const {
    const Claim& next = m_.claims.at(slot.promised_to);
    return m_.now > next.deadline_ns || !has_all(slot.labels, next.base);
}

// S0.22: past the maximum of unconfirmed reservations a claim waits, and its slot is not popped: it
// is nobody else's either. Who is only reported is not asked.
bool NaiveCore::is_held_over(const Slot& slot) {
    return slot.is == SlotIs::kRecovering && slot.only_waits_for_admission && !slot.is_protected &&
           !slot.is_unqualified && slot.promised_to != 0;
}

// S0.22, invariant 9: those that have preempted and only wait for that come first when there is
// room, in order of arrival.
void NaiveCore::hand_over_held(uint32_t pool) {
    for (const auto& [number, id] : held_over_in(pool)) {
        if (!may_ask(pool, 1)) return;
        m_.slots.at(id).only_waits_for_admission = false;
        give_promised(id);
    }
}

// By their claims' numbers.
std::map<uint64_t, uint64_t> NaiveCore::held_over_in(uint32_t pool) const {
    std::map<uint64_t, uint64_t> held;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool == pool && is_held_over(slot)) held[slot.promised_to] = id;
    }
    return held;
}

// "The slot goes to the preemptor's claim as soon as it would be idle." S0.14: past the ready
// queue. S0.19: and like any other from here on: reserved while its worker makes the transition, or
// granted at once if there is none to ask.
void NaiveCore::give_promised(uint64_t id) {
    const Slot& slot = m_.slots.at(id);
    const uint64_t number = slot.promised_to;
    const bool has_worker = slot.session != shm::kNoRow;
    Claim& claim = m_.claims.at(number);
    claim.is_promised = false;
    claim.slots = {id};
    m_.slots.at(id).promised_to = 0;
    if (has_worker) {
        reserve(number);
    } else {
        grant(number);
    }
}

// S0.25: the claim, if it has not ended, waits in its place. "It keeps the cost that it has taken
// over."
void NaiveCore::void_promise(uint64_t id) {
    const uint64_t number = std::exchange(m_.slots.at(id).promised_to, 0);
    if (!m_.claims.contains(number)) return;
    m_.claims.at(number).is_promised = false;
    m_.claims.at(number).abort = 0;
}

// The claim has ended: what waited for it alone is idle.
void NaiveCore::promised_claim_ended(uint64_t id) {
    const bool is_ready = is_held_over(m_.slots.at(id));
    void_promise(id);
    if (is_ready) become_idle(id);
}

}  // namespace dibs::naive
