// benchmarks/placement.cpp -- which CPUs the two sides of a measurement run on.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/placement.hpp"

#include <sched.h>

#include <cerrno>
#include <system_error>

namespace dibs::bench {

Placement choose_placement() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
    }
    Placement placement;
    int found = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        (found == 0 ? placement.near_side : placement.far_side) = cpu;
        ++found;
    }
    return placement;
}

void pin(int cpu, int second) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    if (second >= 0) CPU_SET(second, &only);
    if (sched_setaffinity(0, sizeof only, &only) != 0) {
        throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
    }
}

std::string across(const Placement& placement) {
    return "cpu " + std::to_string(placement.near_side) + " and " +
           std::to_string(placement.far_side);
}

std::string one_core(const Placement& placement) {
    return "cpu " + std::to_string(placement.near_side) + " alone";
}

}  // namespace dibs::bench
