// broker/core/recovery/sound_elastic.cpp -- checks types, elastic pools, and orders.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/sound_elastic.hpp"

namespace dibs::core {

using shm::OrderState;

// A provisioner gives its types up as it begins to die.
bool sound_type(const State& state, const shm::TypeRow& type) {
    if (type.state == 0) return true;
    const bool is_provided =
        type.session == kNoRow || (type.session < state.sessions.size() &&
                                   state.sessions[type.session].state == shm::SessionState::kOpen);
    return type.state == 1 && type.pool < state.counters->pools &&
           state.elastics[type.pool].workers_max != 0 && is_provided && type.cost != 0 &&
           (type.session == kNoRow || type.role != 0) && type.name_size < sizeof type.name + 1 &&
           type.provider_type_size < sizeof type.provider_type + 1 &&
           type.quota_group_size < sizeof type.quota_group + 1 &&
           (type.label_set == 0 ||
            (type.label_set <= state.label_sets.size() &&
             state.label_sets[type.label_set - 1U].references != 0 &&
             state.pools[type.pool].order == shm::PoolOrder::kAccount));
}

bool sound_elastic(const State& state, const shm::ElasticRow& row) {
    const uint32_t at = state.elastics.row_of(row);
    if (at >= state.counters->pools) return true;
    if (row.workers_max == 0) return row.ordered == 0;
    const shm::PoolRow& pool = state.pools[at];
    return pool.state != shm::PoolState::kFree && pool.kind == shm::PoolKind::kWorker &&
           pool.order != shm::PoolOrder::kArrival && !has_resources(pool) && row.limit != 0;
}

bool sound_order(const State& state, const shm::SlotRow& slot) {
    const bool is_ordered = slot.state == SlotState::kOrdered;
    if (slot.type == kNoRow) {
        return slot.order == OrderState::kNone && !is_ordered && slot.stop_told == 0;
    }
    if (slot.type >= state.types.size() || slot.order > OrderState::kAnnounced) return false;
    const shm::TypeRow& type = state.types[slot.type];
    if (type.state == 0 || type.pool != slot.pool) return false;
    const bool waits = slot.order == OrderState::kAsked || slot.order == OrderState::kCreated;
    if (waits != is_ordered) return false;
    return is_ordered ? slot.session == kNoRow && slot.holder == kNoRow && slot.name_size == 0 &&
                            slot.attributes == kNoRow
                      : slot.session != kNoRow;
}

}  // namespace dibs::core
