// broker/core/ledger/reprioritisation.cpp -- moves leases between classes as their balances change.
//
// A pass checks each account with leases, class by class, and nearly always has nothing to do. So
// each such tenant is watched: no pass looks at it until its balance, at its present rate, can have
// passed a threshold. A change of that rate, of the balance or of the leases makes the tenant
// stale, and the next look computes the instant anew.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <limits>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

constexpr int64_t kOne = 1'000'000;           // a slot's price for a second
constexpr int64_t kShort = int64_t{1} << 43;  // kOne times as much is a number of 64 bits
constexpr uint64_t kForEver = ~uint64_t{0};

// From the one up to the other, or as far as a number goes.
int64_t distance(int64_t from, int64_t to) {
    int64_t far = 0;
    return __builtin_sub_overflow(to, from, &far) ? std::numeric_limits<int64_t>::max() : far;
}

// Microseconds in which what moves at no more than `speed` per million of them comes no farther
// than that, rounding included; the next one may be the first.
uint64_t while_for(int64_t far, int64_t speed) {
    if (far <= 2) return 1;
    const int64_t sure = far - 2;
    const int64_t whole =
        sure < kShort ? sure * kOne / speed : std::min(sure / speed, kShort) * kOne;
    return static_cast<uint64_t>(whole) + 1;
}

bool runs_below(const Tenant& tenant, uint32_t at_class) {
    for (uint32_t q = at_class + 1; q < kClassesAndFree; ++q) {
        if (tenant.units[q] != 0) return true;
    }
    return false;
}

}  // namespace

// How long from now no pass can move its leases; 0 = one may now.
uint64_t Ledger::quiet_us(const Tenant& tenant) const {
    const shm::AccountRow& account = state.accounts[tenant.account];
    const shm::PoolRow& pool = state.pools[tenant.pool];
    if ((account.flags & shm::AccountFlag::kConfigured) == 0) return kForEver;
    uint64_t quiet = kForEver;
    for (unsigned classes = book()->moving[tenant.account]; classes != 0; classes &= classes - 1) {
        const auto p = static_cast<uint32_t>(std::countr_zero(classes));
        const int64_t net = account.rate[p] - kOne * account.running[p];
        const int64_t cap = book()->caps[tenant.account][p];
        if (net < 0 && tenant.units[p] != 0) {
            const int64_t value = balance_at(tenant.account, p);
            if (value < pool.demote_threshold) return 0;
            // Above its cap it earns nothing.
            const int64_t falls = value <= cap ? -net : kOne * account.running[p];
            quiet = std::min(quiet, while_for(distance(pool.demote_threshold, value), falls));
        } else if (net > 0 && runs_below(tenant, p)) {
            const int64_t value = balance_at(tenant.account, p);
            if (value > pool.promote_threshold) return 0;
            if (cap <= pool.promote_threshold) continue;  // it rises no higher
            quiet = std::min(quiet, while_for(distance(value, pool.promote_threshold), net));
        }
    }
    return quiet;
}

void Ledger::begin_watch(uint32_t pool) {
    AccountBook& known = *book();
    TenantWatch& watch = known.watches[pool];
    for (const uint32_t place : watch.due)
        known.tenants[place].is_due = false;
    std::vector<uint32_t>& were_due = known.row_scratch;
    were_due = watch.due;
    watch.due.clear();
    for (const uint32_t place : were_due)
        look_at_tenant(pool, place);
    look_at_stale_tenants(pool);
    const uint64_t now_us = turn().now_ns / 1000;
    if (now_us < watch.quiet_until_us) return;
    const bool all = watch.quiet_until_us == 0;
    watch.quiet_until_us = kForEver;
    for (const uint32_t place : known.tenants_of_pool[pool]) {
        const uint64_t until_us = known.tenants[place].quiet_until_us;
        if (all || until_us <= now_us) {
            look_at_tenant(pool, place);
        } else {
            watch.quiet_until_us = std::min(watch.quiet_until_us, until_us);
        }
    }
}

void Ledger::look_at_stale_tenants(uint32_t pool) {
    TenantWatch& watch = book()->watches[pool];
    for (const uint32_t place : watch.stale) {
        book()->tenants[place].is_stale = false;
        look_at_tenant(pool, place);
    }
    watch.stale.clear();
}

void Ledger::look_at_tenant(uint32_t pool, uint32_t place) {
    Tenant& tenant = book()->tenants[place];
    if (!tenant.in_use || tenant.pool != pool || tenant.units_total == 0 || tenant.is_due) return;
    TenantWatch& watch = book()->watches[pool];
    const uint64_t now_us = turn().now_ns / 1000;
    const uint64_t quiet = quiet_us(tenant);
    tenant.is_due = quiet == 0;
    tenant.quiet_until_us = quiet < kForEver - now_us ? now_us + quiet : kForEver;
    if (tenant.is_due) return watch.due.push_back(place);
    watch.quiet_until_us = std::min(watch.quiet_until_us, tenant.quiet_until_us);
}

// Step 3, in order of accounts.
bool Ledger::reprioritise() {
    AccountPass& pass = book()->pass;
    const shm::PoolRow& pool = state.pools[pass.pool];
    assert(pass.at_class < kFreeClass);
    look_at_stale_tenants(pass.pool);
    std::vector<std::pair<uint32_t, uint32_t>>& wanted = book()->to_reprioritise;
    wanted.clear();
    for (const uint32_t place : book()->watches[pass.pool].due) {
        assert(book()->tenants[place].in_use && book()->tenants[place].pool == pass.pool);
        const uint32_t account = book()->tenants[place].account;
        if (account < pass.next_account) continue;
        const int64_t balance = balance_at(account, pass.at_class);
        if (balance > pool.promote_threshold || balance < pool.demote_threshold) {
            wanted.emplace_back(account, place);
        }
    }
    std::sort(wanted.begin(), wanted.end());
    for (const auto& [account, place] : wanted) {
        pass.next_account = account;
        if (!reprioritise_account(account, place)) return false;
    }
    return true;
}

bool Ledger::reprioritise_account(uint32_t account, uint32_t place) {
    const uint8_t p = book()->pass.at_class;
    const shm::AccountRow& row = state.accounts[account];
    if ((row.flags & shm::AccountFlag::kConfigured) == 0) return true;
    const shm::PoolRow& pool = state.pools[book()->pass.pool];
    const int64_t balance = balance_at(account, p);
    const auto net = [&] { return row.rate[p] - kOne * row.running[p]; };
    while (balance < pool.demote_threshold && net() < 0) {
        const uint32_t lease = book()->tenant_leases.first(book()->tenants[place].leases[p]);
        if (lease == kNoRow) break;
        assert(state.leases[lease].account == account && state.leases[lease].account_class == p);
        if (turn().full()) return false;
        move_class(lease, static_cast<uint8_t>(p + 1));
    }
    if (balance <= pool.promote_threshold || net() <= 0) return true;
    std::vector<uint32_t>& lower = book()->row_scratch;
    lower.clear();
    for (uint32_t q = p + 1U; q < kClassesAndFree; ++q) {
        book()->tenant_leases.each(book()->tenants[place].leases[q],
                                   [&](uint32_t lease) { lower.push_back(lease); });
    }
    std::sort(lower.begin(), lower.end(), [&](uint32_t left, uint32_t right) {
        const Cost one = cost_of(left);
        const Cost other = cost_of(right);
        if (one != other) return one > other;
        return state.slots[state.leases[left].first_slot].number <
               state.slots[state.leases[right].first_slot].number;
    });
    for (const uint32_t lease : lower) {
        if (net() <= 0) break;
        assert(state.leases[lease].account == account && state.leases[lease].account_class > p);
        if (turn().full()) return false;
        if (may_be_promoted(lease)) move_class(lease, p);
    }
    return true;
}

bool Ledger::may_be_promoted(uint32_t row) const {
    const shm::LeaseRow& lease = state.leases[row];
    const Crowd& crowd = book()->crowds[book()->crowd_of_claim[book()->claim_of_lease[row]]];
    assert(crowd.in_use && crowd.account == lease.account);
    if (lease.account_class == kFreeClass && crowds().fanout_left(crowd) < lease.units)
        return false;
    for (uint32_t slot = lease.first_slot; slot != kNoRow; slot = state.slots[slot].holder_next) {
        const uint32_t set = book()->stalls[book()->stall_of_slot[slot]].labels;
        if (!crowds().labels_allow(lease.account, lease.pool, set, true)) return false;
    }
    return true;
}

}  // namespace dibs::core
