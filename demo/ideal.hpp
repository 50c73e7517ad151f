// demo/ideal.hpp -- computes how long a trace takes if only the scheduler takes part.
//
// The same claims go to the same scheduler core that the broker runs, each at its exact arrival,
// under a virtual clock that jumps from event to event; a worker confirms, ends and is ready again
// at once; a lease ends when its hold time is over. Session limits do not apply. So the additional
// time of a real run is the price of processes and memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demo/timing.hpp"
#include "demo/trace/trace.hpp"

namespace dibs::ctl::demo {

enum class PoolShape { kCounted, kWorkers };

struct Ideal {
    Timing timing;
    std::string failure;  // empty, or why there are no figures
};

// `rows` are in order of arrival, each with at most `slots` units.
Ideal run_ideal(const std::vector<TraceRow>& rows, PoolShape shape, uint32_t slots);

}  // namespace dibs::ctl::demo
