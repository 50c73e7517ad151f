// broker/segments/loaded_state.hpp -- loads a snapshot into a STATE segment that a broker can use.
//
// Its rows are those that were written down, and get the same checks as a STATE that is handed
// over. Only a drain of the broker is ended, because a loaded broker is meant to serve. The
// sessions in the snapshot have no processes; the broker that serves from it ends them, and with
// them what they held, before it reads any client.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "broker/core/core.hpp"
#include "shm/descriptor.hpp"

namespace dibs {

struct LoadedState {
    shm::Descriptor state;
    uint64_t time_ns = 0;  // broker time at which it goes on
};

// No table has more rows than `bound`, which the broker is configured for: a few bytes can ask for
// any number. Its epoch is at least `epoch`. Throws std::runtime_error with the place of what is
// wrong.
LoadedState load_state(std::span<const uint8_t> snapshot,
                       const core::Limits& bound,
                       uint64_t epoch);
// The same of a file; the message begins with its path.
LoadedState load_state_file(const std::string& path, const core::Limits& bound);

}  // namespace dibs
