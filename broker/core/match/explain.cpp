// broker/core/match/explain.cpp -- explains why a claim waits.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

uint64_t left_until(uint64_t then_ns, uint64_t now_ns) {
    if (then_ns == kNever) return kNever;
    return then_ns > now_ns ? then_ns - now_ns : 0;
}

}  // namespace

// What keeps a claim at the head of its backlog from being served: servable(), case by case.
WaitReason Core::Parts::obstacle_of(uint32_t row) const {
    const shm::ClaimRow& claim = state.claims[row];
    const shm::PoolRow& pool = state.pools[claim.pool];
    if (servable(claim.pool, claim.units)) return WaitReason::kNextTurn;
    if (pool.slots == 0) return WaitReason::kNoSlots;
    if (pool.slots == pool.drained) return WaitReason::kDrained;
    if (pool.idle >= claim.units) {
        return lease_row_left() ? WaitReason::kUnconfirmed : WaitReason::kLeases;
    }
    if (pool.idle != 0) return WaitReason::kUnits;
    const bool held = pool.leased != 0 || pool.reserved != 0;
    return held ? WaitReason::kHeld : WaitReason::kRecovering;
}

Explanation Core::Parts::explain(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    Explanation told;
    if (claim.state == shm::ClaimState::kFree) return told;
    if (claim.state == shm::ClaimState::kRunning) return told;
    const shm::PoolRow& pool = state.pools[claim.pool];
    told.waiting = pool.waiting;
    told.units = claim.units;
    told.waited_ns = now_ns - std::min(now_ns, claim.enqueued_ns);
    told.left_ns = left_until(claim.deadline_ns, now_ns);
    if (by_account(claim.pool)) {
        explain_account(row, &told);
        if (claim.state != shm::ClaimState::kReserved) return told;
    }
    if (told.holder == kNoRow) told.holder = pool_leases.head(claim.pool);
    if (claim.state == shm::ClaimState::kReserved) {
        told.confirmed = claim.confirmed;
        told.left_ns = std::min(told.left_ns, left_until(claim.reserved_until_ns, now_ns));
        told.reason = told.obstacle = WaitReason::kConfirming;
        return told;
    }
    told.position = backlog.ahead(claim.pool, row) + 1;
    told.obstacle = obstacle_of(backlog.head(claim.pool));
    told.reason = told.position == 1 ? told.obstacle : WaitReason::kBehind;
    return told;
}

}  // namespace dibs::core
