// broker/turn/cut_leases.hpp -- logs the leases that end because the broker ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/core.hpp"

namespace dibs {

// Logs what is held, by whom, for how long. Logs nothing if there are no leases.
void say_what_is_cut(const core::Core& core);

}  // namespace dibs
