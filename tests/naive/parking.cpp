// tests/naive/parking.cpp -- leases that their holders put aside and take again.
//
// Written from "Parked leases" in docs/scheduling.md, which is quoted. Who is to be recalled when
// is not for this core: whoever sends the command has done it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

// "A pool parks if its quantum is above 0, it is counted (or its workers' pool says park), its
// expiry is not strict and accounts do not order it." A quantum counts in microseconds.
bool NaiveCore::parks(uint32_t pool) const {
    const core::PoolConfig& config = m_.pools.at(pool).config;
    return config.quantum_ns / 1000 != 0 &&
           (config.kind == shm::PoolKind::kCounted || config.park) &&
           config.expiry != shm::ExpiryMode::kStrict && !by_account(pool) &&
           m_.pools.at(pool).vector.empty();
}

// "Takes count as claims that were accepted, granted at once, and followed a release; they set the
// pool's last grant." "Recalled and parked: the lease ends, as by its holder's release. Recalled
// and taken: it is wanted; nothing else changes."
void NaiveCore::apply(const core::Harvest& harvest) {
    const auto found = m_.leases.find(harvest.lease);
    if (found == m_.leases.end() || !found->second.may_park) return;
    Lease& lease = found->second;
    Pool& pool = m_.pools.at(lease.pool);
    if (harvest.takes > lease.takes && harvest.takes <= kTakesMax) {
        const uint64_t more = harvest.takes - lease.takes;
        lease.takes = harvest.takes;
        for (uint64_t Totals::*total :
             {&Totals::accepted, &Totals::granted, &Totals::hits, &Totals::released})
            pool.totals.*total += more;
        pool.last_dispatch_ns = m_.now;
    }
    lease.is_parked = harvest.parked;
    if (!harvest.recalled) return;
    if (harvest.parked) {
        pool.totals.released += 1;
        end_lease_and_free(harvest.lease, false);
    } else {
        lease.is_wanted = true;
    }
}

// The lower the fence of its grant, the older it is.
std::vector<uint64_t> NaiveCore::parkable_of(uint32_t pool) const {
    std::vector<uint64_t> numbers;
    for (const auto& [number, lease] : m_.leases) {
        if (lease.pool == pool && lease.may_park && !lease.is_wanted) numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end(), [&](uint64_t left, uint64_t right) {
        return m_.leases.at(left).fence < m_.leases.at(right).fence;
    });
    return numbers;
}

}  // namespace dibs::naive
