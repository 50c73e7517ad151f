// broker/core/recovery/sound_vectors.cpp -- bounds amounts, and looks whether parts are parts.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/sound_vectors.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace dibs::core {

namespace {

bool is_within(const uint64_t (&amounts)[shm::kResourcesMax], const shm::PoolRow& pool) {
    return std::equal(
        std::begin(amounts), std::end(amounts), pool.capacity, std::less_equal<uint64_t>());
}

}  // namespace

bool sound_resources(const shm::PoolRow& pool, std::string_view names) {
    if (pool.kind != shm::PoolKind::kCounted || pool.order == shm::PoolOrder::kAccount ||
        pool.resources_count == 0 || pool.resources_count > shm::kResourcesMax ||
        names.size() > shm::kResourcesMax * (shm::kResourceNameMax + 1)) {
        return false;
    }
    for (uint32_t at = 0; at < shm::kResourcesMax; ++at) {
        const bool is_one = at < pool.resources_count;
        if ((pool.capacity[at] != 0) != is_one || pool.capacity[at] > shm::kAmountMax) return false;
    }
    return !names.empty() && names.back() == '\0' &&
           std::count(names.begin(), names.end(), '\0') == pool.resources_count;
}

bool sound_amounts(const State& state, const shm::SlotRow& slot) {
    const shm::PoolRow& pool = state.pools[slot.pool];
    return !has_resources(pool) ||
           is_within(state.slot_vectors[state.slots.row_of(slot)].amount, pool);
}

bool sound_part(const State& state, const shm::SlotRow& slot) {
    if (slot.state == SlotState::kFree) return true;
    if (!has_resources(state.pools[slot.pool])) {
        return slot.part_of == kNoRow && slot.parts == 0 && slot.state != SlotState::kShared;
    }
    if (slot.part_of == kNoRow) return true;
    const shm::SlotRow& whole = state.slots[slot.part_of];
    return whole.state == SlotState::kShared && whole.pool == slot.pool &&
           whole.part_of == kNoRow && whole.number == slot.number && slot.parts == 0 &&
           slot.holder != kNoRow && slot.attributes == kNoRow && slot.attributes_size == 0 &&
           slot.behaviour == shm::Behaviour::kRun &&
           (slot.state == SlotState::kLeased || slot.state == SlotState::kRecovering);
}

bool sound_want(const State& state, const shm::ClaimRow& claim) {
    const shm::PoolRow& pool = state.pools[claim.pool];
    const shm::ClaimVectorRow& wanted = state.claim_vectors[state.claims.row_of(claim)];
    for (size_t at = 0; at < shm::kResourcesMax; ++at) {
        if (wanted.least[at] > wanted.most[at] || wanted.most[at] > shm::kAmountMax) return false;
    }
    const bool has_offer = wanted.offer_slot == kNoRow ||
                           (wanted.offer != 0 && wanted.offer_slot < state.slots.size());
    return has_resources(pool) && claim.units == 1 && is_within(wanted.least, pool) && has_offer;
}

bool sound_flags(const shm::LeaseRow& lease) {
    const auto has = [&](uint32_t flags) { return (lease.flags & flags) != 0; };
    const bool parks = has(shm::LeaseFlag::kMayPark);
    if (has(shm::LeaseFlag::kByWord) && (lease.interval_ns == 0 || parks)) return false;
    return !has(shm::LeaseFlag::kMeta) ||
           (meta_of(lease).size != 0 && !parks && !has(shm::LeaseFlag::kWanted));
}

}  // namespace dibs::core
