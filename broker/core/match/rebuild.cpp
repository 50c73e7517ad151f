// broker/core/match/rebuild.cpp -- rebuilds the account book from the rows.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::ClaimState;

// Slots, claims and leases are there, and their chains; `claims` are those in use, by number.
void Matcher::rebuild_accounts(const std::vector<uint32_t>& claims) {
    bool wanted = false;
    for (uint32_t row = 0; row < state.accounts.size(); ++row)
        wanted = wanted || state.accounts[row].state != 0;
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool)
        wanted = wanted || by_account(pool);
    if (!wanted) return;
    ledger().open_book();
    book()->sweep_at =
        AccountBook::kNoSweep;  // label sets of rows that are still to come look unused
    for (const uint32_t type : provisioning().by_cost)
        book()->labels.hold(provisioning().labels_of(type));
    for (uint32_t row = 0; row < state.accounts.size(); ++row) {
        const shm::AccountRow& account = state.accounts[row];
        if (account.state == 0) continue;
        ledger().index_account(row);
        ledger().learn_account(row);
    }
    for (uint32_t row = 0; row < state.sessions.size(); ++row) {
        const shm::SessionRow& session = state.sessions[row];
        if (session.state == shm::SessionState::kFree || session.account == kNoRow) continue;
        assert(state.accounts[session.account].state != 0);
        ++book()->account_uses[session.account];
    }
    rebuild_stalls();
    for (const uint32_t row : claims) {
        const shm::ClaimRow& claim = state.claims[row];
        if (!by_account(claim.pool)) continue;
        book()->claim_by_number.insert(number_hash(claim.arrival), row);
        if (claim.account != kNoRow) ++book()->account_uses[claim.account];
        crowds().join_crowd(row);
        rebuild_standing(row);
    }
    book()->sweep_at = AccountBook::kSweepAt;
    book()->stepped_us = turn().now_ns / 1000;
    // Whether the last turn has kept a claim from what it granted is not known any more.
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool) {
        const shm::PoolRow& row = state.pools[pool];
        const bool granted = row.granted_total != 0 && row.last_dispatch_ns == turn().now_ns;
        if (by_account(pool) && row.waiting != 0 && granted) book()->is_deferred = true;
    }
}

void Matcher::rebuild_stalls() {
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool) {
        if (!by_account(pool)) continue;
        for (uint32_t slot = state.pools[pool].ready_head; slot != kNoRow;
             slot = state.slots[slot].ready_next) {
            crowds().join_stall(slot);
            crowds().stand_idle(slot);
        }
    }
    std::vector<uint32_t> leased;
    std::vector<std::pair<uint64_t, uint32_t>> assigned;  // when granted, slot
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const shm::SlotRow& slot = state.slots[row];
        if (slot.state == SlotState::kFree || !by_account(slot.pool)) continue;
        if (slot.state != SlotState::kIdle) crowds().join_stall(row);
        if (slot.state == SlotState::kLeased) leased.push_back(row);
        const bool counted = state.pools[slot.pool].kind == shm::PoolKind::kCounted;
        if (slot.session == kNoRow && !counted) reports().watch_reported(row);
        if ((slot.flags & shm::SlotFlag::kAssigned) != 0) {
            assigned.emplace_back(state.leases[slot.holder].granted_ns, row);
        }
    }
    std::sort(assigned.begin(), assigned.end());
    for (const auto& [granted_ns, row] : assigned)
        book()->assignments.push_back(state.slots[row].pool, row);
    std::sort(leased.begin(), leased.end(), [&](uint32_t left, uint32_t right) {
        return state.slots[left].fence < state.slots[right].fence;
    });
    for (const uint32_t row : leased)
        crowds().stand_leased(row);
}

void Matcher::rebuild_standing(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    assert(by_account(claim.pool) && claim.units != 0);
    switch (claim.state) {
        case ClaimState::kWaiting:
            return crowds().wait_in_crowd(row);
        case ClaimState::kReserved:
            return crowds().occupy(row, claim.first_slot, 1);
        case ClaimState::kPromised:
            book()->promised_to[claim.first_slot] = row;
            if (preemption().is_held_over(claim.first_slot)) {
                book()->held_over[claim.pool].push_back(claim.first_slot);
            }
            ++free_rows().confirming_total;
            crowds().count_fanout(row, claim.account_class, 1);
            return crowds().count_labels(claim.account, claim.first_slot, 1);
        case ClaimState::kRunning:
            book()->claim_of_lease[claim.lease] = row;
            if ((state.leases[claim.lease].flags & shm::LeaseFlag::kTaken) != 0) return;
            crowds().occupy(row, state.leases[claim.lease].first_slot, 1);
            return ledger().list_lease(claim.lease, true);
        default:
            return;
    }
}

}  // namespace dibs::core
