// broker/transient_pools.cpp -- who is unused, since when, and for how much longer.
// SPDX-License-Identifier: Apache-2.0
#include "broker/transient_pools.hpp"

#include <algorithm>

namespace dibs {

bool TransientPools::is_transient(uint32_t pool) const {
    return core_.pool_lives(pool) && (core_.pool(pool).flags & shm::PoolFlag::kTransient) != 0;
}

std::string TransientPools::name_of(uint32_t pool) const {
    const shm::PoolRow& row = core_.pool(pool);
    return {row.name, row.name_size};
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
    return entry.unused_since_ns + (entry.leaves ? 0 : idle_ns_);
}

void TransientPools::find_first() {
    due_ns_ = shm::kNever;
    for (const Entry& entry : entries_)
        due_ns_ = std::min(due_ns_, due(entry));
}

bool TransientPools::keep(const std::set<std::string>& named) {
    std::erase_if(entries_, [&](const Entry& entry) {
        if (!entry.leaves || named.count(name_of(entry.pool)) == 0) return false;
        if (!entry.was_drained) core_.apply(core::Drain{.pool = entry.pool, .on = false});
        return true;
    });
    for (uint32_t pool = 0; pool < core_.pools(); ++pool) {
        const bool goes = core_.pool_lives(pool) && !is_transient(pool);
        if (goes && named.count(name_of(pool)) == 0 && !leave(pool)) return false;
    }
    find_first();
    return true;
}

// Its slots that an administrator has drained would be in use for ever.
bool TransientPools::leave(uint32_t pool) {
    const bool known = std::any_of(
        entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.pool == pool; });
    if (known) return true;
    for (uint32_t row = 0; core_.pool(pool).drained != 0 && row < core_.slots_max(); ++row) {
        const shm::SlotRow& slot = core_.slot(row);
        const bool is_one = slot.state != shm::SlotState::kFree && slot.pool == pool;
        if (!is_one || slot.behaviour != shm::Behaviour::kDrain) continue;
        if (core_.turn_full()) return false;
        core_.apply(core::Drain{.pool = pool, .on = false, .number = slot.number});
    }
    if (core_.turn_full()) return false;
    Entry entry{pool, shm::kNever};
    entry.leaves = true;
    entry.was_drained = core_.pool(pool).state == shm::PoolState::kDraining;
    core_.apply(core::Drain{.pool = pool, .on = true});
    look_at(entry);
    entries_.push_back(entry);
    return true;
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
        const bool stays = !entry.leaves && !is_transient(entry.pool);
        if (stays || !core_.pool_lives(entry.pool)) return true;  // its file has taken it over
        if (core_.now() < due(entry) || core_.turn_full()) return false;
        const bool gone = core_.delete_pool(entry.pool) == shm::Reason::kOk;
        if (!gone) entry.unused_since_ns = core_.now();
        return gone;
    });
    find_first();
    return true;
}

}  // namespace dibs
