// tests/broker/core/rules/router_test.cpp -- the ranking of pools, at the ends of its numbers.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/rules/router.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace dibs::core {
namespace {

std::vector<uint32_t> ranked(const std::vector<Candidate>& members,
                             uint8_t version,
                             uint32_t group_cap = shm::kNoRow) {
    const Ranking ranking = rank(members, group_cap, version, 100);
    return {ranking.ranked().begin(), ranking.ranked().end()};
}

using Order = std::vector<uint32_t>;

TEST(Router, RanksNothingOfNothing) {
    const Ranking ranking = rank({}, shm::kNoRow, 3, 100);
    EXPECT_EQ(ranking.count, 0U);
    EXPECT_FALSE(ranking.fresh);
}

TEST(Router, TellsEqualsApartByName) {
    EXPECT_EQ(ranked({{.pool = 1, .name = "b"}, {.pool = 2, .name = "a"}}, 1), (Order{2, 1}));
    EXPECT_EQ(ranked({{.pool = 1, .name = "b"}, {.pool = 2, .name = "a"}}, 3), (Order{2, 1}));
}

TEST(Router, IsNotSaturatedAtTheInstantItself) {
    const std::vector<Candidate> members = {
        {.pool = 1, .name = "a", .saturated_until_ns = 101},
        {.pool = 2, .name = "b", .saturated_until_ns = 100},
    };
    EXPECT_EQ(ranked(members, 1), (Order{2, 1}));
    EXPECT_EQ(ranked(members, 3), (Order{2, 1}));
}

TEST(Router, CountsNoMoreThanTheLargestSet) {
    std::vector<Candidate> members(20);
    for (uint32_t at = 0; at < 20; ++at)
        members[at] = {.pool = at, .idle = at};
    const Order pools = ranked(members, 3);
    EXPECT_EQ(pools.size(), 16U);
    EXPECT_EQ(pools.front(), 15U);
}

TEST(Router, HoldsTheLargestNumbers) {
    constexpr uint32_t kMost = 0xfffffffeU;
    const std::vector<Candidate> members = {
        {.pool = 1, .name = "a", .priority = INT32_MIN, .queue = kMost, .desired = kMost},
        {.pool = 2, .name = "b", .priority = INT32_MAX, .idle = kMost, .cap = kMost},
    };
    EXPECT_EQ(ranked(members, 1, kMost), (Order{1, 2}));
    EXPECT_EQ(ranked(members, 2), (Order{1, 2}));
    EXPECT_EQ(ranked(members, 3, kMost), (Order{2}));  // the siblings leave the first one nothing
}

}  // namespace
}  // namespace dibs::core
