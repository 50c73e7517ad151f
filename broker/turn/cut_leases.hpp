// broker/turn/cut_leases.hpp -- whose leases end because the broker does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/core.hpp"

namespace dibs {

// Names them in the log: what is held, by whom, for how long. Nothing where nothing is.
void say_what_is_cut(const core::Core& core);

}  // namespace dibs
