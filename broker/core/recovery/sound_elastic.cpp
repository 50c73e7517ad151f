// broker/core/recovery/sound_elastic.cpp -- checks types, elastic pools, and orders.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/sound_elastic.hpp"

#include <algorithm>
#include <iterator>

namespace dibs::core {

using shm::OrderState;

bool is_dispatched(const State& state, uint32_t pool) {
    return pool < state.counters->pools && state.elastics[pool].workers_max != 0 &&
           state.elastics[pool].dispatch != 0;
}

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
           (type.label_set == 0 || (type.label_set <= state.label_sets.size() &&
                                    state.label_sets[type.label_set - 1U].references != 0 &&
                                    state.pools[type.pool].order == shm::PoolOrder::kAccount));
}

bool sound_elastic(const State& state, const shm::ElasticRow& row) {
    const uint32_t at = state.elastics.row_of(row);
    if (at >= state.counters->pools) return true;
    if (row.workers_max == 0) return row.ordered == 0 && row.dispatch == 0;
    const shm::PoolRow& pool = state.pools[at];
    const bool has_sizes = std::all_of(std::begin(row.create_min),
                                       std::end(row.create_min),
                                       [](uint64_t amount) { return amount <= shm::kAmountMax; });
    return pool.state != shm::PoolState::kFree && pool.kind == shm::PoolKind::kWorker &&
           pool.order != shm::PoolOrder::kArrival && has_sizes && row.limit != 0 &&
           row.within_quota <= state.slots.size() &&
           (!has_resources(pool) ||
            (row.dispatch == 0 && pool.order == shm::PoolOrder::kPriority)) &&
           (row.dispatch == 0 || pool.order == shm::PoolOrder::kPriority) && row.dispatch <= 1 &&
           row.phase <= shm::DispatchPhase::kServing && row.supervisor_permille <= 1000 &&
           row.entry_next >> 62U == 0;
}

// An entry and the slot of its live process name each other.
bool sound_entry(const State& state, const shm::EntryRow& entry) {
    using shm::EntryState;
    if (entry.state == EntryState::kFree) return true;
    const bool has_process = (entry.flags & shm::EntryFlag::kProcess) != 0;
    const bool is_alive = has_process && entry.exited_ns == kNever;
    const bool is_placed = is_alive
                               ? entry.worker < state.slots.size() &&
                                     state.slots[entry.worker].state != SlotState::kFree &&
                                     state.slots[entry.worker].pool == entry.pool &&
                                     state.slots[entry.worker].entry == state.entries.row_of(entry)
                               : entry.worker == kNoRow;
    return entry.state <= EntryState::kCancelled && entry.op <= shm::EntryOp::kKill &&
           entry.flags < 16 && is_dispatched(state, entry.pool) && is_placed &&
           entry.name_size != 0 && entry.name_size < sizeof entry.name + 1 && entry.types != 0 &&
           entry.number < state.elastics[entry.pool].entry_next &&
           (entry.state != EntryState::kAbsent || has_process);
}

bool sound_dispatched(const State& state, const shm::SlotRow& slot) {
    const bool is_ordered = slot.state == SlotState::kOrdered;
    if (slot.behaviour > shm::Behaviour::kDrain || slot.broken > 1) return false;
    if (!is_dispatched(state, slot.pool)) return slot.broken == 0;
    const bool is_known =
        is_ordered || (slot.order == OrderState::kAnnounced &&
                       (slot.state == SlotState::kIdle || slot.state == SlotState::kRecovering ||
                        slot.state == SlotState::kUnknown));
    if (!is_known || slot.type == kNoRow || slot.session != kNoRow || slot.holder != kNoRow ||
        slot.part_of != kNoRow) {
        return false;
    }
    if (slot.entry == kNoRow) return true;
    const bool may_run = slot.state == SlotState::kRecovering || slot.state == SlotState::kUnknown;
    return may_run && (slot.flags & shm::SlotFlag::kSaidReady) == 0 &&
           slot.entry < state.entries.size() &&
           state.entries[slot.entry].state != shm::EntryState::kFree &&
           state.entries[slot.entry].worker == state.slots.row_of(slot) &&
           state.entries[slot.entry].pool == slot.pool;
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
                      : (slot.session != kNoRow) != is_dispatched(state, slot.pool);
}

}  // namespace dibs::core
