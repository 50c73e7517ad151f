// tests/broker/cpus.hpp -- what a test of two threads needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

namespace dibs::test {

inline bool has_two_cpus() {
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) > 1;
}

}  // namespace dibs::test
