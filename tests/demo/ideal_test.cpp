// tests/demo/ideal_test.cpp -- the core on rows under a virtual clock, worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include "demo/ideal.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "demo/trace/generator.hpp"

namespace dibs::ctl::demo {
namespace {

TraceRow arriving(uint64_t arrival_ns, uint64_t hold_ns, uint32_t units = 1) {
    TraceRow row;
    row.arrival_ns = arrival_ns;
    row.hold_ns = hold_ns;
    row.units = units;
    return row;
}

TEST(Ideal, TakesAsLongAsTheHoldTimeWhenNobodyWaits) {
    for (const PoolShape shape : {PoolShape::kCounted, PoolShape::kWorkers}) {
        const Ideal ideal = run_ideal({arriving(0, 100), arriving(10, 20)}, shape, 2);
        EXPECT_EQ(ideal.failure, "");
        EXPECT_EQ(ideal.timing.granted, 2U);
        EXPECT_EQ(ideal.timing.makespan_ns, 100U);
        EXPECT_EQ(ideal.timing.max_wait_ns, 0U);
    }
}

// One slot: the second claim waits from 10 to 100, the third from 20 to 130.
TEST(Ideal, GrantsInOrderOfArrival) {
    for (const PoolShape shape : {PoolShape::kCounted, PoolShape::kWorkers}) {
        const Ideal ideal =
            run_ideal({arriving(0, 100), arriving(10, 30), arriving(20, 5)}, shape, 1);
        EXPECT_EQ(ideal.failure, "");
        EXPECT_EQ(ideal.timing.makespan_ns, 135U);
        EXPECT_EQ(ideal.timing.mean_wait_ns, (0U + 90U + 110U) / 3);
        EXPECT_EQ(ideal.timing.max_wait_ns, 110U);
    }
}

// Four slots: 3 units from 0 to 100. The claim of 4 waits for all of them until 100; the claim of
// one behind it does not overtake it, and waits until 150.
TEST(Ideal, LetsNobodyOvertakeALargeClaim) {
    for (const PoolShape shape : {PoolShape::kCounted, PoolShape::kWorkers}) {
        const Ideal ideal =
            run_ideal({arriving(0, 100, 3), arriving(10, 50, 4), arriving(20, 7, 1)}, shape, 4);
        EXPECT_EQ(ideal.failure, "");
        EXPECT_EQ(ideal.timing.makespan_ns, 157U);
        EXPECT_EQ(ideal.timing.max_wait_ns, 130U);
        EXPECT_EQ(ideal.timing.mean_wait_ns, (0U + 90U + 130U) / 3);
    }
}

TEST(Ideal, PlaysHoldTimesOfNothing) {
    for (const PoolShape shape : {PoolShape::kCounted, PoolShape::kWorkers}) {
        const Ideal ideal =
            run_ideal({arriving(0, 0), arriving(0, 0), arriving(0, 10), arriving(0, 0)}, shape, 1);
        EXPECT_EQ(ideal.failure, "");
        EXPECT_EQ(ideal.timing.granted, 4U);
        EXPECT_EQ(ideal.timing.makespan_ns, 10U);
    }
}

TEST(Ideal, PlaysMoreClaimsThanOneSessionMayHave) {
    std::vector<TraceRow> rows(3000, arriving(0, 1));
    const Ideal ideal = run_ideal(rows, PoolShape::kCounted, 1);
    EXPECT_EQ(ideal.failure, "");
    EXPECT_EQ(ideal.timing.makespan_ns, 3000U);
    EXPECT_EQ(ideal.timing.max_wait_ns, 2999U);
}

TEST(Ideal, PlaysTheGeneratedWorkload) {
    GeneratorConfig config;
    config.units_max = 3;
    const Trace trace = generate_trace(config);
    const Ideal counted = run_ideal(trace.rows, PoolShape::kCounted, config.slots);
    const Ideal workers = run_ideal(trace.rows, PoolShape::kWorkers, config.slots);
    EXPECT_EQ(counted.failure, "");
    EXPECT_EQ(counted.timing.granted, config.claims);
    EXPECT_GE(counted.timing.makespan_ns, config.span_ns);
    EXPECT_EQ(workers.timing.makespan_ns, counted.timing.makespan_ns);
    EXPECT_EQ(workers.timing.mean_wait_ns, counted.timing.mean_wait_ns);
}

TEST(Ideal, HasNoFiguresWithoutRows) {
    EXPECT_EQ(run_ideal({}, PoolShape::kCounted, 1).failure, "there are no rows to play");
}

}  // namespace
}  // namespace dibs::ctl::demo
