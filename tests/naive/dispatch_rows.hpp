// tests/naive/dispatch_rows.hpp -- rows of dispatched pools, their entries and workers, as both
// cores have them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "broker/core/core.hpp"
#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

// The first field in which the two differ; empty = none. `state` is the core's.
std::string dispatch_difference(const core::Core& core,
                                std::span<const std::byte> state,
                                const NaiveCore& naive);

}  // namespace dibs::naive
