// tests/naive/pool_rows.hpp -- what a pool shows, of both cores in one form.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "tests/naive/model.hpp"

namespace dibs::naive {

PoolCounters counters_of(const shm::PoolRow& pool, core::TimeNs now);

// Claims of leases that may be parked, in the order in which they would be recalled.
std::vector<uint64_t> parkable_of(const core::Core& core, uint32_t pool);

// The first field in which two sets of counters differ.
std::string difference(const PoolCounters& real, const PoolCounters& naive);

}  // namespace dibs::naive
