// tests/naive/account_rows.hpp -- what both cores remember of accounts, claims, leases and workers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "broker/core/core.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"

namespace dibs::naive {

// The first thing in which they differ; empty if in nothing.
std::string account_difference(const core::Core& real,
                               const Player<core::Core>& player,
                               const NaiveCore& naive);

}  // namespace dibs::naive
