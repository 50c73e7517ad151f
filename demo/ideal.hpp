// demo/ideal.hpp -- what the rows would take if nothing took any time: the scheduler
// core itself under a virtual clock that jumps from event to event.
//
// The same claims go to the same core that the broker runs, each at its very arrival; a worker
// confirms, ends and is ready again at once; a lease ends when its hold time is over. Session
// limits do not bind. So what a real run takes longer is the price of processes and memory.
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
