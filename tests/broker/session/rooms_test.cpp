// tests/broker/session/rooms_test.cpp -- runs of lines are taken and freed.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/rooms.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace dibs {
namespace {

TEST(Rooms, TakesRunsOneAfterTheOther) {
    Rooms rooms(128);
    EXPECT_EQ(rooms.take(1), 0U);
    EXPECT_EQ(rooms.take(100), 1U);
    EXPECT_EQ(rooms.take(27), 101U);
    EXPECT_EQ(rooms.take(1), shm::kNoRow);
    EXPECT_EQ(rooms.lines_free(), 0U);
}

TEST(Rooms, TakesNothingForNothingOrForTooMuch) {
    Rooms rooms(64);
    EXPECT_EQ(rooms.take(0), shm::kNoRow);
    EXPECT_EQ(rooms.take(65), shm::kNoRow);
    EXPECT_EQ(rooms.take(64), 0U);
}

TEST(Rooms, NeedsARunAndNotOnlyEnoughLines) {
    Rooms rooms(64);
    EXPECT_EQ(rooms.take(30), 0U);
    EXPECT_EQ(rooms.take(4), 30U);
    EXPECT_EQ(rooms.take(30), 34U);
    rooms.free(0, 30);
    rooms.free(34, 30);
    EXPECT_EQ(rooms.take(31), shm::kNoRow);
    rooms.free(30, 4);
    EXPECT_EQ(rooms.take(64), 0U);
}

TEST(Rooms, FindsARunAcrossWords) {
    Rooms rooms(256);
    EXPECT_EQ(rooms.take(60), 0U);
    EXPECT_EQ(rooms.take(100), 60U);
    EXPECT_EQ(rooms.take(96), 160U);
    rooms.free(60, 100);
    EXPECT_EQ(rooms.take(100), 60U);
}

TEST(Rooms, LetsAFreedRoomRestAsLongAsThereAreOthers) {
    Rooms rooms(64);
    EXPECT_EQ(rooms.take(1), 0U);
    rooms.free(0, 1);
    EXPECT_EQ(rooms.take(1), 1U);
}

TEST(Rooms, NeverOverlapAndNeverLeak) {
    std::mt19937 random(7);
    Rooms rooms(256);
    std::vector<int> owner(256, 0);
    std::vector<std::pair<uint32_t, uint32_t>> taken;
    for (int step = 1; step < 20000; ++step) {
        if (random() % 2 == 0 && !taken.empty()) {
            const size_t at = random() % taken.size();
            const auto [first, count] = taken[at];
            for (uint32_t line = first; line < first + count; ++line)
                owner[line] = 0;
            rooms.free(first, count);
            taken[at] = taken.back();
            taken.pop_back();
            continue;
        }
        const uint32_t count = 1 + static_cast<uint32_t>(random() % 70);
        const uint32_t first = rooms.take(count);
        if (first == shm::kNoRow) {
            uint32_t run = 0;
            for (const int line : owner) {
                run = line == 0 ? run + 1 : 0;
                ASSERT_LT(run, count);
            }
            continue;
        }
        for (uint32_t line = first; line < first + count; ++line) {
            ASSERT_EQ(owner[line], 0);
            owner[line] = step;
        }
        taken.emplace_back(first, count);
    }
    for (const auto& [first, count] : taken)
        rooms.free(first, count);
    EXPECT_EQ(rooms.lines_free(), 256U);
    EXPECT_EQ(rooms.take(256), 0U);
}

}  // namespace
}  // namespace dibs
