// demo/timing.hpp -- records when each claim was granted and given back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dibs::ctl::demo {

struct Timing {
    uint64_t granted = 0;
    uint64_t makespan_ns = 0;  // from the first arrival to the end of the last lease
    uint64_t mean_wait_ns = 0;
    uint64_t p50_wait_ns = 0;
    uint64_t p99_wait_ns = 0;
    uint64_t max_wait_ns = 0;
    uint64_t per_second_milli = 0;  // grants per 1000 s of makespan
};

// `waits_ns`: of every granted claim, from its arrival to its grant; in any order.
Timing sum_up(std::vector<uint64_t> waits_ns, uint64_t makespan_ns);

// A duration in its unit, with two decimals: "17.30 us".
std::string shown_ns(uint64_t ns);
// A ratio with two decimals, "1.04"; "-" where the denominator is 0.
std::string shown_ratio(uint64_t numerator, uint64_t denominator);

}  // namespace dibs::ctl::demo
