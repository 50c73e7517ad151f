// broker/core/decision_sum.hpp -- a decision as one number, so that two can be told apart without
// being kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/core/core.hpp"

namespace dibs::core {

// Of everything that it says, its lists included, and nothing of where they lie. One of this turn.
uint32_t sum_of(const Core& core, const Decision& decision);

}  // namespace dibs::core
