// demo/trace/scaling.cpp -- scales arrivals and hold times by one integer factor.
// SPDX-License-Identifier: Apache-2.0
#include "demo/trace/scaling.hpp"

#include <algorithm>

#include "demo/trace/decimal.hpp"

namespace dibs::ctl::demo {

Scale scale_rows(std::vector<TraceRow>* rows, uint64_t span_ns) {
    if (rows->empty()) return {};
    const uint64_t first = rows->front().arrival_ns;
    const uint64_t span = rows->back().arrival_ns - first;
    Scale scale{span, span == 0 ? 0 : span_ns};
    for (TraceRow& row : *rows) {
        row.arrival_ns -= first;
        if (span == 0) continue;
        row.arrival_ns = scale_integer(row.arrival_ns, span_ns, span);
        row.hold_ns = scale_integer(row.hold_ns, span_ns, span);
    }
    return scale;
}

uint64_t work_of(const std::vector<TraceRow>& rows) {
    uint64_t sum = 0;
    for (const TraceRow& row : rows) {
        sum += std::min(scale_integer(row.hold_ns, row.units, 1), kScaledMax - sum);
    }
    return sum;
}

uint64_t longest_hold(const std::vector<TraceRow>& rows) {
    uint64_t longest = 0;
    for (const TraceRow& row : rows)
        longest = std::max(longest, row.hold_ns);
    return longest;
}

}  // namespace dibs::ctl::demo
