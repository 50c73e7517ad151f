// tests/broker/core/match/backlog_test.cpp -- how many stand before whom, against a plain list.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/backlog.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace dibs::core {
namespace {

using shm::kNoRow;

TEST(Backlog, CountsWhoStandsBeforeWhom) {
    Backlog backlog(1, 8);
    for (const uint32_t row : {3U, 1U, 7U})
        backlog.push_back(0, row);
    EXPECT_EQ(backlog.ahead(0, 3), 0U);
    EXPECT_EQ(backlog.ahead(0, 1), 1U);
    EXPECT_EQ(backlog.ahead(0, 7), 2U);
    backlog.remove(0, 3);
    EXPECT_EQ(backlog.ahead(0, 7), 1U);
    backlog.insert_before(0, 3, 1);  // it waits again in its place
    EXPECT_EQ(backlog.ahead(0, 3), 0U);
    EXPECT_EQ(backlog.ahead(0, 7), 2U);
}

TEST(Backlog, SeatsAnewWhenNoSeatIsLeftBetweenTwo) {
    Backlog backlog(1, 300);
    backlog.push_back(0, 0);
    backlog.push_back(0, 1);
    for (uint32_t row = 2; row < 300; ++row)
        backlog.insert_before(0, row, 1);  // always between the last two
    EXPECT_EQ(backlog.ahead(0, 0), 0U);
    EXPECT_EQ(backlog.ahead(0, 2), 1U);
    EXPECT_EQ(backlog.ahead(0, 299), 298U);
    EXPECT_EQ(backlog.ahead(0, 1), 299U);
    EXPECT_EQ(backlog.missing_seat(0), kNoRow);
}

TEST(Backlog, KeepsCountingWhileTheFirstWaitsForEverAndOthersPass) {
    Backlog backlog(1, 3);
    backlog.reserve(0, 3);
    backlog.push_back(0, 0);
    for (int passed = 0; passed < 50'000; ++passed) {
        backlog.push_back(0, 1);
        backlog.push_back(0, 2);
        ASSERT_EQ(backlog.ahead(0, 2), 2U);
        backlog.remove(0, 1);
        ASSERT_EQ(backlog.ahead(0, 2), 1U);
        backlog.remove(0, 2);
    }
    EXPECT_EQ(backlog.missing_seat(0), kNoRow);
    EXPECT_EQ(backlog.taken(0), 1U);
}

TEST(Backlog, CountsOverManyBlocks) {
    constexpr uint32_t kRows = 20'000;
    Backlog backlog(2, kRows);
    backlog.reserve(1, kRows);
    for (uint32_t row = 0; row < kRows; ++row)
        backlog.push_back(1, row);
    for (uint32_t row = 0; row < kRows; row += 2)
        backlog.remove(1, row);
    EXPECT_EQ(backlog.ahead(1, 1), 0U);
    EXPECT_EQ(backlog.ahead(1, 9'999), 4'999U);
    EXPECT_EQ(backlog.ahead(1, 19'999), 9'999U);
    EXPECT_EQ(backlog.taken(1), 10'000U);
}

// As claims without a row come before the one with a row that stands there already, in rows that
// were given back last.
TEST(Backlog, HasASeatForEachClaimWithoutARowBeforeTheFirstThatHasOne) {
    constexpr uint32_t kRows = 1'000;
    constexpr uint32_t kFirst = kRows - 1;
    Backlog backlog(1, kRows);
    backlog.reserve(0, kRows);
    for (uint32_t row = 0; row < 8; ++row)
        backlog.push_back(0, row);
    for (uint32_t row = 0; row < 8; ++row)
        backlog.remove(0, row);
    backlog.push_back(0, kFirst);
    const uint64_t before = backlog.seated_anew();
    for (uint32_t row = 0; row < Backlog::kGap; ++row) {
        backlog.forget_seat(0, 7 - row % 8 + row / 8 * 8);
        backlog.insert_before(0, 7 - row % 8 + row / 8 * 8, kFirst);
    }
    EXPECT_EQ(backlog.seated_anew(), before);
    EXPECT_EQ(backlog.ahead(0, kFirst), Backlog::kGap);
    EXPECT_EQ(backlog.missing_seat(0), kNoRow);
}

// Behind a takeover: every second claim is being confirmed when the list is made, and comes back.
TEST(Backlog, KeepsASeatForEachThatDoesNotWaitAndComesBack) {
    constexpr uint32_t kRows = 1'000;
    Backlog backlog(1, kRows);
    backlog.reserve(0, kRows);
    for (uint32_t row = 0; row < kRows; ++row)
        row % 2 == 0 ? backlog.keep_seat(0, row) : backlog.push_back(0, row);
    const uint64_t before = backlog.seated_anew();
    for (uint32_t row = kRows; row != 0; row -= 2)
        backlog.insert_before(0, row - 2, row - 1);
    EXPECT_EQ(backlog.seated_anew(), before);
    EXPECT_EQ(backlog.ahead(0, 998), 998U);
    EXPECT_EQ(backlog.missing_seat(0), kNoRow);
    EXPECT_EQ(backlog.taken(0), kRows);
}

// Arrivals, departures from anywhere and returns to the old place, against a vector in order.
TEST(Backlog, AgreesWithAListUnderRandomChanges) {
    constexpr uint32_t kRows = 200;
    Backlog backlog(1, kRows);
    std::vector<uint32_t> order;
    std::vector<uint32_t> gone;
    for (uint32_t row = kRows; row-- != 0;)
        gone.push_back(row);
    uint64_t seed = 88172645463325252ULL;
    const auto below = [&](size_t bound) {
        seed ^= seed << 13U;
        seed ^= seed >> 7U;
        seed ^= seed << 17U;
        return static_cast<size_t>(seed % bound);
    };
    for (int step = 0; step < 20'000; ++step) {
        const bool come = order.empty() || (!gone.empty() && below(2) == 0);
        if (come) {
            const uint32_t row = gone.back();
            gone.pop_back();
            const size_t place = below(3) != 0 ? order.size() : below(order.size() + 1);
            backlog.insert_before(0, row, place == order.size() ? kNoRow : order[place]);
            order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), row);
        } else {
            const size_t place = below(2) == 0 ? 0 : below(order.size());
            backlog.remove(0, order[place]);
            gone.push_back(order[place]);
            order.erase(order.begin() + static_cast<std::ptrdiff_t>(place));
        }
        ASSERT_EQ(backlog.missing_seat(0), kNoRow) << step;
        ASSERT_EQ(backlog.taken(0), order.size()) << step;
        if (order.empty()) continue;
        const size_t asked = below(order.size());
        ASSERT_EQ(backlog.ahead(0, order[asked]), asked) << step;
    }
}

}  // namespace
}  // namespace dibs::core
