// demo/timing.cpp -- computes and prints means and percentiles (nearest rank).
// SPDX-License-Identifier: Apache-2.0
#include "demo/timing.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "demo/trace/decimal.hpp"

namespace dibs::ctl::demo {

namespace {

uint64_t percentile(const std::vector<uint64_t>& sorted, uint64_t percent) {
    const uint64_t rank = (sorted.size() * percent + 99) / 100;
    return sorted[static_cast<size_t>(std::max<uint64_t>(rank, 1) - 1)];
}

std::string two_decimals(uint64_t hundredths) {
    const std::string low = std::to_string(hundredths % 100);
    return std::to_string(hundredths / 100) + (low.size() == 1 ? ".0" : ".") + low;
}

}  // namespace

Timing sum_up(std::vector<uint64_t> waits_ns, uint64_t makespan_ns) {
    Timing timing;
    timing.granted = waits_ns.size();
    timing.makespan_ns = makespan_ns;
    if (waits_ns.empty()) return timing;
    std::sort(waits_ns.begin(), waits_ns.end());
    uint64_t sum = 0;
    for (const uint64_t wait : waits_ns)
        sum += wait;
    timing.mean_wait_ns = sum / waits_ns.size();
    timing.p50_wait_ns = percentile(waits_ns, 50);
    timing.p99_wait_ns = percentile(waits_ns, 99);
    timing.max_wait_ns = waits_ns.back();
    if (makespan_ns > 0) {
        timing.per_second_milli =
            scale_integer(timing.granted, uint64_t{1000} * kNsPerSecond, makespan_ns);
    }
    return timing;
}

std::string shown_ns(uint64_t ns) {
    constexpr std::array<const char*, 4> kUnits = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    uint64_t divisor = 1;
    while (unit + 1 < kUnits.size() && ns / divisor >= 1000) {
        divisor *= 1000;
        ++unit;
    }
    if (unit == 0) return std::to_string(ns) + " ns";
    return two_decimals(ns / (divisor / 100)) + " " + kUnits[unit];
}

std::string shown_ratio(uint64_t numerator, uint64_t denominator) {
    if (denominator == 0) return "-";
    return two_decimals(scale_integer(numerator, 100, denominator));
}

}  // namespace dibs::ctl::demo
