// demo/trace/generator.hpp -- generates a workload from a seed alone.
//
// Arrivals. Each tenant is a source that is on and off in turn. While it is on, the gaps between
// its claims are uniform in [0, 2 × gap]; an on period brings `burst` claims on average (uniform in
// [1, 2 × burst − 1]); then it is off for a time uniform in [0, 2 × off], where off is nine times
// the mean length of an on period: a tenth of the time it sends ten times its average. Hold times:
// a few are very long. Bounded Pareto with exponent 1 between 1 and kHoldRatio: with u uniform in
// [0, 1), hold = R / (R − u (R − 1)). All are then multiplied so that the work in the trace is
// `load` percent of what the slots can do in the time that the arrivals span. Everything is integer
// arithmetic: the same parameters give the same trace everywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "demo/trace/trace.hpp"

namespace dibs::ctl::demo {

inline constexpr uint64_t kHoldRatio = 10'000;  // longest hold time : shortest

struct GeneratorConfig {
    uint32_t tenants = 4;
    uint32_t slots = 8;
    uint32_t claims = 5000;
    uint32_t units_max = 1;  // units of a claim: uniform in [1, units_max]
    uint32_t burst = 20;     // claims of an on period, on average
    uint32_t load_percent = 70;
    uint64_t span_ns = 60'000'000'000;
    uint64_t seed = 1;
};

// `tenants`, `slots`, `units_max`, `burst` at least 1. Rows are in order of arrival; line = number
// of the row from 1.
Trace generate_trace(const GeneratorConfig& config);

// The generator's own random numbers (a counter, well mixed): not for anything that matters.
class Dice {
  public:
    explicit Dice(uint64_t seed) : state_(seed) {}
    uint64_t next();
    // Uniform in [0, bound); bound at least 1 and below 2^32.
    uint64_t below(uint64_t bound);

  private:
    uint64_t state_;
};

}  // namespace dibs::ctl::demo
