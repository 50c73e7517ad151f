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

}  // namespace dibs::core
