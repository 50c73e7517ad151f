// broker/core/recovery/sound_elastic.hpp -- checks rows of elastic pools before they are trusted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/store/row_states.hpp"
#include "broker/core/store/state.hpp"

namespace dibs::core {

[[nodiscard]] bool sound_type(const State& state, const shm::TypeRow& type);
[[nodiscard]] bool sound_elastic(const State& state, const shm::ElasticRow& row);
// Of a slot that is there: its order and its type.
[[nodiscard]] bool sound_order(const State& state, const shm::SlotRow& slot);

// No claim and no lease is of such a pool.
[[nodiscard]] bool is_dispatched(const State& state, uint32_t pool);
[[nodiscard]] bool sound_entry(const State& state, const shm::EntryRow& entry);
// Of a slot that is there: what an entry runs on it, and its worker's behaviour.
[[nodiscard]] bool sound_dispatched(const State& state, const shm::SlotRow& slot);

}  // namespace dibs::core
