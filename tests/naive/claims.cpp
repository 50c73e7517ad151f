// tests/naive/claims.cpp -- "Claims" of docs/scheduling.md: acceptance, service, ends.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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

// "Checked in this order, the first that fails rejects."
Reason NaiveCore::refusal_of(const core::Claim& claim, uint64_t* first_claim) const {
    if (claim.refusal != Reason::kOk) return claim.refusal;
    const Session& session = m_.sessions.at(claim.session);
    if (claim.tag >= session.tags_max || tag_in_use(claim.session, claim.tag))
        return Reason::kLimit;
    if (!pool_lives(claim.pool)) return Reason::kUnknownPool;
    if (is_draining(claim.pool)) return Reason::kDraining;
    const core::PoolConfig& pool = m_.pools[claim.pool].config;
    const bool counted = pool.kind == shm::PoolKind::kCounted;
    const uint32_t most = counted ? pool.slots : pool.unconfirmed_max;
    if (claim.units == 0 || claim.units > pool.units_max || claim.units > most) {
        return Reason::kTooManyUnits;
    }
    if (claim.payload.size() > pool.payload_max) return Reason::kPayload;
    *first_claim = claim_with_key(session.uid, claim.key);
    if (*first_claim != 0) return Reason::kDuplicate;
    if (pending_of(claim.pool).size() >= pool.backlog_max) return Reason::kBacklogFull;
    if (blocks_for(claim.payload.size()) > arena_free()) return Reason::kArenaFull;
    if (claim_rows_used() >= limits_.claims || lease_rows_free() == 0) return Reason::kTablesFull;
    if (by_account(claim.pool) && claim.terms != nullptr &&
        !(labels_are_sound(claim.terms->labels) && labels_are_sound(claim.terms->provisionable) &&
          claim.terms->account.size() <= shm::kNameMax)) {
        return Reason::kPayload;
    }
    return Reason::kOk;
}

void NaiveCore::apply(const core::Claim& command) {
    const uint64_t number = ++m_.claims_seen;  // "a rejected claim has its number too"
    Pool* pool = pool_lives(command.pool) ? &m_.pools[command.pool] : nullptr;
    uint64_t first_claim = 0;
    const Reason refusal = refusal_of(command, &first_claim);
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
    claim.user_data = command.user_data;
    claim.interval_ns = command.interval_ns;
    claim.key = command.key;
    claim.payload_blocks = blocks_for(command.payload.size());
    claim.turn = m_.turn;
    // "as it says (when_busy), else as its pool says; a now-only claim that would wait rejects"
    const WhenBusy says = command.when_busy_given ? command.when_busy : pool->config.when_busy;
    const bool now_only = command.timeout_ns == 0;
    claim.deadline_ns = now_only ? shm::kNever : later(m_.now, command.timeout_ns);
    claim.is_cold = says == WhenBusy::kCold;
    claim.is_impatient = says != WhenBusy::kWait || now_only;
    pool->totals.accepted += 1;
    claim.enqueued_ns = m_.now;
    if (by_account(command.pool)) take_terms(claim, command.terms);
    m_.claims[number] = claim;
}

// "A claim's account is the one that it names, else its session's, else none." "A claim's confirmed
// time starts as its event_ns, its enqueue time as its enqueued_ns; both default to the turn's
// time."
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
        claim.enqueued_ns = event_time(terms->enqueued_ns);
        claim.confirmed_ns = event_time(terms->confirmed_ns);
    }
    know_account(claim.account);
}

// In a pool ordered by account a claim that runs keeps its row.
uint64_t NaiveCore::claim_rows_used() const {
    uint64_t used = m_.claims.size();
    for (const auto& [number, lease] : m_.leases)
        used += by_account(lease.pool);
    return used;
}

void NaiveCore::apply(const core::Cancel& cancel) {
    for (const auto& [number, claim] : m_.claims) {
        if (claim.session != cancel.session || claim.tag != cancel.tag) continue;
        tell_result(cancel.session, cancel.user_data, Reason::kOk);
        end_claim_and_free(number, Outcome::kCancelled, Reason::kOk);
        return;
    }
    for (const auto& [claim, lease] : m_.leases) {
        if (lease.session != cancel.session || lease.tag != cancel.tag) continue;
        tell_result(cancel.session, cancel.user_data, Reason::kOk);
        m_.pools.at(lease.pool).totals.released += 1;
        end_lease_and_free(claim, false);
        return;
    }
    tell_result(cancel.session, cancel.user_data, Reason::kNotFound);
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
    uint64_t spoken_for = m_.leases.size();
    for (const auto& [number, claim] : m_.claims)
        spoken_for += claim.is_confirming || claim.is_promised;
    return limits_.leases - spoken_for;
}

// "served when its units are ≤ idle slots, there is a lease row that no confirming claim will need,
// and (worker pools) unconfirmed + units ≤ unconfirmed_max, or nothing is unconfirmed"
bool NaiveCore::can_be_served(const Claim& claim) const {
    const Pool& pool = m_.pools.at(claim.pool);
    if (lease_rows_free() == 0) return false;
    if (claim.units > ready_of(claim.pool).size()) return false;
    if (pool.config.kind == shm::PoolKind::kCounted) return true;
    return may_ask(claim.pool, claim.units);
}

// "Serving takes the units from the head of the ready queue. A counted pool grants at once. A
// worker pool reserves for reservation_ttl_ns, tells each worker assign, and the claim is
// confirming." S0.19: the time to live starts here.
void NaiveCore::serve(uint64_t number) {
    Claim& claim = m_.claims.at(number);
    Pool& pool = m_.pools.at(claim.pool);
    claim.slots = ready_of(claim.pool);
    claim.slots.resize(claim.units);
    if (pool.config.kind == shm::PoolKind::kCounted) {
        grant(number);
    } else {
        reserve(number);
    }
}

void NaiveCore::reserve(uint64_t number) {
    Claim& claim = m_.claims.at(number);
    Pool& pool = m_.pools.at(claim.pool);
    claim.is_confirming = true;
    claim.reserved_until_ns = later(m_.now, pool.config.reservation_ttl_ns);
    for (const uint64_t id : claim.slots) {
        Slot& slot = m_.slots.at(id);
        slot.is = SlotIs::kReserved;
        slot.has_confirmed = slot.session == shm::kNoRow;  // "slots without one count as confirmed"
        slot.only_waits_for_admission = false;
        slot.claim = number;
        slot.round += 1;
        if (slot.has_confirmed) continue;
        Decision& assign = tell(DecisionKind::kAssign, slot.session);
        assign.pool = slot.pool;
        assign.slot_number = slot.number;
        assign.id = slot.id;
        assign.round = slot.round;
        assign.claim = number;
        assign.user_data = slot.worker_tag;
        assign.provision = by_account(slot.pool) && !has_all(slot.labels, claim.provisionable);
    }
}

// "An impatient claim ends rejected, with reason cold for cold ones, else busy, both with
// retry-after and the present holder."
void NaiveCore::reject_impatient(uint64_t number) {
    const Claim& claim = m_.claims.at(number);
    const uint64_t retry_after_ns = m_.pools.at(claim.pool).config.retry_after_ns;
    end_claim(
        number, Outcome::kRejected, claim.is_cold ? Reason::kCold : Reason::kBusy, retry_after_ns);
}

// "A claim that waits again stands where its number puts it (S0.25). If its pool drains, it ends
// rejected (draining) instead."
void NaiveCore::wait_again(uint64_t number) {
    Claim& claim = m_.claims.at(number);
    claim.is_confirming = false;
    claim.abort = 0;
    claim.slots.clear();
    if (is_draining(claim.pool)) end_claim(number, Outcome::kRejected, Reason::kDraining, 0);
}

// "Each accepted claim ends once." "An expired or busy or cold end names who holds what was
// wanted."
void NaiveCore::end_claim(uint64_t number, Outcome outcome, Reason reason, uint64_t value) {
    const Claim claim = m_.claims.at(number);
    Pool& pool = m_.pools.at(claim.pool);
    Decision& end = tell(DecisionKind::kEnd, claim.session == dying_ ? shm::kNoRow : claim.session);
    end.tag = claim.tag;
    end.claim = number;
    end.user_data = claim.user_data;
    end.outcome = outcome;
    end.reason = reason;
    end.value = value;
    if (outcome == Outcome::kExpired || reason == Reason::kBusy || reason == Reason::kCold) {
        name_holder(end, oldest_lease_of(claim.pool));
    }
    pool.totals.expired += outcome == Outcome::kExpired;
    pool.totals.cancelled += outcome == Outcome::kCancelled;
    pool.totals.rejected += outcome == Outcome::kRejected;
    arena_freed(claim.payload_blocks);
    m_.claims.erase(number);
    for (auto& [id, slot] : m_.slots) {
        if (slot.promised_to == number) void_promise(id);
    }
}

// kEnd, then what happens to the claim's slots.
void NaiveCore::end_claim_and_free(uint64_t number, Outcome outcome, Reason reason) {
    const std::vector<uint64_t> slots = m_.claims.at(number).slots;
    end_claim(number, outcome, reason, 0);
    for (const uint64_t slot : slots)
        free_slot(slot);
}

}  // namespace dibs::naive
