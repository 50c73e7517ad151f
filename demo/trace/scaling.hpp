// demo/trace/scaling.hpp -- scales a trace to the available time and keeps its load.
// Arrivals and hold times are multiplied by one factor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "demo/trace/trace.hpp"

namespace dibs::ctl::demo {

struct Scale {
    uint64_t from_ns = 0;  // span of the arrivals as the trace has them
    uint64_t to_ns = 0;    // span afterwards; equal if there is nothing to stretch
};

// Moves the first arrival to 0 and the last one to `span_ns`. `rows` are in order of arrival. With
// a single instant of arrival there is no factor: hold times stay as they are.
Scale scale_rows(std::vector<TraceRow>* rows, uint64_t span_ns);

// Unit-nanoseconds of work in the rows, cut to 63 bits, and the longest hold time.
uint64_t work_of(const std::vector<TraceRow>& rows);
uint64_t longest_hold(const std::vector<TraceRow>& rows);

}  // namespace dibs::ctl::demo
