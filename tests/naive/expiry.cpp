// tests/naive/expiry.cpp -- leases that end by time: grace, kill, collection.
//
// What leases do of themselves is of docs/scheduling.md, and quoted. What names a statement is
// written from it: what becomes of their slots, and for which claim they are collected.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::DecisionKind;
using shm::ExpiryMode;
using shm::Reason;

void NaiveCore::lease_expired(uint64_t id) {
    Lease& lease = m_.leases.at(id);
    const core::PoolConfig& pool = m_.pools.at(lease.pool).config;
    if (pool.expiry == ExpiryMode::kStrict) {
        kill_holder(lease);
    } else if (pool.expiry == ExpiryMode::kLazy) {
        lease.is_uncollected = true;
        tell_of_lease(DecisionKind::kLeaseGrace, lease).value = shm::kNever;
    } else if (grace_of(lease) != 0) {
        begin_grace(lease);
    } else {
        lease_ended_by_time(id);
    }
}

// "Cooperative: after expiry the lease is in grace for grace_ns from now, its holder is told; at
// the end of grace (at once if 0, and then without kLeaseGrace) it ends, reason expired lease."
void NaiveCore::begin_grace(Lease& lease) {
    lease.is_in_grace = true;
    lease.grace_until_ns = later(m_.now, grace_of(lease));
    tell_of_lease(DecisionKind::kLeaseGrace, lease).value = lease.grace_until_ns;
}

// S0.24: its slots are let go like those that are released: what ended it is nothing to them.
void NaiveCore::lease_ended_by_time(uint64_t id) {
    tell_lease_end(m_.leases.at(id), Reason::kExpiredLease);
    end_lease_and_free(id, false);
}

// "Strict: kKill is decided; its slots are recovering under it until it ends."
void NaiveCore::kill_holder(Lease& lease) {
    m_.pools.at(lease.pool).totals.kills += 1;
    tell_of_lease(DecisionKind::kKill, lease);
    if (lease.is_being_killed) return;  // once more
    lease.is_being_killed = true;
    for (const uint64_t id : lease.slots) {
        Slot& slot = m_.slots.at(id);
        slot.is = SlotIs::kRecovering;
        slot.holder_is_killed = true;
        slot.is_unconfirmed = false;
    }
}

void NaiveCore::apply(const core::KillFailed& failed) {
    const auto lease = m_.leases.find(failed.lease);
    if (lease == m_.leases.end() || !lease->second.is_being_killed) return;
    m_.pools.at(lease->second.pool).totals.kills_failed += 1;
}

// "The death of a worker takes its slot off a lease whose holder is being killed; the lease ends
// worker lost with its last one."
void NaiveCore::take_off_lease(uint64_t slot) {
    Lease& lease = m_.leases.at(m_.slots.at(slot).claim);
    if (lease.slots.size() == 1) {
        tell_lease_end(lease, Reason::kWorkerLost);
        remove_lease(lease.claim);
    } else {
        if (by_account(lease.pool)) end_strictly(lease);
        std::erase(lease.slots, slot);
    }
}

// "The one whose expiry is the earliest first, then by number."
std::vector<uint64_t> NaiveCore::uncollected_of(uint32_t pool) const {
    std::vector<uint64_t> numbers;
    for (const auto& [number, lease] : m_.leases) {
        if (lease.pool == pool && lease.is_uncollected) numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end(), [&](uint64_t left, uint64_t right) {
        return std::tuple(m_.leases.at(left).expires_ns, left) <
               std::tuple(m_.leases.at(right).expires_ns, right);
    });
    return numbers;
}

// S0.14, S0.15: the lease's slots that, let go, nothing would keep from being admitted; a draining
// one would go.
std::vector<uint64_t> NaiveCore::would_come_back(uint64_t number) const {
    std::vector<uint64_t> slots;
    for (const uint64_t id : m_.leases.at(number).slots) {
        const Slot& slot = m_.slots.at(id);
        if (!slot.is_protected && !slot.is_unqualified && !slot.is_draining) slots.push_back(id);
    }
    return slots;
}

// "Collection": of the first claim in the backlog that cannot be served. S0.10: it alone, as the
// others wait behind it. S0.22: past the maximum of unconfirmed reservations it waits for that, and
// nothing is collected. S0.7: slots that are idle count, and those that were collected before and
// are on their way; a claim that does not wait cannot wait for workers either.
void NaiveCore::collect_for(const Claim& claim) {
    if (!m_.pools.at(claim.pool).vector.empty()) return collect_vectors(claim);
    const core::PoolConfig& pool = m_.pools.at(claim.pool).config;
    const bool counted = pool.kind == shm::PoolKind::kCounted;
    const uint64_t units = claim.units;
    if (claim.is_impatient && !counted && !pool.release_is_ready) return;
    if (!counted && !may_ask(claim.pool, units)) return;
    uint64_t comes = ready_of(claim.pool).size();
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool == claim.pool && slot.is_collected && !claim.is_impatient) ++comes;
    }
    // "Still not fitting: nothing is collected."
    const std::vector<uint64_t> uncollected = uncollected_of(claim.pool);
    uint64_t reachable = comes;
    for (const uint64_t lease : uncollected)
        reachable += would_come_back(lease).size();
    if (reachable < units) return;
    for (const uint64_t lease : uncollected) {
        if (comes >= units) return;
        const std::vector<uint64_t> slots = would_come_back(lease);
        if (slots.empty()) continue;
        comes += slots.size();
        lease_ended_by_time(lease);
        for (const uint64_t id : slots) {
            Slot& slot = m_.slots.at(id);
            slot.is_collected = slot.is == SlotIs::kRecovering;
        }
    }
}

}  // namespace dibs::naive
