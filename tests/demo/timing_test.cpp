// tests/demo/timing_test.cpp -- means, percentiles and how durations are shown.
// SPDX-License-Identifier: Apache-2.0
#include "demo/timing.hpp"

#include <gtest/gtest.h>

namespace dibs::ctl::demo {
namespace {

TEST(Timing, SumsUpWaits) {
    std::vector<uint64_t> waits;
    for (uint64_t i = 100; i > 0; --i)
        waits.push_back(i * 10);
    const Timing timing = sum_up(waits, 50'000'000'000);
    EXPECT_EQ(timing.granted, 100U);
    EXPECT_EQ(timing.mean_wait_ns, 505U);
    EXPECT_EQ(timing.p50_wait_ns, 500U);
    EXPECT_EQ(timing.p99_wait_ns, 990U);
    EXPECT_EQ(timing.max_wait_ns, 1000U);
    EXPECT_EQ(timing.per_second_milli, 2000U);  // 2.000 a second
}

TEST(Timing, OfASingleClaimIsItsOwn) {
    const Timing timing = sum_up({42}, 0);
    EXPECT_EQ(timing.p50_wait_ns, 42U);
    EXPECT_EQ(timing.p99_wait_ns, 42U);
    EXPECT_EQ(timing.per_second_milli, 0U);
    EXPECT_EQ(sum_up({}, 7).max_wait_ns, 0U);
}

TEST(ShownNs, PicksTheUnit) {
    EXPECT_EQ(shown_ns(999), "999 ns");
    EXPECT_EQ(shown_ns(1000), "1.00 us");
    EXPECT_EQ(shown_ns(17'349'999), "17.34 ms");
    EXPECT_EQ(shown_ns(60'050'000'000), "60.05 s");
    EXPECT_EQ(shown_ns(4'000'000'000'000), "4000.00 s");
}

TEST(ShownRatio, HasTwoDecimals) {
    EXPECT_EQ(shown_ratio(104, 100), "1.04");
    EXPECT_EQ(shown_ratio(3, 2), "1.50");
    EXPECT_EQ(shown_ratio(1, 0), "-");
}

}  // namespace
}  // namespace dibs::ctl::demo
