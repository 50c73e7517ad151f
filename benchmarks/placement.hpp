// benchmarks/placement.hpp -- which CPUs the two sides of a measurement run on.
//
// The measuring side always runs on the first CPU that this process may use, the other side on the
// same one or on the second. Nothing is left to the kernel's scheduler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace dibs::bench {

struct Placement {
    int near_side = 0;  // this process
    int far_side = -1;  // the peer across cores; −1: there is only one CPU
};

// Where a process may run.
struct Cpus {
    int first = 0;
    int second = -1;  // −1: on the first one only
};

Placement choose_placement();
// This thread, to one CPU or two; throws std::system_error.
void pin(int cpu, int second = -1);

std::string across(const Placement& placement);
std::string one_core(const Placement& placement);

}  // namespace dibs::bench
