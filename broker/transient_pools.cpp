// broker/transient_pools.cpp -- who is unused, since when, and for how much longer.
// SPDX-License-Identifier: Apache-2.0
#include "broker/transient_pools.hpp"

#include <algorithm>

namespace dibs {

bool TransientPools::is_transient(uint32_t pool) const {
    return core_.pool_lives(pool) && (core_.pool(pool).flags & shm::PoolFlag::kTransient) != 0;
}

void TransientPools::look_at(Entry& entry) const {
    const shm::PoolRow& pool = core_.pool(entry.pool);
    const bool used = pool.waiting + pool.confirming != 0 || pool.idle != pool.slots;
    if (used) {
        entry.unused_since_ns = shm::kNever;
    } else if (entry.unused_since_ns == shm::kNever) {
        entry.unused_since_ns = core_.now();
    }
}

void TransientPools::find_first() {
    since_ns_ = shm::kNever;
    for (const Entry& entry : entries_)
        since_ns_ = std::min(since_ns_, entry.unused_since_ns);
}

void TransientPools::find() {
    for (uint32_t pool = 0; pool < core_.pools(); ++pool) {
        if (is_transient(pool)) asked_for(pool);
    }
}

void TransientPools::asked_for(uint32_t pool) {
    if (!is_transient(pool)) return;
    auto entry = std::find_if(
        entries_.begin(), entries_.end(), [&](const Entry& one) { return one.pool == pool; });
    if (entry == entries_.end()) entry = entries_.insert(entry, {pool, shm::kNever});
    entry->unused_since_ns = shm::kNever;
    look_at(*entry);
    find_first();
}

void TransientPools::note() {
    if (entries_.empty()) return;
    for (Entry& entry : entries_)
        look_at(entry);
    find_first();
}

bool TransientPools::end_unused() {
    if (core_.now() < next_due()) return false;
    std::erase_if(entries_, [&](Entry& entry) {
        if (!is_transient(entry.pool)) return true;  // its file has taken it over
        const bool due =
            entry.unused_since_ns != shm::kNever && core_.now() >= entry.unused_since_ns + idle_ns_;
        if (!due || core_.turn_full()) return false;
        const bool gone = core_.delete_pool(entry.pool) == shm::Reason::kOk;
        if (!gone) entry.unused_since_ns = core_.now();
        return gone;
    });
    find_first();
    return true;
}

}  // namespace dibs
