// tests/naive/claims.cpp -- claims: accepted, served, waiting again, ended.
//
// What names a statement is written from it; what quotes (keys, units, tags, tables, terms of
// accounts) is of docs/scheduling.md, and so is which of several reasons a refusal says.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/gangs.hpp"
#include "tests/naive/labels.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Outcome;
using shm::Reason;
using shm::WhenBusy;

namespace {

// "backlog full, arena full, tables full: with retry-after"
bool has_retry_after(Reason reason) {
    return reason == Reason::kBacklogFull || reason == Reason::kArenaFull ||
           reason == Reason::kTablesFull;
}

}  // namespace

// "Checked in this order, the first that fails rejects." S0.31: what is closed says so. S0.3: what
// is full refuses at once. S0.25, S0.33: a claim in transition still has its place in the backlog,
// so that it can always come back to it.
Reason NaiveCore::refusal_of(const core::Claim& claim, uint64_t* first_claim) const {
    if (!claim.also.empty()) return refusal_of_several(claim, first_claim);
    if (claim.refusal != Reason::kOk) return claim.refusal;
    const Session& session = m_.sessions.at(claim.session);
    if (claim.tag >= session.tags_max || tag_in_use(claim.session, claim.tag))
        return Reason::kLimit;
    if (!pool_lives(claim.pool)) return Reason::kUnknownPool;
    if (is_dispatched(claim.pool)) return Reason::kState;
    if (is_draining(claim.pool)) return Reason::kDraining;
    const core::PoolConfig& pool = m_.pools[claim.pool].config;
    const bool counted = pool.kind == shm::PoolKind::kCounted;
    const uint32_t workers = pool.workers_max == 0 ? pool.units_max : pool.workers_max;
    const uint32_t most = counted ? pool.slots : std::min(pool.unconfirmed_max, workers);
    if (claim.units == 0 || claim.units > pool.units_max || claim.units > most) {
        return Reason::kTooManyUnits;
    }
    const Reason of_vectors = vector_refusal(claim, first_claim);
    if (of_vectors != Reason::kOk) return of_vectors;
    if (claim.payload.size() > pool.payload_max) return Reason::kPayload;
    if (claim.meta.size() > shm::kMetaMax) return Reason::kPayload;
    *first_claim = claim_with_key(session.uid, claim.key);
    if (*first_claim != 0) return Reason::kDuplicate;
    const auto held = std::count_if(m_.claims.begin(), m_.claims.end(), [&](const auto& entry) {
        return entry.second.is_held_back && entry.second.pool == claim.pool;
    });
    const size_t pending = pending_of(claim.pool).size() + static_cast<size_t>(held);
    if (pending >= pool.backlog_max) return Reason::kBacklogFull;
    const uint32_t blocks = blocks_for(claim.payload.size()) + blocks_for(claim.meta.size());
    if (blocks > arena_free()) return Reason::kArenaFull;
    if (claim_rows_used() >= limits_.claims || lease_rows_free() == 0) return Reason::kTablesFull;
    if (by_account(claim.pool) && claim.terms != nullptr &&
        !(labels_are_sound(claim.terms->labels) && labels_are_sound(claim.terms->provisionable) &&
          claim.terms->account.size() <= shm::kNameMax)) {
        return Reason::kPayload;
    }
    return Reason::kOk;
}

// S0.3: a refused claim leaves nothing behind; S0.6: yet it gets its one result. S0.1, S0.4: an
// accepted one carries what it brought, and is stamped with its time unless it brought one: that
// orders nothing. S0.9: it waits, and is looked at after those that came before it, when the turn
// ends.
void NaiveCore::apply(const core::Claim& given) {
    core::Claim plain = given;
    if (given.member !=
        nullptr) {  // it is refused for these behind what a plain one is refused for
        plain.also = {};
        plain.route = nullptr;
    }
    const core::Claim command = plain.route == nullptr ? plain : placed(plain);
    const uint64_t number = ++m_.claims_seen;  // "a rejected claim has its number too"
    Pool* pool = pool_lives(command.pool) ? &m_.pools[command.pool] : nullptr;
    uint64_t first_claim = 0;
    Reason refusal = refusal_of(command, &first_claim);
    if (refusal == Reason::kOk && given.member != nullptr)
        refusal = member_refusal(m_, given, &first_claim);
    if (refusal == Reason::kOk && given.member != nullptr)
        refusal = Gangs(*this).room_for_task(given);
    if (refusal != Reason::kOk) {
        if (pool != nullptr) pool->totals.turned_away += 1;
        Decision& end = tell(DecisionKind::kEnd, command.session);
        end.tag = command.tag;
        end.claim = number;
        end.user_data = command.user_data;
        end.outcome = Outcome::kRejected;
        end.reason = refusal;
        end.id = first_claim;
        if (has_retry_after(refusal)) end.value = pool->config.retry_after_ns;
        return;
    }
    Claim claim;
    claim.number = number;
    claim.session = command.session;
    claim.tag = command.tag;
    claim.units = command.units;
    claim.pool = command.pool;
    claim.also.assign(command.also.begin(), command.also.end());
    claim.user_data = command.user_data;
    claim.interval_ns = command.interval_ns;
    claim.by_word = command.by_word;
    claim.key = command.key;
    claim.payload_blocks = blocks_for(command.payload.size());
    claim.meta_blocks = blocks_for(command.meta.size());
    claim.turn = m_.turn;
    claim.enqueued_ns = m_.now;
    if (command.terms != nullptr) claim.enqueued_ns = event_time(command.terms->enqueued_ns);
    // S0.2: without a deadline it never expires. A claim that says *now* has none: it is granted or
    // rejected when its turn ends. S3.5: so does one that accepts an offer.
    const bool now_only = command.timeout_ns == 0 || command.offer != 0;
    claim.deadline_ns = command.timeout_ns == 0 ? shm::kNever : later(m_.now, command.timeout_ns);
    if (command.deadline_ns != shm::kNever) claim.deadline_ns = command.deadline_ns;
    const WhenBusy says = command.when_busy_given ? command.when_busy : pool->config.when_busy;
    claim.is_impatient = now_only || says == WhenBusy::kReject || says == WhenBusy::kCold;
    claim.is_cold = says == WhenBusy::kCold;
    claim.priority = command.priority;
    if (by_account(command.pool)) take_terms(claim, command.terms);
    take_vectors(claim, command);
    if (given.member != nullptr) gangs().take_member(claim, *given.member);
    for (const uint32_t one : pools_of(claim))
        m_.pools[one].totals.accepted += 1;
    m_.claims[number] = claim;
}

// "A claim's account is the one that it names, else its session's, else none." "A claim's confirmed
// time starts as its event_ns", which defaults to the turn's time.
void NaiveCore::take_terms(Claim& claim, const core::ClaimTerms* terms) {
    claim.confirmed_ns = m_.now;
    claim.account = m_.sessions.at(claim.session).account;
    if (terms != nullptr) {
        if (!terms->account.empty()) claim.account = terms->account;
        claim.base = label_set(terms->labels);
        claim.provisionable = label_set(terms->provisionable);
        claim.preempt_mode = terms->preempt_mode;
        claim.preempt_grace_ns = terms->preempt_grace_ns;
        claim.requeue = terms->requeue;
        claim.confirmed_ns = event_time(terms->confirmed_ns);
    }
    know_account(claim.account);
}

// In a pool ordered by account a claim that runs keeps its row.
uint64_t NaiveCore::claim_rows_used() const {
    uint64_t used = 0;
    for (const auto& [number, claim] : m_.claims)
        used += 1 + claim.also.size();
    for (const auto& [number, lease] : m_.leases)
        used += by_account(lease.pool);
    return used;
}

// S0.2, S0.22: a claim whose cancel signal has fired is over, waiting or in transition, and lets go
// what is reserved for it. S0.40: if its grant was faster, that is given back.
void NaiveCore::apply(const core::Cancel& cancel) {
    uint64_t claim = 0;
    for (const auto& [number, waiting] : m_.claims) {
        if (waiting.session == cancel.session && waiting.tag == cancel.tag) claim = number;
    }
    uint64_t lease = 0;
    for (const auto& [number, held] : m_.leases) {
        if (held.session == cancel.session && held.tag == cancel.tag) lease = number;
    }
    const bool is_known = claim != 0 || lease != 0;
    tell_result(cancel.session, cancel.user_data, is_known ? Reason::kOk : Reason::kNotFound);
    if (claim != 0) {
        end_claim_and_free(claim, Outcome::kCancelled, Reason::kOk);
    } else if (lease != 0) {
        count_release(m_.leases.at(lease));
        gangs().lease_ends(m_.leases.at(lease), shm::TaskState::kCompleted);
        end_lease_and_free(lease, false);
    }
}

bool NaiveCore::tag_in_use(uint32_t session, uint16_t tag) const {
    const auto has_it = [&](const auto& entry) {
        return entry.second.session == session && entry.second.tag == tag;
    };
    return std::any_of(m_.claims.begin(), m_.claims.end(), has_it) ||
           std::any_of(m_.leases.begin(), m_.leases.end(), has_it);
}

// "key in use by the same uid, in a waiting claim or a live lease"; 0 = none
uint64_t NaiveCore::claim_with_key(uint32_t uid, const core::Key& key) const {
    if (key == core::Key{}) return 0;
    for (const auto& [number, claim] : m_.claims) {
        if (claim.key == key && m_.sessions.at(claim.session).uid == uid) return number;
    }
    for (const auto& [number, lease] : m_.leases) {
        if (lease.key == key && m_.sessions.at(lease.session).uid == uid) return number;
    }
    return 0;
}

// Lease rows that neither a live lease has nor a confirming claim, of any pool, will need.
uint64_t NaiveCore::lease_rows_free() const {
    uint64_t spoken_for = 0;
    for (const auto& [number, lease] : m_.leases)
        spoken_for += lease.fences.size();
    for (const auto& [number, claim] : m_.claims)
        spoken_for += claim.is_confirming || claim.is_promised ? 1 + claim.also.size() : 0;
    return limits_.leases - spoken_for;
}

// S0.8: a claim is served if the ready queue has what it wants. S0.22: past the maximum of
// unconfirmed reservations it waits, and no slot is popped for it. Slots of a counted pool have
// nobody to confirm them. "There is a lease row that no confirming claim will need."
bool NaiveCore::can_be_served(const Claim& claim) const {
    if (!claim.also.empty()) return several_can_be_served(claim);
    if (claim.wants_part) return slot_for_part(claim).has_value();
    const bool has_slots = ready_for(claim).size() >= claim.units;
    const bool counted = m_.pools.at(claim.pool).config.kind == shm::PoolKind::kCounted;
    return has_slots && (counted || may_ask(claim.pool, claim.units)) && lease_rows_free() > 0;
}

// S0.14, S0.15: the slots that have been idle longest are popped, and reserved in the same step.
// S0.22, S0.23: then their workers make the transition; where there are none it is made already.
void NaiveCore::serve(uint64_t number) {
    Claim& claim = m_.claims.at(number);
    if (claim.wants_part) return serve_part(number, *slot_for_part(claim));
    if (!claim.also.empty()) return serve_several(number);
    std::vector<uint64_t> ready = ready_for(claim);
    if (is_elastic(claim.pool)) std::reverse(ready.begin(), ready.end());  // S1.35
    claim.slots.assign(ready.begin(), ready.begin() + claim.units);
    if (m_.pools.at(claim.pool).config.kind == shm::PoolKind::kCounted) {
        grant(number);
    } else {
        reserve(number);
    }
}

// S0.17, S0.19: the reservation lasts for its time to live from here on, where the transition
// starts. S0.20: it is of this incarnation of the slot, which the round tells from others. Workers
// that are only reported are asked nothing.
void NaiveCore::reserve(uint64_t number) {
    Claim& claim = m_.claims.at(number);
    claim.is_confirming = true;
    TimeNs ttl_ns = shm::kNever;  // the shortest holds
    for (const uint32_t pool : pools_of(claim))
        ttl_ns = std::min(ttl_ns, m_.pools.at(pool).config.reservation_ttl_ns);
    claim.reserved_until_ns = later(m_.now, ttl_ns);
    for (const uint64_t id : claim.slots) {
        Slot& slot = m_.slots.at(id);
        slot.is = SlotIs::kReserved;
        slot.claim = number;
        slot.round += 1;
        slot.only_waits_for_admission = false;
        slot.has_confirmed = slot.session == shm::kNoRow;
        if (slot.has_confirmed) continue;
        Decision& assign = tell(DecisionKind::kAssign, slot.session);
        assign.pool = slot.pool;
        assign.slot_number = slot.number;
        assign.id = slot.id;
        assign.round = slot.round;
        assign.claim = number;
        assign.user_data = slot.worker_tag;
        list_part(assign, slot, claim.most);
        assign.provision = by_account(slot.pool) && !has_all(slot.labels, claim.provisionable);
    }
}

// "An impatient claim ends rejected, with reason cold for cold ones, else busy, both with
// retry-after and the present holder."
void NaiveCore::reject_impatient(uint64_t number) {
    const Claim& claim = m_.claims.at(number);
    if (claim.offer != 0) {
        return end_claim(number, Outcome::kRejected, Reason::kOfferExpired, 0);
    }
    const uint64_t retry_after_ns = m_.pools.at(claim.pool).config.retry_after_ns;
    end_claim(
        number, Outcome::kRejected, claim.is_cold ? Reason::kCold : Reason::kBusy, retry_after_ns);
}

// S0.25: back in its old place, which its number is, without what it had been given. S0.29, S0.31:
// where the pool is closed nothing waits any more, and it gets its result.
void NaiveCore::wait_again(uint64_t number) {
    Claim& claim = m_.claims.at(number);
    claim.is_held_back = claim.application != 0;  // whether it was to replace one or not
    gangs().let_go(claim);
    claim.is_confirming = false;
    claim.slots.clear();
    claim.abort = 0;
    for (const uint32_t of : pools_of(claim)) {
        const core::PoolConfig& pool = m_.pools.at(of).config;
        const bool counted = pool.kind == shm::PoolKind::kCounted;
        if (is_draining(of)) {
            return end_claim(number, Outcome::kRejected, Reason::kDraining, 0);
        }
        if (counted && units_in(claim, of) > pool.slots) {
            return end_claim(number, Outcome::kRejected, Reason::kTooManyUnits, 0);
        }
    }
}

// S0.6: the one terminal result of a claim; it is pending no more. S0.32: with a code that says how
// it ended. S0.40: nobody is told if its client is gone. "An expired or busy or cold end names who
// holds what was wanted."
void NaiveCore::end_claim(uint64_t number, Outcome outcome, Reason reason, uint64_t value) {
    const Claim claim = m_.claims.at(number);
    m_.claims.erase(number);
    arena_freed(claim.payload_blocks + claim.meta_blocks);
    gangs().claim_ended(claim, outcome);
    for (const uint32_t pool : pools_of(claim)) {
        Totals& totals = m_.pools.at(pool).totals;
        if (outcome == Outcome::kExpired) totals.expired += 1;
        if (outcome == Outcome::kCancelled) totals.cancelled += 1;
        if (outcome == Outcome::kRejected) totals.rejected += 1;
    }

    Decision& end = tell(DecisionKind::kEnd, claim.session == dying_ ? shm::kNoRow : claim.session);
    end.tag = claim.tag;
    end.claim = number;
    end.user_data = claim.user_data;
    end.outcome = outcome;
    end.reason = reason;
    end.value = value;
    const bool is_wanting =
        outcome == Outcome::kExpired || reason == Reason::kBusy || reason == Reason::kCold;
    if (is_wanting) name_holder(end, oldest_lease_of(pool_that_lacks(claim)));

    for (auto& [id, slot] : m_.slots) {
        if (slot.promised_to == number) promised_claim_ended(id);
    }
}

// S0.22: a claim that ends in transition lets go what is reserved for it. Both are told at the same
// turn's end: the client that hears of its end finds the reservation released.
void NaiveCore::end_claim_and_free(uint64_t number, Outcome outcome, Reason reason) {
    const std::vector<uint64_t> slots = m_.claims.at(number).slots;
    end_claim(number, outcome, reason, 0);
    for (const uint64_t slot : slots)
        free_slot(slot);
}

}  // namespace dibs::naive
