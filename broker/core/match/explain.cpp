// broker/core/match/explain.cpp -- explains why a claim waits.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

// An obstacle that goes when other claims' slots come back.
bool is_shared(WaitReason obstacle) {
    return obstacle == WaitReason::kHeld || obstacle == WaitReason::kRecovering ||
           obstacle == WaitReason::kUnits || obstacle == WaitReason::kUnconfirmed ||
           obstacle == WaitReason::kLeases || obstacle == WaitReason::kLacks ||
           obstacle == WaitReason::kSlotRows;
}

uint64_t left_until(uint64_t then_ns, uint64_t now_ns) {
    if (then_ns == kNever) return kNever;
    return then_ns > now_ns ? then_ns - now_ns : 0;
}

}  // namespace

// What would keep it from a slot if it were the first: what it could use, then what of that is
// free.
WaitReason Explainer::obstacle_of(uint32_t row, Explanation* told) {
    const shm::ClaimRow& claim = state.claims[row];
    const shm::PoolRow& pool = state.pools[claim.pool];
    const Crowd* crowd =
        matcher().by_account(claim.pool) ? &book()->crowds[book()->crowd_of_claim[row]] : nullptr;
    if (crowd != nullptr) explain_fitting(*crowd, told);
    if (told->at_class == kNoClass) return WaitReason::kLeftOut;
    if (provisioning().is_elastic(claim.pool)) {
        const WaitReason why = obstacle_to_workers(row, crowd, told);
        if (why != WaitReason::kNone) return why;
    }
    if (pool.slots == 0) return WaitReason::kNoSlots;
    if (whole_slots(pool) == pool.drained) return WaitReason::kDrained;
    if (wants_part(claim)) return obstacle_to_part(row, told);
    bool limited = false;
    bool held = pool.leased != 0;
    uint32_t usable = pool.idle;
    if (crowd != nullptr) {
        if (told->fitting == 0) return explain_labels(*crowd, told);
        if (over_limit(*crowd, told)) return WaitReason::kOverLimit;
        usable = idle_for(*crowd, &limited, told);
        held = told->holder != kNoRow;
    }
    if (usable < claim.units) {
        if (limited) return WaitReason::kLabelLimit;
        if (usable != 0) return WaitReason::kUnits;
        return held || pool.reserved != 0 ? WaitReason::kHeld : WaitReason::kRecovering;
    }
    if (!free_rows().lease_row_left()) return WaitReason::kLeases;
    if (!matcher().servable(claim.pool, claim.units)) return WaitReason::kUnconfirmed;
    if (is_several(claim) && !several_pools().can_serve(row)) return WaitReason::kOtherPools;
    if (crowd == nullptr) return WaitReason::kNextTurn;
    crowds().choose_slots(*crowd, false);  // without what the last pass has kept for other claims
    return book()->chosen.size() < claim.units ? WaitReason::kHeldBack : WaitReason::kNextTurn;
}

// In an elastic pool: why there are too few workers for it; kNone: it is not for want of any. In
// order of account (`crowd`) those count that its labels and its account's limits let it use.
WaitReason Explainer::obstacle_to_workers(uint32_t row, const Crowd* crowd, Explanation* told) {
    const uint32_t place = state.claims[row].pool;
    const uint32_t units = state.claims[row].units;
    const uint32_t workers = whole_slots(state.pools[place]);
    const shm::ElasticRow& elastic = state.elastics[place];
    const Provisioning::Counts& now = provisioning().counts[place];
    const TimeNs now_ns = turn().now_ns;
    uint32_t idle = state.pools[place].idle;
    uint32_t unallocated = now.unallocated;
    uint32_t ordered = elastic.ordered;
    if (crowd != nullptr) {
        const Provisioning::Usable usable = provisioning().usable_by(*crowd);
        idle = usable.idle;
        unallocated = usable.idle + usable.underway;
        ordered = usable.ordered;
    }
    if (idle >= units) return WaitReason::kNone;
    told->ordered = ordered;
    if (unallocated >= units) return ordered != 0 ? WaitReason::kBeingMade : WaitReason::kNone;
    const uint32_t first = crowd != nullptr ? provisioning().first_for(*crowd) : kNoRow;
    const auto may_serve = [&](uint32_t type) {
        if (crowd == nullptr) return provisioning().may_make(type);
        return first != kNoRow && provisioning().suits(type, *crowd, first);
    };
    bool provided = false;
    TimeNs again_ns = kNever;  // some type can be had again
    for (const uint32_t type : provisioning().types_of(place)) {
        const shm::TypeRow& of = state.types[type];
        if (!may_serve(type)) continue;
        if (told->type.empty()) told->type = name_of(of);
        if (of.session == kNoRow) continue;
        const TimeNs its_ns = std::max<TimeNs>(of.failed_until_ns, of.capacity_until_ns);
        provided = true;
        if (its_ns >= again_ns) continue;
        again_ns = its_ns;
        told->type = name_of(of);
        told->pause = of.failed_until_ns > of.capacity_until_ns ? PauseReason::kFailed
                                                                : PauseReason::kCapacity;
    }
    const bool none_suits = told->type.empty() && !provisioning().types_of(place).empty();
    if (crowd != nullptr && none_suits) {
        return told->fitting == 0 ? explain_labels(*crowd, told) : WaitReason::kNone;
    }
    if (!provided) return WaitReason::kNoProvisioner;
    if (provisioning().at_quota(place)) {
        told->limit = workers >= elastic.workers_max ? elastic.workers_max : 0;
        if (told->limit == 0) told->pause_ns = left_until(elastic.quota_until_ns, now_ns);
        return WaitReason::kAtQuota;
    }
    if (now.running >= elastic.limit) {
        told->limit = elastic.limit;
        return WaitReason::kLimit;
    }
    const auto pauses = [&](TimeNs until_ns, PauseReason reason) {
        if (until_ns <= again_ns) return;
        again_ns = until_ns;
        told->pause = reason;
    };
    pauses(elastic.everything_until_ns, PauseReason::kPool);
    pauses(elastic.throttle_until_ns, PauseReason::kThrottle);
    told->pause_ns = left_until(again_ns, now_ns);
    if (told->pause_ns != 0) return WaitReason::kPausing;
    return told->ordered != 0 ? WaitReason::kBeingMade : WaitReason::kNone;
}

WaitReason Explainer::obstacle_to_part(uint32_t row, Explanation* told) {
    if (!free_rows().lease_row_left()) return WaitReason::kLeases;
    if (pools().slot_rows_left(kNoRow) == 0) return WaitReason::kSlotRows;
    const shm::PoolRow& pool = state.pools[state.claims[row].pool];
    if (pool.kind == shm::PoolKind::kWorker && !may_ask(pool, 1)) return WaitReason::kUnconfirmed;
    if (vectors().slot_for(row) != kNoRow) return WaitReason::kNextTurn;
    told->resource = vectors().scarcest(row);
    const uint32_t of = state.claims[row].pool;
    told->holder = vectors().holder_of(of, told->resource);
    if (told->resource == kNoRow) return WaitReason::kLacks;
    told->wanted = state.claim_vectors[row].least[told->resource];
    told->most_free = vectors().most_free(of, told->resource);
    return WaitReason::kLacks;
}

Explanation Explainer::explain(uint32_t named) {
    Explanation told;
    if (state.claims[named].state == shm::ClaimState::kFree) return told;
    if (state.claims[named].state == shm::ClaimState::kRunning) return told;
    const bool several = is_several(state.claims[named]);
    const uint32_t row = several ? several_pools().stopped_row(named) : named;
    const shm::ClaimRow& claim = state.claims[row];
    if (several) told.pool = claim.pool;
    if (several) told.holds_back = several_pools().held_back(row);
    const shm::PoolRow& pool = state.pools[claim.pool];
    told.waiting = pool.waiting;
    told.units = claim.units;
    told.waited_ns = turn().now_ns - std::min(turn().now_ns, claim.enqueued_ns);
    const TimeNs deadline_ns = state.claims[several_pools().first_claim(row)].deadline_ns;
    told.left_ns = left_until(deadline_ns, turn().now_ns);
    const bool listed = matcher().by_account(claim.pool);
    if (claim.state == shm::ClaimState::kPromised) {
        explain_promise(row, &told);
        return told;
    }
    if (claim.state == shm::ClaimState::kHeld) {
        explain_held(row, &told);
        return told;
    }
    if (listed) explain_class(row, &told);
    if (claim.state == shm::ClaimState::kReserved) {
        told.holder = leases().pool_leases.head(claim.pool);
        told.confirmed = claim.confirmed;
        told.left_ns = std::min(told.left_ns, left_until(claim.reserved_until_ns, turn().now_ns));
        told.reason = told.obstacle = WaitReason::kConfirming;
        return told;
    }
    if (listed) {
        explain_place(row, &told);
        told.obstacle = obstacle_of(row, &told);
        explain_preemption(row, &told);
        if (told.at_class == kNoClass) told.at_class = kFreeClass;
    } else {
        told.holder = leases().pool_leases.head(claim.pool);
        told.position = matcher().place_in_order(row);
        const uint32_t first = matcher().next_claim(claim.pool);
        if (told.position == 0) {
            told.obstacle = WaitReason::kOnHold;
        } else if (!explain_ask(row, first, &told)) {
            told.obstacle = obstacle_of(first, &told);
        }
    }
    // Behind other claims, unless its own obstacle is not what they wait for.
    const bool behind = told.position > 1 && (!listed || is_shared(told.obstacle));
    told.reason = behind ? WaitReason::kBehind : told.obstacle;
    return told;
}

}  // namespace dibs::core
