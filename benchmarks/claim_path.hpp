// benchmarks/claim_path.hpp -- what 10^5 claims cost besides time: faults and allocations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/placement.hpp"
#include "benchmarks/report.hpp"

namespace dibs::bench {

void count_claim_path(const Placement& placement, Report& report);

}  // namespace dibs::bench
