// broker/core/rules/idle_drain.cpp -- drains a pool only if nobody has used it for a while.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::LeaseState;
namespace PoolFlag = shm::PoolFlag;

// S3.12: no claim waits, every application has ended, and each lease has been expired for so long.
// Under strict expiry its holder may live, so that none is idle.
bool Pools::idle_for(uint32_t row, TimeNs for_ns, TimeNs* left_ns) const {
    const shm::PoolRow& pool = state.pools[row];
    bool is_idle = pool.waiting + pool.confirming == 0 && gangs().pool_apps.head(row) == kNoRow;
    *left_ns = 0;
    for (uint32_t at = leases().pool_leases.head(row); at != kNoRow;
         at = leases().pool_leases.next(at)) {
        const shm::LeaseRow& lease = state.leases[at];
        // A word may still prolong what expires in this turn: over several pools the first row's.
        const shm::LeaseRow& worded = state.leases[several_pools().first_lease(at)];
        const bool by_word = (worded.flags & shm::LeaseFlag::kByWord) != 0;
        const bool may_live = lease.mode == shm::ExpiryMode::kStrict ||
                              lease.state == LeaseState::kRevoking ||
                              (lease.state == LeaseState::kLive && by_word);
        const bool is_over = turn().now_ns > lease.expires_ns;  // S3.13
        if (!is_over) {
            const TimeNs left =
                lease.expires_ns == kNever ? kNever : lease.expires_ns - turn().now_ns;
            *left_ns = std::max(*left_ns, left);
        }
        is_idle = is_idle && is_over && !may_live && turn().now_ns - lease.expires_ns >= for_ns;
    }
    return is_idle;
}

// Over as many turns as it takes: nothing revives them meanwhile, because commands wait for the
// rest of a turn that was cut.
bool Pools::end_leases_of_idle() {
    for (uint32_t row = 0; row < state.counters->pools; ++row) {
        if ((state.pools[row].flags & PoolFlag::kEndsLeases) == 0) continue;
        while (leases().pool_leases.head(row) != kNoRow) {
            if (turn().full()) return false;
            leases().end_lease(leases().pool_leases.head(row),
                               Reason::kExpiredLease,
                               Tell::kHolder,
                               false,
                               kNoRow);
        }
        shm::PoolRow& pool = edit().row(state.pools[row], 1);
        put(pool.flags, pool.flags & ~uint32_t{PoolFlag::kEndsLeases});
    }
    return true;
}

}  // namespace dibs::core
