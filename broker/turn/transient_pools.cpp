// broker/turn/transient_pools.cpp -- tracks how long transient pools have been unused.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/transient_pools.hpp"

#include <algorithm>
#include <string>

#include "broker/text/log.hpp"

namespace dibs {

bool TransientPools::leaves(uint32_t pool) const {
    return core_.pool_lives(pool) && (core_.pool(pool).flags & shm::PoolFlag::kLeaving) != 0;
}

bool TransientPools::is_transient(uint32_t pool) const {
    constexpr auto kGoes = shm::PoolFlag::kTransient | shm::PoolFlag::kLeaving;
    return core_.pool_lives(pool) && (core_.pool(pool).flags & kGoes) != 0;
}

void TransientPools::look_at(Entry& entry) const {
    const shm::PoolRow& pool = core_.pool(entry.pool);
    const bool has_workers = pool.kind == shm::PoolKind::kWorker && pool.slots != 0;
    const bool used = pool.waiting + pool.confirming != 0 || pool.idle != pool.slots || has_workers;
    if (used) {
        entry.unused_since_ns = shm::kNever;
    } else if (entry.unused_since_ns == shm::kNever) {
        entry.unused_since_ns = core_.now();
    }
}

core::TimeNs TransientPools::due(const Entry& entry) const {
    if (entry.unused_since_ns == shm::kNever) return shm::kNever;
    return entry.unused_since_ns + (leaves(entry.pool) ? 0 : idle_ns_);
}

void TransientPools::find_first() {
    due_ns_ = shm::kNever;
    for (const Entry& entry : entries_)
        due_ns_ = std::min(due_ns_, due(entry));
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
        if (core_.now() < due(entry) || core_.turn_full()) return false;
        const bool left = leaves(entry.pool);
        const std::string name{core_.pool(entry.pool).name, core_.pool(entry.pool).name_size};
        const bool gone = core_.delete_pool(entry.pool) == shm::Reason::kOk;
        if (gone && left) log::info("pool \"" + name + "\", which the file names no more, is gone");
        if (!gone) entry.unused_since_ns = core_.now();
        return gone;
    });
    find_first();
    return true;
}

}  // namespace dibs
