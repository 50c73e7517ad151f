// benchmarks/core_probe.cpp -- alone or shared.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/core_probe.hpp"

#include <cstdint>

#include "benchmarks/samples.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

// Seen: 3.4 alone, 1.9 to 2.5 beside a busy other half.
constexpr double kAloneFrom = 2.9;
constexpr int kSteps = 2000;

// An addition that the compiler neither leaves out nor joins with the next one.
inline void add(uint64_t& to) {
    ++to;
    asm volatile("" : "+r"(to));
}

double chain_ns() {
    uint64_t a = 0;
    const uint64_t first = ticks();
    for (int i = 0; i < kSteps; ++i) {
        add(a), add(a), add(a), add(a);
        add(a), add(a), add(a), add(a);
    }
    return elapsed_ns(first, ticks());
}

double crowd_ns() {
    uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    const uint64_t first = ticks();
    for (int i = 0; i < kSteps; ++i) {
        add(a), add(b), add(c), add(d);
        add(e), add(f), add(g), add(h);
    }
    return elapsed_ns(first, ticks());
}

}  // namespace

Probed CoreProbe::probe() {
    Samples at_once;
    const uint64_t until = ticks() + as_ticks(kProbeNs);
    while (ticks() < until) {
        const double chain = chain_ns();
        at_once.add(chain / crowd_ns());
    }
    const double p50 = at_once.percentiles().p50;
    return {p50, p50 >= kAloneFrom ? MachineState::kAlone : MachineState::kShared};
}

}  // namespace dibs::bench
