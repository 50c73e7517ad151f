// benchmarks/idle.hpp -- what a broker with nothing to do does: nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "benchmarks/placement.hpp"
#include "benchmarks/report.hpp"

namespace dibs::bench {

// The broker's voluntary context switches while 100 sessions are attached and silent.
// Wake-ups of a broker by two sessions that do nothing but take parked leases and release them.
void watch_parking(const Placement& placement, uint32_t seconds, Report& report);
// The same by a holder that does nothing but touch its lease, which is not about to expire.
void watch_touches(const Placement& placement, uint32_t seconds, Report& report);
void watch_idleness(const Placement& placement, uint32_t seconds, Report& report);

}  // namespace dibs::bench
