// benchmarks/memory.hpp -- bytes of an attached session, and of a claim that waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/placement.hpp"
#include "benchmarks/report.hpp"

namespace dibs::bench {

void measure_session_memory(const Placement& placement, Report& report);
void measure_waiting_claims(const Placement& placement, Report& report);

}  // namespace dibs::bench
