// broker/core/account_book.cpp -- finding and making crowds, stalls, tenants; sweeping them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/account_book.hpp"

#include <cstring>

#include "broker/core/index.hpp"

namespace dibs::core {

using shm::kNoRow;

namespace {

constexpr size_t kSweepAt = 4096;  // crowds, before the empty ones are looked for

uint64_t pair_key(uint32_t one, uint32_t other) {
    return (uint64_t{one} << 32U) | other;
}

template <class Row>
uint32_t take(std::vector<Row>& rows, std::vector<uint32_t>& free) {
    if (!free.empty()) {
        const uint32_t row = free.back();
        free.pop_back();
        rows[row] = Row{};
        rows[row].in_use = true;
        return row;
    }
    rows.emplace_back().in_use = true;
    return static_cast<uint32_t>(rows.size() - 1);
}

}  // namespace

AccountBook::AccountBook(State& state, Edit& edit, Arena& arena)
    : labels(state, edit, arena),
      crowds_of_pool(state.pools.size()),
      stalls_of_pool(state.pools.size()),
      tenants_of_pool(state.pools.size()),
      slot_links(state.slots.size()),
      crowd_of_claim(state.claims.size(), kNoRow),
      stall_of_slot(state.slots.size(), kNoRow),
      claim_of_lease(state.leases.size(), kNoRow),
      promised_to(state.slots.size(), kNoRow),
      tenant_leases(state.leases.size()),
      stall_leases(state.leases.size()),
      account_uses(state.accounts.size()),
      account_waits(state.accounts.size()),
      is_changed(state.accounts.size()),
      caps(state.accounts.size()),
      limits(state.accounts.size()),
      label_units(state.accounts.size()),
      above_cap(state.accounts.size()),
      forgotten(0, state.slots.size(), 0),
      assignments(state.pools.size()),
      banned_in(state.accounts.size()),
      seen_in(state.accounts.size()),
      best_of(state.accounts.size()),
      claim_by_number(state.claims.size()) {}

uint32_t AccountBook::crowd_for(uint32_t pool,
                                uint32_t account,
                                uint32_t base,
                                uint32_t preferred,
                                uint16_t units,
                                uint64_t seed) {
    const std::array<uint32_t, 5> parts = {pool, account, base, preferred, units};
    std::string key(sizeof(parts), '\0');
    std::memcpy(key.data(), parts.data(), sizeof(parts));
    if (const auto known = crowd_by_key.find(key); known != crowd_by_key.end()) {
        return known->second;
    }
    if (free_crowds.empty() && crowds.size() >= kSweepAt) sweep();
    const uint32_t row = take(crowds, free_crowds);
    Crowd& crowd = crowds[row];
    crowd.pool = pool;
    crowd.account = account;
    crowd.base = base;
    crowd.preferred = preferred;
    crowd.units = units;
    crowd.quality = labels.count(base);
    const uint64_t union_hash = labels.hash_of_union(base, preferred, seed);
    const std::array<uint64_t, 2> fan = {pair_key(pool, account), union_hash};
    crowd.fanout = fanout_for(hash_bytes(fan.data(), sizeof(fan), seed));
    labels.hold(base);
    labels.hold(preferred);
    crowd_by_key.emplace(std::move(key), row);
    return row;
}

uint32_t AccountBook::fanout_for(uint64_t key) {
    const auto [known, is_new] = fanout_by_key.try_emplace(key, 0);
    if (is_new) {
        known->second = take(fanouts, free_fanouts);
        fanouts[known->second].key = key;
    }
    ++fanouts[known->second].crowds;
    return known->second;
}

uint32_t AccountBook::stall_for(uint32_t pool, uint32_t set) {
    const auto [known, is_new] = stall_by_key.try_emplace(pair_key(pool, set), 0);
    if (is_new) {
        known->second = take(stalls, free_stalls);
        Stall& stall = stalls[known->second];
        stall.pool = pool;
        stall.labels = set;
        stall.leases.fill(kNoRow);
        labels.hold(set);
        stalls_of_pool[pool].push_back(known->second);
    }
    return known->second;
}

uint32_t AccountBook::tenant_for(uint32_t pool, uint32_t account) {
    const auto [known, is_new] = tenant_by_key.try_emplace(pair_key(pool, account), 0);
    if (is_new) {
        known->second = take(tenants, free_tenants);
        Tenant& tenant = tenants[known->second];
        tenant.pool = pool;
        tenant.account = account;
        tenant.leases.fill(kNoRow);
    }
    return known->second;
}

uint32_t AccountBook::find_tenant(uint32_t pool, uint32_t account) const {
    const auto known = tenant_by_key.find(pair_key(pool, account));
    return known == tenant_by_key.end() ? kNoRow : known->second;
}

void AccountBook::come_to_class(uint32_t crowd, uint8_t at_class) {
    crowds[crowd].waits_at = at_class;
    if (at_class == kNoClass) return;
    pass.classes |= 1U << at_class;
    crowds_at[at_class].push_back(crowd);
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

void AccountBook::drop_crowd(uint32_t row) {
    const Crowd& crowd = crowds[row];
    const std::array<uint32_t, 5> parts = {
        crowd.pool, crowd.account, crowd.base, crowd.preferred, crowd.units};
    std::string key(sizeof(parts), '\0');
    std::memcpy(key.data(), parts.data(), sizeof(parts));
    crowd_by_key.erase(key);
    labels.drop(crowd.base);
    labels.drop(crowd.preferred);
    Fanout& fanout = fanouts[crowd.fanout];
    if (--fanout.crowds == 0) {
        fanout_by_key.erase(fanout.key);
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
        stall_by_key.erase(pair_key(stall.pool, stall.labels));
        labels.drop(stall.labels);
        std::erase(stalls_of_pool[stall.pool], row);
        stall.in_use = false;
        free_stalls.push_back(row);
    }
    labels.sweep();
}

// The account's row will be another's.
void AccountBook::forget_account(uint32_t account) {
    for (uint32_t row = 0; row < crowds.size(); ++row) {
        if (crowds[row].in_use && crowds[row].account == account) drop_crowd(row);
    }
    for (uint32_t row = 0; row < tenants.size(); ++row) {
        if (!tenants[row].in_use || tenants[row].account != account) continue;
        tenant_by_key.erase(pair_key(tenants[row].pool, account));
        tenants[row].in_use = false;
        free_tenants.push_back(row);
    }
}

}  // namespace dibs::core
