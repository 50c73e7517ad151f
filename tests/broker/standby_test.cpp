// tests/broker/standby_test.cpp -- when the next broker is started ahead, and when not.
// SPDX-License-Identifier: Apache-2.0
#include "broker/standby.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dibs {
namespace {

constexpr uint64_t kNow = 1'000'000'000'000;
constexpr uint64_t kSecond = 1'000'000'000;

const OwnProgram kNone{"/nonexistent/dibsd", {}};

TEST(StandbyTest, IsDueAMomentAfterABrokerServes) {
    Standby standby;
    EXPECT_EQ(standby.due_ns(), shm::kNever);
    standby.plan(kNow);
    EXPECT_GT(standby.due_ns(), kNow);
    EXPECT_LT(standby.due_ns(), kNow + kSecond);
    standby.cancel();
    EXPECT_EQ(standby.due_ns(), shm::kNever);
}

TEST(StandbyTest, IsTriedAgainEverMoreSeldom) {
    Standby standby;
    standby.plan(kNow);
    uint64_t pause = kSecond;
    for (int attempt = 0; attempt < 10; ++attempt) {
        standby.start(kNone, true, Process(), kNow);
        EXPECT_EQ(standby.due_ns(), kNow + pause) << attempt;
        pause = std::min(2 * pause, 64 * kSecond);
    }
    EXPECT_EQ(standby.pidfd(), -1);
    standby.plan(kNow);  // another broker serves
    standby.start(kNone, true, Process(), kNow);
    EXPECT_EQ(standby.due_ns(), kNow + kSecond);
}

TEST(StandbyTest, IsNotThereToBeTaken) {
    Standby standby;
    standby.plan(kNow);
    EXPECT_FALSE(standby.take(kNone, true));
    EXPECT_EQ(standby.due_ns(), shm::kNever);  // whoever is started instead begins anew
    standby.let_go();
}

}  // namespace
}  // namespace dibs
