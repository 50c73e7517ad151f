// benchmarks/computation.cpp -- a chain of multiplications, and its calibration.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/computation.hpp"

#include <algorithm>

#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

constexpr uint64_t kTrialSteps = 10'000;
constexpr int kTrials = 500;

// The shortest trial is the one that nothing interrupted.
double measured_step_ns() {
    double least = 1e9;
    for (int i = 0; i < kTrials; ++i) {
        const uint64_t first = ticks();
        compute(kTrialSteps);
        least = std::min(least, elapsed_ns(first, ticks()));
    }
    return least / kTrialSteps;
}

}  // namespace

void compute(uint64_t steps) {
    uint64_t value = 1;
    for (uint64_t i = 0; i < steps; ++i) {
        value = value * 6'364'136'223'846'793'005U + 1;
        asm volatile("" : "+r"(value));
    }
}

uint64_t steps_of(double ns) {
    static const double step_ns = measured_step_ns();
    return static_cast<uint64_t>(ns / step_ns);
}

}  // namespace dibs::bench
