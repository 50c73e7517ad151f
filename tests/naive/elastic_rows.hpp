// tests/naive/elastic_rows.hpp -- rows of elastic pools and their types, as both cores have them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "broker/core/core.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"

namespace dibs::naive {

// The first field in which the two differ; empty = none.
std::string elastic_difference(const core::Core& core,
                               const Player<core::Core>& player,
                               const NaiveCore& naive);

}  // namespace dibs::naive
