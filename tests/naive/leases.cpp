// tests/naive/leases.cpp -- leases: granted, prolonged, given back, adopted, ended.
//
// What names a statement is written from it: a claim's success, and what its end does to the slots.
// What quotes (intervals, fences, adoption, reasons of refusals) is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/gangs.hpp"
#include "tests/naive/labels.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Reason;

// S0.6: the claim's one terminal result, with its slots; it is pending no more. S0.24: they were
// its by reservation, and nobody else can have them now: they run. S0.23: with that the mark goes
// that protected them, if it was set since they were chosen. S0.33: the last success of the pool.
// "A grant makes a lease: id, fence (the pool's next), interval. The interval asked for is cut to
// interval_max_ns; 0 binds the lease to its holder's life."
void NaiveCore::grant(uint64_t number) {
    const Claim claim = m_.claims.at(number);
    m_.claims.erase(number);
    arena_freed(claim.payload_blocks);

    Lease lease;
    TimeNs interval_max_ns = shm::kNever;
    for (const uint32_t one : pools_of(claim)) {
        Pool& pool = m_.pools.at(one);
        pool.last_dispatch_ns = m_.now;
        pool.totals.granted += 1;
        if (claim.turn == m_.turn) pool.totals.hits += 1;
        lease.fences[one] = pool.fence_next++;
        interval_max_ns = std::min(interval_max_ns, pool.config.interval_max_ns);
    }

    lease.claim = number;
    lease.session = claim.session;
    lease.tag = claim.tag;
    lease.pool = claim.pool;
    lease.user_data = claim.user_data;
    lease.fence = lease.fences.at(claim.pool);
    lease.key = claim.key;
    lease.interval_ns = std::min(claim.interval_ns, interval_max_ns);
    if (lease.interval_ns != 0) lease.expires_ns = later(m_.now, lease.interval_ns);
    lease.by_word = claim.by_word && lease.interval_ns != 0;
    lease.granted_ns = m_.now;
    lease.slots = claim.slots;
    lease.meta_blocks = claim.meta_blocks;
    lease.was = claim;
    lease.account_class = claim.served_class;
    lease.cost = claim.carried;
    // "A plain claim, of one unit, without interval, key and payload."
    const bool is_plain = claim.units == 1 && claim.interval_ns == 0 && claim.key == core::Key{} &&
                          claim.payload_blocks == 0 && claim.meta_blocks == 0 &&
                          claim.also.empty() && claim.application == 0;
    lease.may_park = is_plain && parks(claim.pool) && !is_draining(claim.pool);
    m_.leases[number] = lease;
    m_.ended.erase(number);

    bool provision = false;
    for (const uint64_t id : claim.slots) {
        Slot& slot = m_.slots.at(id);
        slot.is = SlotIs::kLeased;
        slot.claim = number;
        slot.fence = lease.fences.at(slot.pool);
        slot.has_confirmed = true;
        // "A smaller member's part is cut to what it wants."
        for (size_t at = 0; at < slot.part.size(); ++at)
            slot.part[at] = std::min(slot.part[at], claim.most[at]);
        // Of accounts.
        slot.is_unconfirmed = slot.session == shm::kNoRow;
        slot.assigned_ns = m_.now;
        slot.abort = claim.abort;
        if (!has_all(slot.labels, claim.provisionable)) provision = by_account(claim.pool);
    }

    Decision& grant = tell(DecisionKind::kGrant, lease.session);
    grant.pool = lease.pool;
    grant.tag = lease.tag;
    grant.units = claim.units;
    grant.claim = number;
    grant.user_data = claim.user_data;
    grant.id = number;
    grant.fence = lease.fence;
    grant.value = lease.interval_ns;
    grant.outcome = shm::Outcome::kGranted;
    grant.provision = provision;
    grant.may_park = lease.may_park;
    if (m_.has_passed) m_.granted_by_pass.insert(number);
    grant.has_class = by_account(lease.pool);
    if (grant.has_class) grant.to_class = claim.served_class;
    list_slots(grant, slots_in(lease, lease.pool));
    if (!claim.also.empty()) return tell_further(decisions_.size() - 1, m_.leases.at(number));
    list_part(grant, m_.slots.at(lease.slots.front()), claim.most);
    gangs().granted(claim);
}

// "Release, fail, keepalive check in this order." Empty: go on.
std::optional<Reason> NaiveCore::lease_refusal(uint32_t session,
                                               uint64_t id,
                                               uint64_t fence) const {
    const auto ended = m_.ended.find(id);
    if (ended != m_.ended.end()) {
        const bool over = fence == ended->second.fence || ended->second.row_used_again;
        return over ? Reason::kAlreadyEnded : Reason::kStale;
    }
    const auto lease = m_.leases.find(id);
    if (lease == m_.leases.end()) return Reason::kNotFound;
    if (lease->second.session != session) return Reason::kNotHolder;
    const uint64_t first = lease->second.fence;
    const uint64_t last = first + lease->second.takes;
    // "One that shows an earlier take's is told already ended."
    if (first <= fence && fence < last) return Reason::kAlreadyEnded;
    return fence == last ? std::nullopt : std::optional(Reason::kStale);
}

// S0.24: a release lets the slots go at once, however young the lease is: the reservation that it
// came from holds nothing back.
void NaiveCore::apply(const core::Release& release) {
    const auto refusal = lease_refusal(release.session, release.lease, release.fence);
    tell_result(release.session, release.user_data, refusal.value_or(Reason::kOk));
    if (refusal == Reason::kNotHolder) name_holder(decisions_.back(), &m_.leases.at(release.lease));
    if (refusal) return;
    count_release(m_.leases.at(release.lease));
    gangs().lease_ends(m_.leases.at(release.lease), shm::TaskState::kCompleted);
    end_lease_and_free(release.lease, release.broken);
}

// "Keepalive sets expiry to now + interval (cut again; 0 = as granted; of a life-bound lease: ok,
// nothing changes) and its result says the granted interval. In grace it revives the lease."
void NaiveCore::apply(const core::Keepalive& keepalive) {
    const auto refusal = lease_refusal(keepalive.session, keepalive.lease, keepalive.fence);
    if (refusal) {
        tell_result(keepalive.session, keepalive.user_data, *refusal);
        if (refusal == Reason::kNotHolder) {
            name_holder(decisions_.back(), &m_.leases.at(keepalive.lease));
        }
        return;
    }
    if (m_.leases.at(keepalive.lease).is_being_killed) {
        tell_result(keepalive.session, keepalive.user_data, Reason::kExpiredLease);
        return;
    }
    const TimeNs interval_ns = keep_alive(m_.leases.at(keepalive.lease), keepalive.interval_ns);
    tell_result(keepalive.session, keepalive.user_data, Reason::kOk, interval_ns);
}

// "A look at the word of a live lease whose expiry has passed: another value than at the last look,
// 0 as it begins, and it expires one interval after its old expiry. Else nothing changes."
void NaiveCore::apply(const core::Touch& touch) {
    const auto found = m_.leases.find(touch.lease);
    if (found == m_.leases.end() || !found->second.by_word) return;
    Lease& lease = found->second;
    const bool is_live =
        !lease.is_in_grace && !lease.is_uncollected && !lease.is_being_killed && !lease.is_revoking;
    if (!is_live || lease.expires_ns >= m_.now || lease.touched == touch.value) return;
    lease.touched = touch.value;
    lease.expires_ns = later(lease.expires_ns, lease.interval_ns);
}

// "Steering names a lease by its id alone, or a claim by session, tag and number." S0.2, S0.32: a
// claim that is cancelled for its client ends like one that its client cancels, and says by whom.
shm::Reason NaiveCore::apply(const core::Steer& steer, TimeNs* granted_ns) {
    if (steer.kind == core::Steer::Kind::kCancel) {
        if (steer.number == 0 || steer.number > m_.claims_seen) return Reason::kNotFound;
        if (!m_.claims.contains(steer.number)) return Reason::kAlreadyEnded;
        if (m_.claims.at(steer.number).is_ask()) return Reason::kNotFound;
        end_claim_and_free(steer.number, shm::Outcome::kCancelled, Reason::kRevoked);
        return Reason::kOk;
    }
    if (m_.ended.contains(steer.lease)) return Reason::kAlreadyEnded;
    if (!m_.leases.contains(steer.lease)) return Reason::kNotFound;
    const bool outlived = m_.sessions.at(m_.leases.at(steer.lease).session).is_outlived;
    if (outlived && steer.kind == core::Steer::Kind::kRelease) {
        kill_holder(m_.leases.at(steer.lease));  // what is left of it
        return Reason::kOk;
    }
    if (m_.leases.at(steer.lease).is_being_killed) return Reason::kState;
    if (steer.kind == core::Steer::Kind::kRelease) {
        tell_lease_end(m_.leases.at(steer.lease), Reason::kRevoked);
        gangs().lease_ends(m_.leases.at(steer.lease), shm::TaskState::kKilled);
        end_lease_and_free(steer.lease, false);
    } else {
        *granted_ns = keep_alive(m_.leases.at(steer.lease), steer.interval_ns);
    }
    return Reason::kOk;
}

TimeNs NaiveCore::keep_alive(Lease& lease, TimeNs asked_ns) {
    if (lease.interval_ns == 0) return 0;
    // "It does not prolong it", and nothing is left of a grace that has ended.
    if (lease.is_revoking) return lease.grace_until_ns - std::min(lease.grace_until_ns, m_.now);
    TimeNs interval_ns = asked_ns == 0 ? lease.interval_ns : asked_ns;
    for (const auto& [pool, fence] : lease.fences)
        interval_ns = std::min(interval_ns, m_.pools.at(pool).config.interval_max_ns);
    lease.expires_ns = later(m_.now, interval_ns);
    lease.is_in_grace = false;
    lease.is_uncollected = false;
    return interval_ns;
}

void NaiveCore::lease_row_used_again(uint64_t lease) {
    const auto ended = m_.ended.find(lease);
    if (ended != m_.ended.end()) ended->second.row_used_again = true;
}

// The lease is gone; its slots are for the caller to put somewhere. S0.20: what is said of it from
// here on is of one that was.
std::vector<uint64_t> NaiveCore::remove_lease(uint64_t id) {
    const Lease lease = m_.leases.at(id);
    m_.ended[id] = EndedLease{lease.fence + lease.takes, false};
    // "As the lease ends, the pool's next fence grows by all its takes."
    m_.pools.at(lease.pool).fence_next += lease.takes;
    m_.leases.erase(id);
    gangs().lease_ends(lease, shm::TaskState::kFailed);
    use_ended(lease);
    arena_freed(lease.meta_blocks);
    for (const uint64_t slot : lease.slots)
        m_.slots.at(slot).holder_is_killed = false;
    return lease.slots;
}

// S0.11: each of its slots is on its way to the head of the backlog before the turn ends.
void NaiveCore::end_lease_and_free(uint64_t lease, bool broken) {
    for (const uint64_t slot : remove_lease(lease))
        free_slot(slot, broken);
}

void NaiveCore::tell_lease_end(const Lease& lease, Reason reason) {
    tell_of_lease(DecisionKind::kLeaseEnd, lease).reason = reason;
}

Decision& NaiveCore::tell_of_lease(DecisionKind kind, const Lease& lease) {
    Decision& told = tell(kind, lease.session);
    told.pool = lease.pool;
    told.tag = lease.tag;
    told.claim = lease.claim;
    told.id = lease.claim;
    told.fence = lease.fence + lease.takes;
    if (kind == DecisionKind::kLeaseEnd) list_slots(told, slots_in(lease, lease.pool));
    return told;
}

// "An adoption is checked in this order."
Reason NaiveCore::adoption_refusal(const core::Adopt& adopt) const {
    if (adopt.refusal != Reason::kOk) return adopt.refusal;
    const Session& session = m_.sessions.at(adopt.session);
    if (adopt.tag >= session.tags_max || tag_in_use(adopt.session, adopt.tag))
        return Reason::kLimit;
    if (m_.ended.contains(adopt.lease)) return Reason::kEnded;
    const auto lease = m_.leases.find(adopt.lease);
    if (lease == m_.leases.end()) return Reason::kNotFound;
    const Session& holder = m_.sessions.at(lease->second.session);
    if (holder.uid != session.uid) return Reason::kNotAllowed;
    if (holder.is_outlived) return Reason::kEnded;
    if (lease->second.fence + lease->second.takes != adopt.fence) return Reason::kStale;
    if (lease->second.session == adopt.session) return Reason::kState;
    return lease->second.is_being_killed ? Reason::kExpiredLease : Reason::kOk;
}

// "Its id, fence and slots stay; its tag and session are the adopter's; it is kept alive as by a
// keepalive. Its holder is told that it has ended, reason adopted."
void NaiveCore::apply(const core::Adopt& adopt) {
    const Reason refusal = adoption_refusal(adopt);
    if (refusal != Reason::kOk) {
        tell_result(adopt.session, adopt.user_data, refusal);
        return;
    }
    Lease& lease = m_.leases.at(adopt.lease);
    const Lease given = lease;
    lease.may_park = lease.is_parked = lease.is_wanted = false;
    lease.session = adopt.session;
    lease.tag = adopt.tag;
    lease.user_data = adopt.user_data;
    lease.touched = 0;
    keep_alive(lease, 0);
    Decision& adopted = tell_of_lease(DecisionKind::kAdopted, lease);
    adopted.user_data = adopt.user_data;
    adopted.value = lease.interval_ns;
    list_slots(adopted, slots_in(lease, lease.pool));
    if (lease.fences.size() > 1) tell_further(decisions_.size() - 1, lease);
    tell_lease_end(given, Reason::kAdopted);
}

}  // namespace dibs::naive
