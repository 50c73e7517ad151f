// benchmarks/computation.hpp -- work with a fixed number of instructions, calibrated to a duration.
//
// A loop that runs until a point in time counts the time in which its process was preempted as work
// done; with more processes than CPUs that is most of the time. A fixed number of instructions is
// the same work however often it is interrupted. They are one chain of dependent multiplications,
// whose duration hardly depends on what runs on the other half of the core.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dibs::bench {

uint64_t steps_of(double ns);  // on an undisturbed CPU
void compute(uint64_t steps);

}  // namespace dibs::bench
