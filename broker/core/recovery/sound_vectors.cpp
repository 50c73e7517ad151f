// broker/core/recovery/sound_vectors.cpp -- bounds amounts, and looks whether parts are parts.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/sound_vectors.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace dibs::core {

namespace {

using Amounts = uint64_t[shm::kResourcesMax];

bool is_within(const Amounts& amounts, const Amounts& capacity) {
    return std::equal(
        std::begin(amounts), std::end(amounts), std::begin(capacity), std::less_equal<uint64_t>());
}

// What a worker has announced; of nothing that the pool does not name.
bool sound_capacity(const Amounts& capacity, const shm::PoolRow& pool) {
    for (uint32_t at = 0; at < shm::kResourcesMax; ++at) {
        if (capacity[at] > (at < pool.resources_count ? shm::kAmountMax : 0)) return false;
    }
    return pool.kind == shm::PoolKind::kWorker ||
           std::equal(std::begin(capacity), std::end(capacity), pool.capacity);
}

}  // namespace

bool sound_resources(const shm::PoolRow& pool, std::string_view names) {
    const bool is_collected =
        pool.kind == shm::PoolKind::kWorker && pool.mode == shm::ExpiryMode::kLazy;
    if (is_collected || pool.order == shm::PoolOrder::kAccount || pool.resources_count == 0 ||
        pool.resources_count > shm::kResourcesMax ||
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
    if (!has_resources(pool)) return true;
    const uint32_t row = state.slots.row_of(slot);
    const Amounts& capacity = state.slot_vectors[whole_of(slot, row)].capacity;
    const Amounts& amount = state.slot_vectors[row].amount;
    const bool is_sound = slot.state == SlotState::kOrdered ? sound_capacity(amount, pool)
                                                            : is_within(amount, capacity);
    return is_sound && sound_capacity(capacity, pool);
}

bool sound_part(const State& state, const shm::SlotRow& slot) {
    if (slot.state == SlotState::kFree) return true;
    if (!has_resources(state.pools[slot.pool])) {
        return slot.part_of == kNoRow && slot.parts == 0 && slot.state != SlotState::kShared;
    }
    if (slot.part_of == kNoRow) return true;
    const shm::SlotRow& whole = state.slots[slot.part_of];
    const bool is_held = slot.state == SlotState::kLeased || slot.state == SlotState::kRecovering;
    const bool is_workers = slot.session != kNoRow;
    return whole.state == SlotState::kShared && whole.pool == slot.pool &&
           whole.part_of == kNoRow && whole.number == slot.number && slot.parts == 0 &&
           slot.session == whole.session && slot.name_size == 0 && slot.attributes == kNoRow &&
           slot.attributes_size == 0 && slot.behaviour == shm::Behaviour::kRun &&
           (is_placeholder(slot) ||
            (is_workers ? is_held || is_unanswered(slot) : is_held && slot.holder != kNoRow));
}

bool sound_want(const State& state, const shm::ClaimRow& claim) {
    const shm::PoolRow& pool = state.pools[claim.pool];
    const shm::ClaimVectorRow& wanted = state.claim_vectors[state.claims.row_of(claim)];
    for (size_t at = 0; at < shm::kResourcesMax; ++at) {
        if (wanted.least[at] > wanted.most[at] || wanted.most[at] > shm::kAmountMax) return false;
    }
    const bool has_offer = wanted.offer_slot == kNoRow ||
                           (wanted.offer != 0 && wanted.offer_slot < state.slots.size());
    const bool is_ask = claim.session == kNoRow;  // for as many parts as are missing
    return has_resources(pool) && (is_ask || claim.units == 1) && has_offer &&
           (pool.kind == shm::PoolKind::kWorker || is_within(wanted.least, pool.capacity));
}

bool sound_flags(const shm::LeaseRow& lease) {
    const auto has = [&](uint32_t flags) { return (lease.flags & flags) != 0; };
    const bool parks = has(shm::LeaseFlag::kMayPark);
    if (has(shm::LeaseFlag::kByWord) && (lease.interval_ns == 0 || parks)) return false;
    return !has(shm::LeaseFlag::kMeta) ||
           (meta_of(lease).size != 0 && !parks && !has(shm::LeaseFlag::kWanted));
}

}  // namespace dibs::core
