// broker/core/fast/parking.cpp -- takes in what the words of leases say, and says when to recall.
//
// A lease that may be parked has one quantum from its grant on, or from when the claim that waits
// longest came, whichever is later. Then as many leases are recalled as claims wait. A lease that
// is found taken then comes back through the ring, when its holder releases it; until it does, one
// more is recalled each quantum, so that one long use does not keep those waiting whom others could
// serve.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/fast/parking.hpp"

#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace LeaseFlag = shm::LeaseFlag;

void Parking::lease_begins(uint32_t row) {
    parkable.push_back(state.leases[row].pool, row);
}

void Parking::lease_is_found(uint32_t row) {
    const shm::LeaseRow& lease = state.leases[row];
    if ((lease.flags & LeaseFlag::kMayPark) == 0) return;
    if ((lease.flags & LeaseFlag::kWanted) == 0) return lease_begins(row);
    ++wanted[lease.pool];
    recalled_ns[lease.pool] = std::max(recalled_ns[lease.pool], lease.wanted_ns);
}

void Parking::forget() {
    parkable = Chains(state.pools.size(), state.leases.size());
    std::fill(wanted.begin(), wanted.end(), 0);
}

void Parking::parking_ends(uint32_t row) {
    const shm::LeaseRow& lease = state.leases[row];
    if ((lease.flags & LeaseFlag::kMayPark) == 0) return;
    if ((lease.flags & LeaseFlag::kWanted) != 0) {
        assert(wanted[lease.pool] != 0);
        --wanted[lease.pool];
    } else {
        parkable.remove(lease.pool, row);
    }
    if ((lease.flags & LeaseFlag::kParked) == 0) return;
    shm::PoolRow& pool = edit().row(state.pools[lease.pool], kPoolAccounts);
    put(pool.parked, pool.parked - 1);
}

// The next grant's fence is behind all takes of this one; until then a late release is compared
// with the last of them.
void Parking::lease_ends(uint32_t row) {
    parking_ends(row);
    const shm::LeaseRow& found = state.leases[row];
    if ((found.flags & LeaseFlag::kTakesSeen) == 0) return;
    shm::LeaseRow& lease = edit().row(found, 1 | 1U << 2U);
    shm::PoolRow& pool = edit().row(state.pools[lease.pool], kPoolHot);
    put(pool.fence_next, pool.fence_next + lease.takes);
    put(lease.fence, lease.fence + lease.takes);
    put(lease.takes, 0);
}

// Its takes go on to count: leases stand in the order of their rows' fences.
void Parking::lease_moves(uint32_t row) {
    parking_ends(row);
    shm::LeaseRow& lease = edit().row(state.leases[row], 1U << 1U);
    constexpr uint32_t kOfItsWord = LeaseFlag::kMayPark | LeaseFlag::kParked | LeaseFlag::kWanted;
    put(lease.flags, lease.flags & ~kOfItsWord);
}

// Each take is a claim, a hit and a grant, and follows a release.
void Parking::add_uses(uint32_t row, uint64_t takes) {
    const uint64_t more = takes - takes_of(state.leases[row]);
    shm::LeaseRow& lease = edit().row(state.leases[row], 1U << 1U | 1U << 2U);
    shm::PoolRow& pool = edit().row(state.pools[lease.pool], kPoolStates);
    put(lease.flags, lease.flags | LeaseFlag::kTakesSeen);
    put(lease.takes, takes);
    put(pool.accepted_total, pool.accepted_total + more);
    put(pool.granted_total, pool.granted_total + more);
    put(pool.hit_total, pool.hit_total + more);
    put(pool.released_total, pool.released_total + more);
    put(pool.last_dispatch_ns, turn().now_ns);
}

void Parking::apply(const Harvest& command) {
    const auto row = static_cast<uint32_t>(command.lease);
    if (leases().lease_refusal(command.lease, 0) != Reason::kOk) return;
    const shm::LeaseRow& found = state.leases[row];
    if ((found.flags & LeaseFlag::kMayPark) == 0) return;
    if (command.takes > takes_of(found) && command.takes <= kTakesMax) {
        add_uses(row, command.takes);
    }
    const bool was_parked = (found.flags & LeaseFlag::kParked) != 0;
    turn().touched.add(found.pool);
    if (command.recalled && command.parked) {
        recalled_ns[found.pool] = turn().now_ns;
        return leases().end_lease(row, Reason::kOk, Tell::kNobody, false, kNoRow);
    }
    if (command.parked != was_parked) {
        shm::LeaseRow& lease = edit().row(found, 1U << 1U);
        shm::PoolRow& pool = edit().row(state.pools[lease.pool], kPoolAccounts);
        put(lease.flags, lease.flags ^ LeaseFlag::kParked);
        put(pool.parked, command.parked ? pool.parked + 1 : pool.parked - 1);
    }
    if (!command.recalled || (found.flags & LeaseFlag::kWanted) != 0) return;
    shm::LeaseRow& lease = edit().row(found, 1U << 1U | 1U << 2U);
    put(lease.flags, lease.flags | LeaseFlag::kWanted);
    put(lease.wanted_ns, turn().now_ns);
    parkable.remove(lease.pool, row);
    ++wanted[lease.pool];
    recalled_ns[lease.pool] = turn().now_ns;
}

uint32_t Parking::lacking(uint32_t pool, uint32_t units) const {
    const uint32_t asked = waiting_units[pool] + turn().fresh_of_pool[pool].units + units;
    return asked - std::min(asked, state.pools[pool].idle);
}

TimeNs Parking::recall_due(uint32_t pool_row) const {
    const shm::PoolRow& pool = state.pools[pool_row];
    const uint32_t lease = parkable.head(pool_row);
    const uint32_t claim = matcher().next_claim(pool_row);
    if (lease == kNoRow || claim == kNoRow || pool.idle >= state.claims[claim].units) return kNever;
    const TimeNs quantum_ns = uint64_t{pool.quantum_us} * 1'000;
    TimeNs since = std::max(state.leases[lease].granted_ns,
                            std::min(state.claims[claim].enqueued_ns, turn().now_ns));
    // A worker that gets its slot back is not ready at once.
    const uint32_t coming =
        wanted[pool_row] + (pool.kind == shm::PoolKind::kWorker ? pool.recovering : 0);
    if (lacking(pool_row, 0) <= coming) since = std::max(since, recalled_ns[pool_row]);
    return sum_or_never(since, quantum_ns);
}

}  // namespace dibs::core
