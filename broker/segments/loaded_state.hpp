// broker/segments/loaded_state.hpp -- a snapshot as a STATE segment that a broker can go on from.
//
// Row for row what was written down, and checked as a STATE that is handed over. Only a drain of
// the broker is over: whoever loads wants to be served. The sessions in it have no processes; the
// broker that goes on from it ends them, and with them what they held, before it hears anybody.
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
