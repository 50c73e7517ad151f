// tests/broker/text/log_throttle_test.cpp -- no user fills the log, and what is left out is
// counted.
// SPDX-License-Identifier: Apache-2.0
#include "broker/text/log_throttle.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace dibs {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

uint64_t admitted(LogThrottle& throttle, uint32_t uid, const char* place, uint64_t now_ns) {
    uint64_t count = 0;
    for (int i = 0; i < 1000; ++i)
        count += throttle.admit(uid, place, now_ns).has_value() ? 1 : 0;
    return count;
}

TEST(LogThrottle, HasSomeLinesAtOnceAndOneASecond) {
    LogThrottle throttle;
    EXPECT_EQ(admitted(throttle, 1000, "refused", 5 * kSecond), 10U);
    EXPECT_EQ(admitted(throttle, 1000, "refused", 5 * kSecond + 1), 0U);
    EXPECT_EQ(throttle.admit(1000, "refused", 6 * kSecond), std::optional<uint64_t>(1990));
    EXPECT_EQ(throttle.admit(1000, "refused", 6 * kSecond), std::nullopt);
    EXPECT_EQ(throttle.admit(1000, "refused", 7 * kSecond), std::optional<uint64_t>(1));
    EXPECT_EQ(admitted(throttle, 1000, "refused", 1000 * kSecond), 10U);
}

TEST(LogThrottle, TellsUsersAndPlacesApart) {
    LogThrottle throttle;
    EXPECT_EQ(admitted(throttle, 1000, "refused", kSecond), 10U);
    EXPECT_EQ(admitted(throttle, 1001, "refused", kSecond), 10U);
    EXPECT_EQ(admitted(throttle, 1000, "killed", kSecond), 10U);
}

TEST(LogThrottle, BoundsManyUsersTogether) {
    LogThrottle throttle;
    uint64_t count = 0;
    for (uint32_t uid = 0; uid < 10'000; ++uid)
        count += throttle.admit(uid, "refused", kSecond).has_value() ? 1 : 0;
    EXPECT_EQ(count, LogThrottle::kSourcesMax + LogThrottle::kLinesAtOnce);
    EXPECT_EQ(admitted(throttle, 20'000, "refused", 100 * kSecond), 10U);
}

}  // namespace
}  // namespace dibs
