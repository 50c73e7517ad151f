// tests/broker/core/store/timers_test.cpp -- the order of what is due, against a sorted list.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/store/timers.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "broker/core/parts.hpp"

namespace dibs::tests {

namespace {

using core::TimerKind;
using core::Timers;

// Also where a state says that something was seen at the end of time.
TEST(SumOrNever, StopsBeforeTheEndOfTime) {
    EXPECT_EQ(core::sum_or_never(7, 5), 12U);
    EXPECT_EQ(core::sum_or_never(shm::kNever - 6, 5), shm::kNever - 1);
    EXPECT_EQ(core::sum_or_never(shm::kNever - 5, 5), shm::kNever - 1);
    EXPECT_EQ(core::sum_or_never(shm::kNever - 1, 5), shm::kNever - 1);
    EXPECT_EQ(core::sum_or_never(shm::kNever, 0), shm::kNever - 1);
    EXPECT_EQ(core::sum_or_never(shm::kNever, 5), shm::kNever - 1);
    EXPECT_EQ(core::sum_or_never(0, shm::kNever), shm::kNever - 1);
}

TEST(Timers, OrderByInstantThenKindThenNumber) {
    Timers timers(4, 4, 4);
    timers.set(TimerKind::kGrace, 0, 10, 1);
    timers.set(TimerKind::kLease, 1, 10, 9);
    timers.set(TimerKind::kLease, 2, 10, 3);
    timers.set(TimerKind::kDeadline, 0, 10, 7);
    timers.set(TimerKind::kKept, 0, 9, 99);
    const std::pair<TimerKind, uint32_t> expected[] = {{TimerKind::kKept, 0},
                                                       {TimerKind::kDeadline, 0},
                                                       {TimerKind::kLease, 2},
                                                       {TimerKind::kLease, 1},
                                                       {TimerKind::kGrace, 0}};
    for (const auto& [kind, row] : expected) {
        ASSERT_FALSE(timers.empty());
        EXPECT_EQ(timers.first().kind, kind);
        EXPECT_EQ(timers.first().row, row);
        timers.remove(kind, row);
    }
    EXPECT_TRUE(timers.empty());
}

TEST(Timers, ALeaseHasOneTimerThatChangesItsKind) {
    Timers timers(1, 1, 1);
    timers.set(TimerKind::kLease, 0, 10, 1);
    timers.set(TimerKind::kGrace, 0, 20, 1);
    EXPECT_EQ(timers.size(), 1U);
    EXPECT_TRUE(timers.has(TimerKind::kGrace, 0));
    EXPECT_FALSE(timers.has(TimerKind::kLease, 0));
    timers.remove(TimerKind::kLease, 0);
    EXPECT_TRUE(timers.empty());
}

TEST(Timers, AgreeWithASortedMapUnderRandomUse) {
    constexpr uint32_t kRows = 40;
    Timers timers(kRows, kRows, kRows);
    using Order = std::tuple<uint64_t, TimerKind, uint64_t>;
    std::map<Order, uint32_t> sorted;
    std::map<std::pair<int, uint32_t>, Order> known;
    std::mt19937_64 random(5);
    for (int step = 0; step < 20'000; ++step) {
        const auto kind = static_cast<TimerKind>(random() % 4);
        const auto row = static_cast<uint32_t>(random() % kRows);
        const std::pair key{static_cast<int>(kind), row};
        if (const auto found = known.find(key); found != known.end()) {
            sorted.erase(found->second);
            known.erase(found);
            if (random() % 2 == 0) {
                timers.remove(kind, row);
                continue;
            }
        }
        // The number is the row's, as in life, so no two timers of a kind are equal.
        const uint64_t due = random() % 50;
        timers.set(kind, row, due, row);
        const Order order{due, kind, row};
        sorted[order] = row;
        known[key] = order;
        ASSERT_EQ(timers.size(), sorted.size());
        ASSERT_EQ(timers.first().row, sorted.begin()->second);
        ASSERT_EQ(timers.first().kind, std::get<1>(sorted.begin()->first));
    }
}

}  // namespace

}  // namespace dibs::tests
