// tests/shm/handshake_test.cpp -- sizes of a session and the places within its segments.
// SPDX-License-Identifier: Apache-2.0
#include "shm/handshake.hpp"

#include <gtest/gtest.h>

namespace dibs::shm {
namespace {

TEST(Handshake, FillsDefaultsInForWhatIsNotAskedFor) {
    Hello hello;
    hello.tags = 64;
    const SessionSizes sizes = wanted_sizes(hello);
    EXPECT_EQ(sizes.submission_entries, 128U);
    EXPECT_EQ(sizes.completion_entries, 256U);
    EXPECT_EQ(sizes.up_payload, 65536U);
    EXPECT_EQ(sizes.down_payload, 65536U);
    EXPECT_EQ(sizes.tags, 64U);
    EXPECT_TRUE(valid_sizes(sizes));
}

TEST(Handshake, RefusesSizesThatAreNoPowersOfTwoOrOutOfBounds) {
    EXPECT_FALSE(valid_sizes({100, 256, 65536, 65536, 256}));
    EXPECT_FALSE(valid_sizes({4, 256, 65536, 65536, 256}));
    EXPECT_FALSE(valid_sizes({8192, 16384, 65536, 65536, 256}));
    EXPECT_FALSE(valid_sizes({256, 256, 65536, 65536, 256}));  // completions < 2 × submissions
    EXPECT_FALSE(valid_sizes({128, 256, 2048, 65536, 256}));
    EXPECT_FALSE(valid_sizes({128, 256, 65536, 8U << 20, 256}));
    EXPECT_FALSE(valid_sizes({128, 256, 65536, 65536, 2048}));
    EXPECT_TRUE(valid_sizes({8, 16, 4096, 4096, 8}));
    EXPECT_TRUE(valid_sizes({4096, 16384, 4U << 20, 4U << 20, 1024}));
}

TEST(Handshake, PlacesTheAreasOfUpOneAfterTheOther) {
    const UpPlan plan = plan_up(kDefaultSizes);
    EXPECT_EQ(plan.submission, 256U);
    EXPECT_EQ(plan.lease_word, 256U + 8192U);
    EXPECT_EQ(plan.touch_word, 8448U + 4096U);
    EXPECT_EQ(plan.histogram, 12544U + 2048U);
    EXPECT_EQ(plan.payload, 14592U + 2560U);
    EXPECT_EQ(plan.size, 86016U);  // 17152 + 65536, in whole pages
}

TEST(Handshake, PlacesTheAreasOfDownOneAfterTheOther) {
    const DownPlan plan = plan_down(kDefaultSizes);
    EXPECT_EQ(plan.completion, 256U);
    EXPECT_EQ(plan.event, 256U + 16384U);
    EXPECT_EQ(plan.payload, 16640U + 2048U);
    EXPECT_EQ(plan.size, 86016U);
}

TEST(Handshake, HoldsTheLargestSegmentsIn32BitOffsets) {
    const SessionSizes largest = {4096, 16384, 4U << 20, 4U << 20, 1024};
    EXPECT_LT(plan_up(largest).size, uint64_t{1} << 32);
    EXPECT_LT(plan_down(largest).size, uint64_t{1} << 32);
}

}  // namespace
}  // namespace dibs::shm
