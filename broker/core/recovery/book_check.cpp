// broker/core/recovery/book_check.cpp -- checks an account pool's slots, leases and their lists.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/book_check.hpp"

#include <algorithm>
#include <numeric>

namespace dibs::core {

using shm::LeaseState;
namespace SlotFlag = shm::SlotFlag;

namespace {

std::string name_of_stall(uint32_t row) {
    return "stall " + std::to_string(row);
}

std::string name_of_tenant(uint32_t row) {
    return "tenant " + std::to_string(row);
}

}  // namespace

// Neither ended nor taken for a better claim.
bool BookCheck::is_listed(uint32_t row) const {
    const shm::LeaseRow& lease = state_.leases[row];
    return lease.state != LeaseState::kFree && parts_.by_account(lease.pool) &&
           (lease.flags & shm::LeaseFlag::kTaken) == 0;
}

void BookCheck::count_slots() {
    of_stall_.resize(book_.stalls.size());
    assigned_.resize(state_.pools.size());
    for (uint32_t row = 0; row < state_.slots.size(); ++row) {
        const shm::SlotRow& slot = state_.slots[row];
        const bool is_there = slot.state != SlotState::kFree && parts_.by_account(slot.pool);
        const uint32_t place = book_.stall_of_slot[row];
        const auto who = [&] { return "slot row " + std::to_string(row); };
        expect(is_there == (place != kNoRow),
               [&] { return who() + " is in a stall and not there"; });
        const uint32_t claim = book_.promised_to[row];
        expect(claim == kNoRow || (is_there && claim < state_.claims.size() &&
                                   state_.claims[claim].state == shm::ClaimState::kPromised &&
                                   state_.claims[claim].first_slot == row),
               [&] { return who() + " is promised to a claim that does not wait for it"; });
        reported_worker(row, is_there);
        if (!is_there) continue;
        expect(slot.label_set == kNoRow || state_.label_sets[slot.label_set].references != 0,
               [&] { return who() + " has labels that are forgotten"; });
        OfStall& counted = of_stall_[place];
        ++counted.slots;
        counted.idle += slot.state == SlotState::kIdle ? 1 : 0;
        counted.leased += slot.state == SlotState::kLeased ? 1 : 0;
    }
}

void BookCheck::count_leases() {
    of_tenant_.resize(book_.tenants.size());
    for (uint32_t row = 0; row < state_.leases.size(); ++row) {
        if (!is_listed(row)) continue;
        const shm::LeaseRow& lease = state_.leases[row];
        const uint32_t stall =
            lease.first_slot < state_.slots.size() ? book_.stall_of_slot[lease.first_slot] : kNoRow;
        expect(stall < of_stall_.size(), [&] {
            return "lease of claim " + std::to_string(lease.arrival) + " is of no stall";
        });
        if (stall >= of_stall_.size()) continue;
        if (parts_.may_be_preempted(row)) ++of_stall_[stall].candidates[lease.account_class];
        if (lease.account == kNoRow) continue;
        const uint32_t tenant = book_.find_tenant(lease.pool, lease.account);
        expect(tenant != kNoRow, [&] {
            return "lease of claim " + std::to_string(lease.arrival) + " is no tenant's";
        });
        if (tenant == kNoRow) continue;
        of_tenant_[tenant].units[lease.account_class] += lease.units;
        ++of_tenant_[tenant].leases[lease.account_class];
    }
}

void BookCheck::stalls() {
    std::vector<uint32_t> of_pool(state_.pools.size());
    for (uint32_t row = 0; row < book_.stalls.size(); ++row) {
        const Stall& stall = book_.stalls[row];
        const auto who = [&] { return name_of_stall(row); };
        if (!stall.in_use) {
            expect(of_stall_[row].slots == 0, [&] { return who() + " is free and has slots"; });
            continue;
        }
        ++of_pool[stall.pool];
        expect(stall.slots == of_stall_[row].slots,
               [&] { return who() + " counts its slots wrong"; });
        const std::vector<uint32_t>& places = book_.stalls_of_pool[stall.pool];
        expect(stall.place < places.size() && places[stall.place] == row,
               [&] { return who() + " is at another place of its pool"; });
        const uint32_t known = book_.stall_by_key.find(
            numbers_hash(stall.pool, stall.labels), [&](uint32_t other) { return other == row; });
        expect(known == row, [&] { return who() + " is not found by its labels"; });
        stall_lists(row);
    }
    for (uint32_t pool = 0; pool < state_.pools.size(); ++pool) {
        expect(book_.stalls_of_pool[pool].size() == of_pool[pool],
               [&] { return name_of(state_.pools[pool]) + " has another number of stalls"; });
        stall_bits(pool);
    }
}

// Each list is walked as far as it has been counted, in its order, back links and all; candidates
// for preemption are the cheapest first.
void BookCheck::stall_lists(uint32_t row) {
    const Stall& stall = book_.stalls[row];
    const auto walk = [&](const Ends& ends, SlotState state, uint32_t wanted, const auto& order) {
        uint32_t found = 0;
        uint32_t previous = kNoRow;
        bool is_sound = true;
        uint32_t slot = ends.head;
        for (; slot < state_.slots.size() && found < wanted; slot = book_.slot_links[slot].next) {
            is_sound = is_sound && book_.slot_links[slot].previous == previous &&
                       book_.stall_of_slot[slot] == row && state_.slots[slot].state == state &&
                       (previous == kNoRow || order(previous, slot));
            previous = slot;
            ++found;
        }
        return is_sound && found == wanted && slot == kNoRow && ends.tail == previous;
    };
    expect(walk(stall.idle,
                SlotState::kIdle,
                of_stall_[row].idle,
                [&](uint32_t left, uint32_t right) {
                    return state_.slots[left].idle_order < state_.slots[right].idle_order;
                }),
           [&] { return name_of_stall(row) + " lists its idle slots wrong"; });
    expect(walk(stall.leased,
                SlotState::kLeased,
                of_stall_[row].leased,
                [&](uint32_t left, uint32_t right) {
                    return state_.slots[left].fence <= state_.slots[right].fence;
                }),
           [&] { return name_of_stall(row) + " lists its leased slots wrong"; });
    for (uint32_t at_class = 0; at_class < kClassesAndFree; ++at_class) {
        uint32_t found = 0;
        uint32_t previous = kNoRow;
        bool is_sound = true;
        book_.stall_leases.each(stall.leases[at_class], [&](uint32_t lease) {
            is_sound = is_sound && is_listed(lease) && parts_.may_be_preempted(lease) &&
                       state_.leases[lease].account_class == at_class &&
                       book_.stall_of_slot[state_.leases[lease].first_slot] == row &&
                       (previous == kNoRow || parts_.cheaper(previous, lease));
            previous = lease;
            ++found;
        });
        expect(is_sound && found == of_stall_[row].candidates[at_class], [&] {
            return name_of_stall(row) + " lists its candidates of class " +
                   std::to_string(at_class) + " wrong";
        });
    }
}

void BookCheck::stall_bits(uint32_t pool) {
    uint64_t idle = 0;
    const std::vector<uint32_t>& places = book_.stalls_of_pool[pool];
    for (size_t place = 0; place < places.size() && place < 64; ++place) {
        const bool has_idle = book_.stalls[places[place]].idle.head != kNoRow;
        idle |= has_idle ? uint64_t{1} << place : 0;
    }
    expect(idle == book_.stall_bits[pool].idle, [&] {
        return name_of(state_.pools[pool]) + " marks another stall as having idle slots";
    });
}

void BookCheck::tenants() {
    std::vector<uint32_t> of_pool(state_.pools.size());
    std::vector<uint32_t> of_account(state_.accounts.size());
    for (uint32_t row = 0; row < book_.tenants.size(); ++row) {
        const Tenant& tenant = book_.tenants[row];
        const auto who = [&] { return name_of_tenant(row); };
        if (!tenant.in_use) {
            expect(of_tenant_[row].units == OfTenant{}.units,
                   [&] { return who() + " is free and has leases"; });
            continue;
        }
        expect(tenant.units == of_tenant_[row].units,
               [&] { return who() + " counts its units wrong"; });
        const uint32_t total = std::accumulate(tenant.units.begin(), tenant.units.end(), 0U);
        expect(tenant.units_total == total, [&] { return who() + " sums its units up wrong"; });
        const std::vector<uint32_t>& places = book_.tenants_of_pool[tenant.pool];
        const bool stands = tenant.place < places.size() && places[tenant.place] == row;
        expect(stands == (total != 0), [&] { return who() + " is at another place of its pool"; });
        of_pool[tenant.pool] += total != 0 ? 1 : 0;
        ++of_account[tenant.account];
        const std::vector<uint32_t>& own = book_.tenants_of_account[tenant.account];
        expect(std::count(own.begin(), own.end(), row) == 1,
               [&] { return who() + " is not one of its account's"; });
        expect(book_.find_tenant(tenant.pool, tenant.account) == row,
               [&] { return who() + " is not found by its account"; });
        tenant_leases(row);
    }
    for (uint32_t pool = 0; pool < state_.pools.size(); ++pool) {
        expect(book_.tenants_of_pool[pool].size() == of_pool[pool],
               [&] { return name_of(state_.pools[pool]) + " has another number of tenants"; });
    }
    for (uint32_t row = 0; row < state_.accounts.size(); ++row) {
        expect(book_.tenants_of_account[row].size() == of_account[row], [&] {
            return "account row " + std::to_string(row) + " has another number of tenants";
        });
    }
}

void BookCheck::tenant_leases(uint32_t row) {
    const Tenant& tenant = book_.tenants[row];
    for (uint32_t at_class = 0; at_class < kClassesAndFree; ++at_class) {
        uint32_t found = 0;
        uint32_t previous = kNoRow;
        bool is_sound = true;
        book_.tenant_leases.each(tenant.leases[at_class], [&](uint32_t lease) {
            is_sound = is_sound && is_listed(lease) && state_.leases[lease].pool == tenant.pool &&
                       state_.leases[lease].account == tenant.account &&
                       state_.leases[lease].account_class == at_class &&
                       (previous == kNoRow || parts_.cheaper(previous, lease));
            previous = lease;
            ++found;
        });
        expect(is_sound && found == of_tenant_[row].leases[at_class], [&] {
            return name_of_tenant(row) + " lists its leases of class " + std::to_string(at_class) +
                   " wrong";
        });
    }
}

void BookCheck::watches() {
    std::vector<uint8_t> is_stale(book_.tenants.size());
    std::vector<uint8_t> is_due(book_.tenants.size());
    for (const TenantWatch& watch : book_.watches) {
        for (const uint32_t tenant : watch.stale)
            is_stale[tenant] = 1;
        for (const uint32_t tenant : watch.due)
            ++is_due[tenant];
    }
    for (uint32_t row = 0; row < book_.tenants.size(); ++row) {
        const Tenant& tenant = book_.tenants[row];
        if (!tenant.in_use) continue;
        const auto who = [&] { return name_of_tenant(row); };
        expect(!tenant.is_stale || is_stale[row] != 0,
               [&] { return who() + " is stale and nobody looks at it again"; });
        expect(!tenant.is_due || is_due[row] == 1,
               [&] { return who() + " is due and in no list of those"; });
        if (!tenant.is_stale && !tenant.is_due) watched(tenant, who());
    }
}

// Until the pool's tenants are looked at again, no pass could move a lease of this one.
void BookCheck::watched(const Tenant& tenant, const std::string& who) {
    const shm::AccountRow& account = state_.accounts[tenant.account];
    const shm::PoolRow& pool = state_.pools[tenant.pool];
    const bool is_asleep = parts_.now_ns / 1000 < book_.watches[tenant.pool].quiet_until_us &&
                           tenant.units_total != 0 &&
                           (account.flags & shm::AccountFlag::kConfigured) != 0;
    if (!is_asleep) return;
    uint32_t worse = tenant.units_total;
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        worse -= tenant.units[p];
        const int64_t net = account.rate[p] - int64_t{1'000'000} * account.running[p];
        const int64_t balance = parts_.balance_at(tenant.account, p);
        const bool sinks = net < 0 && tenant.units[p] != 0 && balance < pool.demote_threshold;
        const bool rises = net > 0 && worse != 0 && balance > pool.promote_threshold;
        expect(!sinks && !rises,
               [&] { return who + " is to change class " + std::to_string(p) + " and sleeps"; });
    }
}

// A worker without a session that holds nothing has a time at which it is forgotten; no other
// worker has.
void BookCheck::reported_worker(uint32_t row, bool is_there) {
    const shm::SlotRow& slot = state_.slots[row];
    const bool is_reported = is_there && slot.session == kNoRow &&
                             state_.pools[slot.pool].kind == shm::PoolKind::kWorker;
    const auto who = [&] { return "slot row " + std::to_string(row); };
    const bool has_timer = book_.forgotten.has(TimerKind::kKept, row);
    expect(is_reported || !has_timer,
           [&] { return who() + " is to be forgotten and not reported"; });
    if (!is_reported) return;
    assigned_[slot.pool] += (slot.flags & SlotFlag::kAssigned) != 0 ? 1 : 0;
    const bool is_held = slot.state == SlotState::kLeased || slot.state == SlotState::kReserved ||
                         being_killed_for(slot);
    const auto in_time = [&] {
        return book_.forgotten.due_ns(TimerKind::kKept, row) <= parts_.forgotten_at(slot);
    };
    expect(is_held || (has_timer && in_time()),
           [&] { return who() + " holds nothing and is not forgotten in time"; });
}

void BookCheck::assignments() {
    for (uint32_t pool = 0; pool < state_.counters->pools; ++pool) {
        uint32_t found = 0;
        TimeNs last_ns = 0;
        bool is_sound = true;
        for (uint32_t row = book_.assignments.head(pool); row != kNoRow && found <= assigned_[pool];
             row = book_.assignments.next(row)) {
            const shm::SlotRow& slot = state_.slots[row];
            is_sound = is_sound && slot.pool == pool && (slot.flags & SlotFlag::kAssigned) != 0 &&
                       state_.leases[slot.holder].granted_ns >= last_ns;
            if (!is_sound) break;
            last_ns = state_.leases[slot.holder].granted_ns;
            ++found;
        }
        expect(is_sound && found == assigned_[pool], [&] {
            return name_of(state_.pools[pool]) + " lists its unconfirmed assignments wrong";
        });
    }
}

}  // namespace dibs::core
