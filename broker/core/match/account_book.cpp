// broker/core/match/account_book.cpp -- finds, makes and sweeps crowds, stalls and tenants.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/account_book.hpp"

#include <algorithm>
#include <cassert>

namespace dibs::core {

using shm::kNoRow;

namespace {

uint64_t crowd_hash(const Crowd& crowd) {
    return numbers_hash(crowd.pool, crowd.account, crowd.base, crowd.preferred, crowd.units);
}

template <class Row>
uint32_t take(std::vector<Row>& rows, std::vector<uint32_t>& free) {
    if (!free.empty()) {
        const uint32_t row = free.back();
        free.pop_back();
        assert(!rows[row].in_use);
        rows[row] = Row{};
        rows[row].in_use = true;
        return row;
    }
    rows.emplace_back().in_use = true;
    return static_cast<uint32_t>(rows.size() - 1);
}

}  // namespace

AccountBook::AccountBook(State& state, Edit& edit, Arena& arena, uint64_t seed)
    : AccountRows(state),
      ReportedWorkers(state),
      labels(state, edit, arena, seed),
      crowds_of_pool(state.pools.size()),
      stalls_of_pool(state.pools.size()),
      stall_bits(state.pools.size()),
      tenants_of_pool(state.pools.size()),
      tenants_of_account(state.accounts.size()),
      watches(state.pools.size()),
      slot_links(state.slots.size()),
      crowd_of_claim(state.claims.size(), kNoRow),
      stall_of_slot(state.slots.size(), kNoRow),
      claim_of_lease(state.leases.size(), kNoRow),
      promised_to(state.slots.size(), kNoRow),
      held_over(state.pools.size()),
      tenant_leases(state.leases.size()),
      stall_leases(state.leases.size()),
      banned_in(state.accounts.size()),
      granted_in(state.leases.size()),
      seen_in(state.accounts.size()),
      best_of(state.accounts.size()),
      claim_by_number(state.claims.size()) {}

uint32_t AccountBook::crowd_for(uint32_t pool,
                                uint32_t account,
                                uint32_t base,
                                uint32_t preferred,
                                uint16_t units,
                                uint64_t seed) {
    const uint64_t hash = numbers_hash(pool, account, base, preferred, units);
    const uint32_t known = crowd_by_key.find(hash, [&](uint32_t row) {
        const Crowd& crowd = crowds[row];
        return crowd.account == account && crowd.base == base && crowd.preferred == preferred &&
               crowd.units == units && crowd.pool == pool;
    });
    if (known != kNoRow) return known;
    labels.hold(base);  // by the crowd, which a sweep for it must leave them to
    labels.hold(preferred);
    if (free_crowds.empty() && crowds.size() >= sweep_at) {
        sweep();
        sweep_at = std::max(kSweepAt, 2 * (crowds.size() - free_crowds.size()));
    }
    const uint32_t row = take(crowds, free_crowds);
    Crowd& crowd = crowds[row];
    crowd.pool = pool;
    crowd.account = account;
    crowd.base = base;
    crowd.preferred = preferred;
    crowd.units = units;
    crowd.quality = labels.count(base);
    const uint64_t union_hash = labels.hash_of_union(base, preferred, seed);
    crowd.fanout = fanout_for(pool, account, union_hash);
    crowd_by_key.grow();
    crowd_by_key.insert(hash, row);
    return row;
}

uint32_t AccountBook::fanout_for(uint32_t pool, uint32_t account, uint64_t union_hash) {
    const uint64_t hash = numbers_hash(pool, account, union_hash);
    uint32_t row = fanout_by_key.find(hash, [&](uint32_t known) {
        const Fanout& fanout = fanouts[known];
        return fanout.pool == pool && fanout.account == account && fanout.labels == union_hash;
    });
    if (row == kNoRow) {
        row = take(fanouts, free_fanouts);
        fanouts[row].pool = pool;
        fanouts[row].account = account;
        fanouts[row].labels = union_hash;
        fanout_by_key.grow();
        fanout_by_key.insert(hash, row);
    }
    ++fanouts[row].crowds;
    return row;
}

uint32_t AccountBook::stall_for(uint32_t pool, uint32_t set) {
    const uint64_t hash = numbers_hash(pool, set);
    const uint32_t known = stall_by_key.find(
        hash, [&](uint32_t row) { return stalls[row].pool == pool && stalls[row].labels == set; });
    if (known != kNoRow) return known;
    const uint32_t row = take(stalls, free_stalls);
    Stall& stall = stalls[row];
    stall.pool = pool;
    stall.labels = set;
    stall.leases.fill(kNoRow);
    labels.hold(set);
    stall.place = static_cast<uint32_t>(stalls_of_pool[pool].size());
    stalls_of_pool[pool].push_back(row);
    ++stall_bits[pool].version;
    stall_by_key.grow();
    stall_by_key.insert(hash, row);
    return row;
}

uint32_t AccountBook::tenant_for(uint32_t pool, uint32_t account) {
    const uint32_t known = find_tenant(pool, account);
    if (known != kNoRow) return known;
    const uint32_t row = take(tenants, free_tenants);
    Tenant& tenant = tenants[row];
    tenant.pool = pool;
    tenant.account = account;
    tenant.leases.fill(kNoRow);
    tenant_by_key.grow();
    tenant_by_key.insert(numbers_hash(pool, account), row);
    tenants_of_account[account].push_back(row);
    return row;
}

uint32_t AccountBook::find_tenant(uint32_t pool, uint32_t account) const {
    return tenant_by_key.find(numbers_hash(pool, account), [&](uint32_t row) {
        return tenants[row].account == account && tenants[row].pool == pool;
    });
}

// Accounts that run something worse themselves do not preempt, as of the start of the step.
void AccountBook::ban_accounts() {
    ++bans;
    for (const uint32_t place : tenants_of_pool[pass.pool]) {
        const Tenant& tenant = tenants[place];
        uint32_t worse = 0;
        for (uint32_t q = pass.at_class + 1U; q < kClassesAndFree; ++q)
            worse += tenant.units[q];
        if (worse != 0 && tenant.account != kNoRow) banned_in[tenant.account] = bans;
    }
}

bool AccountBook::lacks_preferred(std::span<const std::string> held, uint32_t preferred) const {
    if (preferred == kNoRow) return false;
    bool lacks = false;
    each_label(labels.text(preferred), [&](std::string_view label) {
        lacks = lacks || std::find(held.begin(), held.end(), label) == held.end();
    });
    return lacks;
}

void AccountBook::drop_crowd(uint32_t row) {
    const Crowd& crowd = crowds[row];
    assert(crowd.members == 0 && crowd.waiting == 0);
    crowd_by_key.remove(crowd_hash(crowd), row);
    labels.drop(crowd.base);
    labels.drop(crowd.preferred);
    Fanout& fanout = fanouts[crowd.fanout];
    assert(fanout.in_use && fanout.crowds != 0);
    if (--fanout.crowds == 0) {
        assert(fanout.units == 0);
        fanout_by_key.remove(numbers_hash(fanout.pool, fanout.account, fanout.labels),
                             crowd.fanout);
        fanout.in_use = false;
        free_fanouts.push_back(crowd.fanout);
    }
    crowds[row].in_use = false;
    free_crowds.push_back(row);
}

void AccountBook::sweep() {
    for (uint32_t row = 0; row < crowds.size(); ++row) {
        if (crowds[row].in_use && crowds[row].members == 0) drop_crowd(row);
    }
    for (uint32_t row = 0; row < stalls.size(); ++row) {
        Stall& stall = stalls[row];
        if (!stall.in_use || stall.slots != 0) continue;
        assert(stall.idle.head == kNoRow && stall.leased.head == kNoRow);
        stall_by_key.remove(numbers_hash(stall.pool, stall.labels), row);
        labels.drop(stall.labels);
        leave_stalls(row);
        stall.in_use = false;
        free_stalls.push_back(row);
    }
    labels.sweep();
}

// Those behind it move up.
void AccountBook::leave_stalls(uint32_t row) {
    const uint32_t pool = stalls[row].pool;
    std::erase(stalls_of_pool[pool], row);
    stall_bits[pool] = {.version = stall_bits[pool].version + 1};
    for (uint32_t place = 0; place < stalls_of_pool[pool].size(); ++place) {
        Stall& stall = stalls[stalls_of_pool[pool][place]];
        stall.place = place;
        mark_idle(stall);
    }
}

void AccountBook::look_at_stalls(const Crowd& crowd) {
    const uint32_t version = stall_bits[crowd.pool].version;
    if (crowd.stalls_version == version) return;
    crowd.stalls_version = version;
    crowd.served_by = crowd.provisioned_by = 0;
    for (uint32_t place = 0; place < stalls_of_pool[crowd.pool].size() && place < 64; ++place) {
        const uint32_t set = stalls[stalls_of_pool[crowd.pool][place]].labels;
        const uint64_t bit = uint64_t{1} << place;
        if (!labels.covers(set, crowd.base)) continue;
        crowd.served_by |= bit;
        if (labels.covers(set, crowd.preferred)) crowd.provisioned_by |= bit;
    }
}

// The account's row will be another's.
void AccountBook::forget_account(uint32_t account) {
    for (uint32_t row = 0; row < crowds.size(); ++row) {
        if (crowds[row].in_use && crowds[row].account == account) drop_crowd(row);
    }
    for (uint32_t row = 0; row < tenants.size(); ++row) {
        if (!tenants[row].in_use || tenants[row].account != account) continue;
        assert(tenants[row].units_total == 0);
        tenant_by_key.remove(numbers_hash(tenants[row].pool, account), row);
        TenantWatch& watch = watches[tenants[row].pool];
        std::erase(watch.stale, row);
        std::erase(watch.due, row);
        tenants[row].in_use = false;
        free_tenants.push_back(row);
    }
    tenants_of_account[account].clear();
}

}  // namespace dibs::core
