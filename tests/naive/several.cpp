// tests/naive/several.cpp -- claims over several pools: all of them or none.
//
// Written from "Claims over several pools" in docs/scheduling.md, which is quoted. Such a claim is
// one claim here, and its lease one lease, with slots of each of its pools.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

using core::Decision;
using shm::Reason;

// "Checked in this order: refusal; more than seven further pools, or a pool twice; then for each
// pool another kind of pool, or a claim for a part or an offer, and all that a plain claim of it
// would be refused for; then more than 256 units in all; no claim row for each pool, or no lease
// row."
Reason NaiveCore::refusal_of_several(const core::Claim& claim, uint64_t* first_claim) const {
    if (claim.refusal != Reason::kOk) return claim.refusal;
    std::vector<core::PoolUnits> pools = {{claim.pool, claim.units}};
    pools.insert(pools.end(), claim.also.begin(), claim.also.end());
    std::set<uint32_t> names;
    for (const core::PoolUnits& one : pools)
        names.insert(one.pool);
    if (claim.also.size() > 7 || names.size() != pools.size()) return Reason::kMalformed;
    uint64_t units = 0;
    for (const core::PoolUnits& one : pools) {
        core::Claim plain = claim;
        plain.also = {};
        plain.pool = one.pool;
        plain.units = one.units;
        if (pool_lives(one.pool)) {
            const core::PoolConfig& pool = m_.pools[one.pool].config;
            const bool is_fit = pool.order == shm::PoolOrder::kArrival &&
                                pool.expiry == shm::ExpiryMode::kCooperative &&
                                m_.pools[one.pool].vector.empty();
            const bool is_part = !claim.least.empty() || !claim.most.empty() || claim.offer != 0;
            if (!is_fit || is_part) return Reason::kState;
        }
        const Reason reason = refusal_of(plain, first_claim);
        if (reason != Reason::kOk) return reason;
        units += one.units;
    }
    if (units > 256) return Reason::kTooManyUnits;
    const bool has_rows =
        claim_rows_used() + pools.size() <= limits_.claims && lease_rows_free() >= pools.size();
    return has_rows ? Reason::kOk : Reason::kTablesFull;
}

// "In each of its pools at once it stands first."
bool NaiveCore::is_first_everywhere(const Claim& claim) const {
    for (const uint32_t pool : pools_of(claim)) {
        for (const uint64_t number : order_of(pool)) {
            if (number == claim.number) break;
            if (!m_.claims.at(number).is_confirming) return false;
        }
    }
    return true;
}

// "And a plain claim of its units would be served, and a lease row for each pool is left."
bool NaiveCore::several_can_be_served(const Claim& claim) const {
    if (!is_first_everywhere(claim) || lease_rows_free() < 1 + claim.also.size()) return false;
    for (const uint32_t pool : pools_of(claim)) {
        const uint64_t units = units_in(claim, pool);
        const bool counted = m_.pools.at(pool).config.kind == shm::PoolKind::kCounted;
        if (ready_of(pool).size() < units || !(counted || may_ask(pool, units))) return false;
    }
    return true;
}

// "If one of the pools has workers, the slots of all pools are reserved in the same turn."
void NaiveCore::serve_several(uint64_t number) {
    Claim& claim = m_.claims.at(number);
    bool has_workers = false;
    for (const uint32_t pool : pools_of(claim)) {
        const std::vector<uint64_t> ready = ready_of(pool);
        claim.slots.insert(claim.slots.end(), ready.begin(), ready.begin() + units_in(claim, pool));
        has_workers = has_workers || m_.pools.at(pool).config.kind == shm::PoolKind::kWorker;
    }
    has_workers ? reserve(number) : grant(number);
}

// "Where it was served, its pools are looked at again, and of all pools in order of arrival that
// have something to decide the one with the lowest row is the next. Behind the pass over all pools
// claims that do not wait end, in order of number; where one over several pools ends, its pools are
// looked at again before the next one does."
void NaiveCore::pass_over_pools() {
    uint32_t behind = 0;
    for (;;) {
        for (uint32_t pool = 0; pool < m_.pools.size();) {
            goes_back_ = false;
            const bool is_new = pool >= behind;
            if (is_new || m_.pools[pool].config.order == shm::PoolOrder::kArrival) pass_over(pool);
            behind = std::max(behind, pool + 1);
            pool = goes_back_ ? 0 : pool + 1;
        }
        const auto late = first_that_ends_late();
        if (!late) return;
        reject_impatient(*late);
    }
}

std::optional<uint64_t> NaiveCore::first_that_ends_late() const {
    for (const auto& [number, claim] : m_.claims) {
        const bool by_arrival = m_.pools.at(claim.pool).config.order == shm::PoolOrder::kArrival;
        const bool waits = !claim.is_confirming && !claim.is_held_back;
        if (by_arrival && claim.is_impatient && waits) return number;
    }
    return std::nullopt;
}

// "In the first of its pools that has fewer idle slots than it wants; if all have enough, in its
// first one."
uint32_t NaiveCore::pool_that_lacks(const Claim& claim) const {
    if (claim.also.empty()) return claim.pool;
    for (const uint32_t pool : pools_of(claim)) {
        if (ready_of(pool).size() < units_in(claim, pool)) return pool;
    }
    return claim.pool;
}

void NaiveCore::count_release(const Lease& lease) {
    for (const auto& [pool, fence] : lease.fences)
        m_.pools.at(pool).totals.released += 1;
}

// "The grace is the least of the pools'."
TimeNs NaiveCore::grace_of(const Lease& lease) const {
    TimeNs grace_ns = shm::kNever;
    for (const auto& [pool, fence] : lease.fences)
        grace_ns = std::min(grace_ns, m_.pools.at(pool).config.grace_ns);
    return grace_ns;
}

// "One for each pool, one behind the other, each with its slots and its pool's fence."
void NaiveCore::tell_further(size_t first, const Lease& lease) {
    const std::vector<uint32_t> pools = pools_of(lease.was);
    decisions_[first].round = static_cast<uint32_t>(pools.size());
    for (size_t part = 1; part < pools.size(); ++part) {
        Decision further = decisions_[first];
        further.part = static_cast<uint8_t>(part);
        further.pool = pools[part];
        further.units = units_in(lease.was, pools[part]);
        further.fence = lease.fences.at(pools[part]);
        list_slots(further, slots_in(lease, pools[part]));
        decisions_.push_back(further);
    }
}

}  // namespace dibs::naive
