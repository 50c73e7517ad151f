// broker/core/recovery/sound_gangs.hpp -- checks rows of applications before they are trusted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "broker/core/store/row_states.hpp"
#include "broker/core/store/state.hpp"

namespace dibs::core {

[[nodiscard]] bool sound_app(const State& state, const shm::AppRow& app);
[[nodiscard]] bool sound_group(const State& state, const shm::GroupRow& group);
[[nodiscard]] bool sound_task(const State& state, const shm::TaskRow& task);

// Of a row that is there: the task, or the group, that it is for.
[[nodiscard]] bool sound_member(const State& state, const shm::ClaimRow& claim);
[[nodiscard]] bool sound_member(const State& state, const shm::LeaseRow& lease);
// Of a slot that is there, in no dispatched pool: the placeholder that it is.
[[nodiscard]] bool sound_placeholder(const State& state, const shm::SlotRow& slot);

// Of rows each of which is sound: groups stand once in the chain of their application, and every
// count is that of the rows. Looks at slots and leases, which may not have been checked, for what
// they say of applications alone. Empty, or what is wrong.
[[nodiscard]] std::string unsound_gangs(const State& state);

}  // namespace dibs::core
