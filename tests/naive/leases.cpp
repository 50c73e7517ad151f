// tests/naive/leases.cpp -- "Leases" of docs/scheduling.md: grant, keepalive, release, ends.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Reason;

// "A grant makes a lease: id, fence (the pool's next), interval. The interval asked for is cut to
// interval_max_ns; 0 binds the lease to its holder's life."
void NaiveCore::grant(uint64_t number) {
    const Claim claim = m_.claims.at(number);
    Pool& pool = m_.pools.at(claim.pool);
    Lease lease;
    lease.claim = number;
    lease.session = claim.session;
    lease.tag = claim.tag;
    lease.pool = claim.pool;
    lease.fence = pool.fence_next++;
    lease.key = claim.key;
    lease.interval_ns = std::min(claim.interval_ns, pool.config.interval_max_ns);
    lease.expires_ns = lease.interval_ns == 0 ? shm::kNever : later(m_.now, lease.interval_ns);
    lease.granted_ns = m_.now;
    lease.slots = claim.slots;
    for (const uint64_t id : claim.slots) {
        Slot& slot = m_.slots.at(id);
        slot.is = SlotIs::kLeased;
        slot.claim = number;
    }
    pool.totals.granted += 1;
    pool.totals.hits += claim.turn == m_.turn;  // "a claim granted in the turn that it came in"
    pool.last_dispatch_ns = m_.now;
    arena_freed(claim.payload_blocks);
    m_.claims.erase(number);
    m_.leases[number] = lease;

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
    list_slots(grant, lease.slots);
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
    if (lease->second.fence != fence) return Reason::kStale;
    return std::nullopt;
}

void NaiveCore::apply(const core::Release& release) {
    const auto refusal = lease_refusal(release.session, release.lease, release.fence);
    tell_result(release.session, release.user_data, refusal.value_or(Reason::kOk));
    if (refusal == Reason::kNotHolder) name_holder(decisions_.back(), &m_.leases.at(release.lease));
    if (refusal) return;
    m_.pools.at(m_.leases.at(release.lease).pool).totals.released += 1;
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
    Lease& lease = m_.leases.at(keepalive.lease);
    TimeNs interval_ns = 0;
    if (lease.interval_ns != 0) {
        const TimeNs asked = keepalive.interval_ns == 0 ? lease.interval_ns : keepalive.interval_ns;
        interval_ns = std::min(asked, m_.pools.at(lease.pool).config.interval_max_ns);
        lease.expires_ns = later(m_.now, interval_ns);
        lease.is_in_grace = false;
    }
    tell_result(keepalive.session, keepalive.user_data, Reason::kOk, interval_ns);
}

void NaiveCore::lease_row_used_again(uint64_t lease) {
    const auto ended = m_.ended.find(lease);
    if (ended != m_.ended.end()) ended->second.row_used_again = true;
}

// The lease is gone; its slots are for the caller to put somewhere.
std::vector<uint64_t> NaiveCore::remove_lease(uint64_t id) {
    const Lease lease = m_.leases.at(id);
    m_.ended[id] = EndedLease{lease.fence, false};
    m_.leases.erase(id);
    return lease.slots;
}

void NaiveCore::end_lease_and_free(uint64_t lease, bool broken) {
    for (const uint64_t slot : remove_lease(lease))
        free_slot(slot, broken);
}

void NaiveCore::tell_lease_end(const Lease& lease, Reason reason) {
    Decision& end = tell(DecisionKind::kLeaseEnd, lease.session);
    end.pool = lease.pool;
    end.tag = lease.tag;
    end.claim = lease.claim;
    end.id = lease.claim;
    end.fence = lease.fence;
    end.reason = reason;
}

// "Cooperative: after expiry the lease is in grace for grace_ns, its holder is told; at the end of
// grace (at once if 0, and then without kLeaseGrace) it ends, reason expired lease."
void NaiveCore::lease_expired(uint64_t id) {
    Lease& lease = m_.leases.at(id);
    const TimeNs grace_ns = m_.pools.at(lease.pool).config.grace_ns;
    if (grace_ns == 0) {
        lease_ended_by_time(id);
        return;
    }
    lease.is_in_grace = true;
    lease.grace_until_ns = later(lease.expires_ns, grace_ns);
    Decision& grace = tell(DecisionKind::kLeaseGrace, lease.session);
    grace.pool = lease.pool;
    grace.tag = lease.tag;
    grace.claim = lease.claim;
    grace.id = lease.claim;
    grace.fence = lease.fence;
    grace.value = lease.grace_until_ns;
}

void NaiveCore::lease_ended_by_time(uint64_t id) {
    tell_lease_end(m_.leases.at(id), Reason::kExpiredLease);
    end_lease_and_free(id, false);
}

}  // namespace dibs::naive
