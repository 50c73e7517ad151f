// tests/broker/core/match/ranked_rows_test.cpp -- ranked rows count as a sorted set does.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/ranked_rows.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace dibs::tests {
namespace {

TEST(RankedRows, AgreesWithASortedSet) {
    constexpr uint32_t kRows = 500;
    std::mt19937 random(4711);
    std::vector<uint32_t> priority(kRows);
    const auto less = [&](uint32_t left, uint32_t right) {
        return std::pair{priority[left], left} < std::pair{priority[right], right};
    };
    core::RankedRows rows(2, kRows);
    std::set<std::pair<uint32_t, uint32_t>> sorted;
    for (int step = 0; step < 20'000; ++step) {
        const uint32_t row = static_cast<uint32_t>(random()) % kRows;
        if (sorted.erase({priority[row], row}) != 0) {
            rows.remove(1, row, less);
        } else {
            priority[row] = static_cast<uint32_t>(random()) % 20;
            rows.insert(1, row, less);
            sorted.insert({priority[row], row});
        }
        ASSERT_EQ(rows.size(1), sorted.size());
        ASSERT_EQ(rows.first(1), sorted.empty() ? shm::kNoRow : sorted.begin()->second);
        const uint32_t asked = static_cast<uint32_t>(random()) % kRows;
        const auto behind = sorted.lower_bound({priority[asked], asked});
        ASSERT_EQ(rows.rank(1, asked, less), std::distance(sorted.begin(), behind));
        if (behind == sorted.end()) continue;
        ASSERT_EQ(rows.at(1, rows.rank(1, asked, less)), behind->second);
    }
    EXPECT_EQ(rows.size(0), 0U);
    EXPECT_EQ(rows.first(0), shm::kNoRow);
}

}  // namespace
}  // namespace dibs::tests
