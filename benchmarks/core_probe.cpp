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

// An addition that the compiler neither leaves out nor joins with the next one. What is added is in
// a register: some processors join those of constants, a chain of them takes no time there.
inline void add(uint64_t& to, uint64_t what) {
    to += what;
    asm volatile("" : "+r"(to));
}

// One, as the compiler does not know.
uint64_t one() {
    uint64_t value = 1;
    asm volatile("" : "+r"(value));
    return value;
}

double chain_ns() {
    const uint64_t by = one();
    uint64_t a = 0;
    const uint64_t first = ticks();
    for (int i = 0; i < kSteps; ++i) {
        add(a, by), add(a, by), add(a, by), add(a, by);
        add(a, by), add(a, by), add(a, by), add(a, by);
    }
    return elapsed_ns(first, ticks());
}

double crowd_ns() {
    const uint64_t by = one();
    uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    const uint64_t first = ticks();
    for (int i = 0; i < kSteps; ++i) {
        add(a, by), add(b, by), add(c, by), add(d, by);
        add(e, by), add(f, by), add(g, by), add(h, by);
    }
    return elapsed_ns(first, ticks());
}

}  // namespace

double additions_at_once() {
    Samples at_once;
    const uint64_t until = ticks() + as_ticks(kProbeNs);
    while (ticks() < until) {
        const double chain = chain_ns();
        at_once.add(chain / crowd_ns());
    }
    return at_once.percentiles().p50;
}

bool is_alone(double additions_at_once) {
    return additions_at_once >= kAloneFrom;
}

Probed CoreProbe::probe() {
    const double found = additions_at_once();
    return {found, is_alone(found) ? MachineState::kAlone : MachineState::kShared};
}

}  // namespace dibs::bench
