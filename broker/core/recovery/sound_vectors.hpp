// broker/core/recovery/sound_vectors.hpp -- validates the words of slots and claims of resources.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "broker/core/store/row_states.hpp"
#include "broker/core/store/state.hpp"

namespace dibs::core {

// Of a pool that says that its slots have some; `names` are those that it keeps.
bool sound_resources(const shm::PoolRow& pool, std::string_view names);
// Of a slot in use, whose pool is there: no more of anything than a slot of the pool has.
bool sound_amounts(const State& state, const shm::SlotRow& slot);
// Of any slot whose words stay within the tables: a part is one of a shared slot of its pool.
bool sound_part(const State& state, const shm::SlotRow& slot);
// Of a claim that wants a part.
bool sound_want(const State& state, const shm::ClaimRow& claim);

// What its word prolongs has an interval, and is not parked; nor is what has a text.
bool sound_flags(const shm::LeaseRow& lease);

}  // namespace dibs::core
