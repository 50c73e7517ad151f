// tests/demo/trace/scaling_test.cpp -- one factor for arrivals and hold times.
// SPDX-License-Identifier: Apache-2.0
#include "demo/trace/scaling.hpp"

#include <gtest/gtest.h>

namespace dibs::ctl::demo {
namespace {

TraceRow row(uint64_t arrival_ns, uint64_t hold_ns, uint32_t units = 1) {
    TraceRow row;
    row.arrival_ns = arrival_ns;
    row.hold_ns = hold_ns;
    row.units = units;
    return row;
}

TEST(Scaling, MultipliesArrivalsAndHoldTimesByOneFactor) {
    std::vector<TraceRow> rows = {row(100, 50), row(200, 7), row(300, 1000)};
    const Scale scale = scale_rows(&rows, 100);
    EXPECT_EQ(scale.from_ns, 200U);
    EXPECT_EQ(scale.to_ns, 100U);
    EXPECT_EQ(rows[0].arrival_ns, 0U);
    EXPECT_EQ(rows[0].hold_ns, 25U);
    EXPECT_EQ(rows[1].arrival_ns, 50U);
    EXPECT_EQ(rows[1].hold_ns, 3U);
    EXPECT_EQ(rows[2].arrival_ns, 100U);
    EXPECT_EQ(rows[2].hold_ns, 500U);
}

TEST(Scaling, LeavesHoldTimesAloneWhenAllArriveAtOnce) {
    std::vector<TraceRow> rows = {row(7, 50), row(7, 60)};
    const Scale scale = scale_rows(&rows, 1'000'000);
    EXPECT_EQ(scale.from_ns, 0U);
    EXPECT_EQ(rows[1].arrival_ns, 0U);
    EXPECT_EQ(rows[1].hold_ns, 60U);
}

TEST(Scaling, HasNothingToDoWithoutRows) {
    std::vector<TraceRow> rows;
    EXPECT_EQ(scale_rows(&rows, 60).from_ns, 0U);
}

TEST(Work, CountsUnitsTimesHoldTime) {
    EXPECT_EQ(work_of({row(0, 10, 3), row(0, 5, 2)}), 40U);
    EXPECT_EQ(work_of({row(0, uint64_t{1} << 62, 2), row(0, 5)}), uint64_t{1} << 62);
    EXPECT_EQ(longest_hold({row(0, 10), row(0, 30), row(0, 20)}), 30U);
}

}  // namespace
}  // namespace dibs::ctl::demo
