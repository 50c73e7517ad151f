// tests/broker/admission/penalty_test.cpp -- who sits out, for how long, and who comes back.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/penalty.hpp"

#include <gtest/gtest.h>

#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

constexpr core::TimeNs kPause = 100;

struct PenaltyTest : testing::Test {
    PenaltyTest() {
        penalty.set_pause(kPause);
        for (Session* session : {&one, &other})
            bench.sessions.poll(session);
    }

    Bench bench;
    Session& one = bench.open();
    Session& other = bench.open();
    Penalty penalty{bench.sessions, 4};
};

TEST_F(PenaltyTest, LastsUntilThePauseIsOver) {
    EXPECT_EQ(penalty.next_due(), shm::kNever);
    penalty.begin(one, 1000);
    EXPECT_FALSE(one.polled);
    EXPECT_TRUE(other.polled);
    EXPECT_EQ(penalty.next_due(), 1000 + kPause);
    penalty.end_due(1000 + kPause - 1);
    EXPECT_FALSE(one.polled);
    one.down->cpu.store(~0U);
    penalty.end_due(1000 + kPause);
    EXPECT_TRUE(one.polled);
    EXPECT_FALSE(one.sits_out);
    EXPECT_NE(one.down->cpu.load(), ~0U);  // else it would spin for a broker on its own CPU
    EXPECT_EQ(penalty.next_due(), shm::kNever);
}

TEST_F(PenaltyTest, IsLongerTheMoreOfOneUserSitOut) {
    penalty.begin(one, 1000);
    penalty.begin(other, 1010);
    EXPECT_EQ(other.sits_until, 1010 + 2 * kPause);
    EXPECT_EQ(penalty.next_due(), 1000 + kPause);
    Session& stranger = bench.open({}, 61002);
    penalty.begin(stranger, 1020);  // the others do not count for it, nor it for them
    EXPECT_EQ(stranger.sits_until, 1020 + kPause);
    penalty.forget(stranger);
    penalty.end_due(1000 + kPause);
    EXPECT_TRUE(one.polled);
    EXPECT_FALSE(other.polled);
    EXPECT_EQ(penalty.next_due(), 1010 + 2 * kPause);
}

TEST_F(PenaltyTest, IsBoundedThoughManyShareIt) {
    penalty.set_pause(Penalty::kLongest / 2 + 1);
    penalty.begin(one, 1000);
    penalty.begin(other, 1000);
    EXPECT_EQ(other.sits_until, 1000 + Penalty::kLongest);
    penalty.set_pause(3 * Penalty::kLongest);
    penalty.end_due(1000);
    penalty.begin(one, 1000);
    penalty.begin(other, 1000);
    EXPECT_EQ(other.sits_until, 1000 + 3 * Penalty::kLongest);
}

TEST_F(PenaltyTest, EndsWhenItsLengthIsChanged) {
    penalty.begin(one, 1000);
    penalty.set_pause(0);
    EXPECT_EQ(penalty.next_due(), 0U);
    penalty.end_due(1001);
    EXPECT_TRUE(one.polled);
    EXPECT_EQ(penalty.next_due(), shm::kNever);
}

TEST_F(PenaltyTest, IsNotBegunTwice) {
    penalty.begin(one, 1000);
    penalty.begin(one, 1050);
    EXPECT_EQ(one.sits_until, 1000 + kPause);
}

TEST_F(PenaltyTest, OfNoLengthIsNone) {
    penalty.set_pause(0);
    penalty.begin(one, 1000);
    EXPECT_TRUE(one.polled);
    EXPECT_EQ(penalty.next_due(), shm::kNever);
}

TEST_F(PenaltyTest, BringsNobodyBackWhoHasEnded) {
    penalty.begin(one, 1000);
    penalty.begin(other, 1000);
    bench.sessions.end(&one, shm::Reason::kMalformed);
    bench.sessions.drain(&other);
    penalty.end_due(1000 + 2 * kPause);
    EXPECT_FALSE(one.polled);
    EXPECT_FALSE(other.polled);
    EXPECT_EQ(penalty.next_due(), shm::kNever);
}

TEST_F(PenaltyTest, ForgetsWhoGoes) {
    penalty.begin(one, 1000);
    penalty.begin(other, 1000);
    penalty.forget(one);
    EXPECT_EQ(penalty.next_due(), 1000 + 2 * kPause);
    penalty.forget(other);
    EXPECT_EQ(penalty.next_due(), shm::kNever);
}

}  // namespace
}  // namespace dibs::test
