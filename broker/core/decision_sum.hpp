// broker/core/decision_sum.hpp -- hashes a decision, so that two compare without being kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/core/core.hpp"

namespace dibs::core {

// Sums every field of its kind and the lists, but not the places where they lie. For a decision of
// this turn.
uint32_t sum_of(const Core& core, const Decision& decision);

}  // namespace dibs::core
