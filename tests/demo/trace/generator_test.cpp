// tests/demo/trace/generator_test.cpp -- the workload that is made from a seed.
// SPDX-License-Identifier: Apache-2.0
#include "demo/trace/generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "demo/trace/scaling.hpp"

namespace dibs::ctl::demo {
namespace {

bool same(const Trace& a, const Trace& b) {
    return std::equal(a.rows.begin(),
                      a.rows.end(),
                      b.rows.begin(),
                      b.rows.end(),
                      [](const auto& x, const auto& y) {
                          return x.arrival_ns == y.arrival_ns && x.hold_ns == y.hold_ns &&
                                 x.units == y.units && x.tenant == y.tenant;
                      });
}

TEST(Generator, GivesTheSameTraceForTheSameSeed) {
    GeneratorConfig config;
    const Trace first = generate_trace(config);
    EXPECT_TRUE(same(first, generate_trace(config)));
    config.seed = 2;
    EXPECT_FALSE(same(first, generate_trace(config)));
}

TEST(Generator, GivesAsManyClaimsAsAskedSpreadOverTheTenants) {
    GeneratorConfig config;
    config.tenants = 3;
    config.claims = 1000;
    const Trace trace = generate_trace(config);
    ASSERT_EQ(trace.rows.size(), 1000U);
    EXPECT_EQ(trace.tenants.size(), 3U);
    std::vector<int> count(3, 0);
    for (const TraceRow& row : trace.rows)
        ++count.at(row.tenant);
    EXPECT_EQ(count, (std::vector<int>{334, 333, 333}));
}

TEST(Generator, FillsTheSpanInOrderOfArrival) {
    GeneratorConfig config;
    config.span_ns = 5'000'000'000;
    const Trace trace = generate_trace(config);
    EXPECT_EQ(trace.rows.front().arrival_ns, 0U);
    EXPECT_EQ(trace.rows.back().arrival_ns, 5'000'000'000U);
    EXPECT_TRUE(
        std::is_sorted(trace.rows.begin(), trace.rows.end(), [](const auto& a, const auto& b) {
            return a.arrival_ns < b.arrival_ns;
        }));
}

TEST(Generator, FitsTheHoldTimesToTheLoad) {
    GeneratorConfig config;
    config.load_percent = 50;
    config.units_max = 4;
    const Trace trace = generate_trace(config);
    const uint64_t capacity = config.span_ns * config.slots;
    // Each hold time is cut to a whole nanosecond: at most units_max lost for each claim.
    EXPECT_LE(work_of(trace.rows), capacity / 2);
    EXPECT_GE(work_of(trace.rows), capacity / 2 - uint64_t{config.claims} * config.units_max);
    for (const TraceRow& row : trace.rows) {
        EXPECT_GE(row.units, 1U);
        EXPECT_LE(row.units, 4U);
    }
}

TEST(Generator, MakesFewHoldTimesVeryLong) {
    const Trace trace = generate_trace({});
    std::vector<uint64_t> holds;
    for (const TraceRow& row : trace.rows)
        holds.push_back(row.hold_ns);
    std::sort(holds.begin(), holds.end(), std::greater<>());
    uint64_t all = 0;
    uint64_t longest = 0;
    for (size_t i = 0; i < holds.size(); ++i) {
        all += holds[i];
        if (i < holds.size() / 20) longest += holds[i];
    }
    EXPECT_GT(longest * 2, all);  // a twentieth of the claims holds most of the time
    EXPECT_LE(holds.front(), holds.back() * (kHoldRatio + 1) + kHoldRatio);
}

TEST(Generator, SendsInBursts) {
    GeneratorConfig config;
    config.tenants = 1;
    const Trace trace = generate_trace(config);
    const uint64_t mean_gap = config.span_ns / config.claims;
    size_t short_gaps = 0;
    for (size_t i = 1; i < trace.rows.size(); ++i) {
        const uint64_t gap = trace.rows[i].arrival_ns - trace.rows[i - 1].arrival_ns;
        short_gaps += gap * 4 < mean_gap ? 1 : 0;
    }
    EXPECT_GT(short_gaps * 10, trace.rows.size() * 9);  // nine in ten come close behind another
}

TEST(Generator, WorksWithTheSmallestParameters) {
    const Trace trace = generate_trace({1, 1, 1, 1, 1, 1, 1, 0});
    ASSERT_EQ(trace.rows.size(), 1U);
    EXPECT_EQ(trace.rows[0].units, 1U);
    EXPECT_TRUE(generate_trace({1, 1, 0, 1, 1, 1, 1, 0}).rows.empty());
}

TEST(Dice, StaysBelowItsBound) {
    Dice dice(7);
    std::vector<int> seen(6, 0);
    for (int i = 0; i < 6000; ++i)
        ++seen.at(dice.below(6));
    for (const int count : seen)
        EXPECT_GT(count, 850);
}

}  // namespace
}  // namespace dibs::ctl::demo
