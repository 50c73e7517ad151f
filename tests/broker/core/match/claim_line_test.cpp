// tests/broker/core/match/claim_line_test.cpp -- a line of claims counts as a sorted list does.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/claim_line.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace dibs::tests {
namespace {

using core::ClaimLine;

TEST(ClaimLine, CountsThoseBeforeANumber) {
    ClaimLine line;
    for (uint32_t claim = 0; claim < 5; ++claim)
        line.insert(10 + claim, claim);
    EXPECT_EQ(line.head(), 0U);
    EXPECT_EQ(line.count_before(12), 2U);
    line.remove(11);
    EXPECT_EQ(line.count_before(12), 1U);
    EXPECT_EQ(line.count_before(100), 4U);
    line.remove(10);
    EXPECT_EQ(line.head(), 2U);
    EXPECT_EQ(line.head_number(), 12U);
    line.insert(10, 0);  // it comes back to its old place
    EXPECT_EQ(line.head(), 0U);
    line.insert(11, 1);
    EXPECT_EQ(line.count_before(12), 2U);
    EXPECT_EQ(line.count(), 5U);
}

TEST(ClaimLine, KeepsAClaimThatWaitsWhileFourBillionPass) {
    constexpr uint64_t kPassed = uint64_t{5} << 32U;
    ClaimLine line;
    line.insert(7, 1);
    line.insert(9, 2);
    line.insert(kPassed + 8, 3);
    EXPECT_EQ(line.head_number(), 7U);
    EXPECT_EQ(line.count_before(kPassed + 8), 2U);
    line.remove(7);
    EXPECT_EQ(line.head_number(), 9U);
    line.insert(7, 1);
    line.insert(kPassed + 9, 4);
    line.remove(7);
    line.remove(9);
    EXPECT_EQ(line.head(), 3U);
    line.insert(11, 5);  // back before all that are left
    EXPECT_EQ(line.head_number(), 11U);
    line.remove(11);
    EXPECT_EQ(line.head_number(), kPassed + 8);
    EXPECT_EQ(line.count_before(kPassed + 9), 1U);
}

// Arrivals at the tail, departures mostly from the head, some back from the middle.
TEST(ClaimLine, AgreesWithASortedMap) {
    std::mt19937 random(4711);
    ClaimLine line;
    std::map<uint64_t, uint32_t> sorted;
    std::vector<uint64_t> gone;
    uint64_t next = uint64_t{1} << 32U;
    for (int step = 0; step < 20'000; ++step) {
        const auto dice = static_cast<uint32_t>(random() % 100);
        if (dice < (step < 10'000 ? 60U : 25U)) {
            next += 1 + random() % 3;
            line.insert(next, static_cast<uint32_t>(step));
            sorted[next] = static_cast<uint32_t>(step);
        } else if (dice < 97 && !sorted.empty()) {
            auto leaver = sorted.begin();
            if (dice < 70) std::advance(leaver, random() % std::min<size_t>(sorted.size(), 40));
            gone.push_back(leaver->first);
            line.remove(leaver->first);
            sorted.erase(leaver);
        } else if (!gone.empty()) {
            const uint64_t back = gone[random() % gone.size()];
            if (sorted.emplace(back, 7).second) line.insert(back, 7);
        }
        ASSERT_EQ(line.count(), sorted.size());
        ASSERT_EQ(line.head(), sorted.empty() ? shm::kNoRow : sorted.begin()->second);
        if (step % 50 != 0) continue;
        const uint64_t asked = next - random() % 4000;
        const auto before = std::distance(sorted.begin(), sorted.lower_bound(asked));
        ASSERT_EQ(line.count_before(asked), static_cast<uint32_t>(before));
    }
}

}  // namespace
}  // namespace dibs::tests
