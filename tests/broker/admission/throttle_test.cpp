// tests/broker/admission/throttle_test.cpp -- which sessions are slowed down, and for how long.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/throttle.hpp"

#include <gtest/gtest.h>

#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::Op;
using shm::Reason;

TEST(ReadBudgetTest, EndsWithMostOfWhatATurnReadIsRefused) {
    ReadBudget read_budget(2);
    const auto turn = [&](uint64_t entries, uint32_t refused) {
        for (uint32_t i = 0; i < refused; ++i)
            read_budget.answered(1, Reason::kMalformed);
        read_budget.settle(1, entries);
        return read_budget.budget(1);
    };
    EXPECT_EQ(read_budget.budget(1), 64U);
    EXPECT_EQ(turn(64, 32), 64U);  // half of it is not most of it
    EXPECT_EQ(turn(1, 1), 16U);
    EXPECT_FALSE(read_budget.throttles(1));  // one refusal makes nobody wait
    EXPECT_EQ(turn(1, 0), 32U);
    EXPECT_EQ(turn(1, 0), 64U);
    EXPECT_EQ(turn(64, 33), 16U);
    EXPECT_EQ(turn(16, 16), 4U);
    EXPECT_TRUE(read_budget.throttles(1));
    EXPECT_EQ(turn(4, 4), 1U);
    EXPECT_EQ(turn(1, 1), 1U);
    EXPECT_EQ(read_budget.throttled(), 1U);
    EXPECT_EQ(turn(1, 0), 2U);
    EXPECT_EQ(turn(2, 1), 4U);
    EXPECT_EQ(turn(4, 0), 8U);
    EXPECT_EQ(read_budget.throttled(), 0U);
    EXPECT_EQ(read_budget.budget(0), 64U);
}

TEST(ReadBudgetTest, DoesNotEndWithWhatAnybodyMayMeet) {
    ReadBudget read_budget(1);
    for (const Reason reason : {Reason::kOk,
                                Reason::kAlreadyEnded,
                                Reason::kBusy,
                                Reason::kCold,
                                Reason::kBacklogFull,
                                Reason::kArenaFull,
                                Reason::kDraining,
                                Reason::kDuplicate,
                                Reason::kNoRoom,
                                Reason::kTablesFull}) {
        for (int turn = 0; turn < 8; ++turn) {
            read_budget.answered(0, reason);
            read_budget.settle(0, 1);
        }
        EXPECT_EQ(read_budget.budget(0), 64U) << static_cast<int>(reason);
    }
}

// A slot is freed while its worker confirms: its word is answered "state", and it made no mistake.
TEST(ReadBudgetTest, DoesNotEndWithWhatAWorkerMeets) {
    ReadBudget read_budget(2);
    for (const Reason reason : {Reason::kState, Reason::kStale, Reason::kNotFound}) {
        for (const uint32_t row : {0U, 1U}) {
            read_budget.answered(row, reason, row == 1);
            read_budget.settle(row, 1);
        }
    }
    EXPECT_TRUE(read_budget.throttles(0));
    EXPECT_EQ(read_budget.budget(1), ReadBudget::kMost);
}

TEST(ReadBudgetTest, IsAnothersWithTheNextSessionOfItsRow) {
    ReadBudget read_budget(1);
    for (int turn = 0; turn < 4; ++turn) {
        read_budget.answered(0, Reason::kMalformed);
        read_budget.settle(0, 1);
    }
    ASSERT_EQ(read_budget.throttled(), 1U);
    read_budget.answered(0, Reason::kMalformed);
    read_budget.forget(0);
    EXPECT_EQ(read_budget.throttled(), 0U);
    read_budget.settle(0, 1);
    EXPECT_EQ(read_budget.budget(0), 64U);
}

// What a turn reads of a session, and what it is told, is what its read_budget is made of.
TEST(ReadBudgetTest, IsThatOfWholeTurns) {
    Bench bench;
    bench.pool({.name = "tokens", .slots = 2});
    Session& session = bench.open();
    const auto read = [&](Op op, int entries) {
        for (int i = 0; i < entries; ++i)
            bench.push(session, word(op, 7, 7));
        bench.turn();
        while (bench.next(session)) {
        }
        bench.release_read(session);
    };
    read(Op::kRelease, 10);  // of no lease
    EXPECT_EQ(bench.read_budget.budget(session.row), 16U);
    read(Op::kRelease, 40);
    EXPECT_EQ(bench.read_budget.budget(session.row), 4U);
    EXPECT_EQ(session.consumed, 26U);
    read(Op::kNop, 0);
    EXPECT_EQ(session.consumed, 30U);
    EXPECT_EQ(bench.read_budget.budget(session.row), 1U);
    while (session.consumed < 50)  // the rest of the releases
        bench.turn();
    read(Op::kNop, 1);
    EXPECT_EQ(bench.read_budget.budget(session.row), 2U);
    read(Op::kNop, 2);
    EXPECT_EQ(bench.read_budget.budget(session.row), 4U);
}

constexpr core::TimeNs kPause = 100;

struct ThrottlePauseTest : testing::Test {
    ThrottlePauseTest() {
        throttle_pause.set_pause(kPause);
        for (Session* session : {&one, &other})
            bench.sessions.poll(session);
    }

    Bench bench;
    Session& one = bench.open();
    Session& other = bench.open();
    ThrottlePause throttle_pause{bench.sessions, 4};
};

TEST_F(ThrottlePauseTest, LastsUntilThePauseIsOver) {
    EXPECT_EQ(throttle_pause.next_due(), shm::kNever);
    throttle_pause.begin(one, 1000);
    EXPECT_FALSE(one.polled);
    EXPECT_TRUE(other.polled);
    EXPECT_EQ(throttle_pause.next_due(), 1000 + kPause);
    throttle_pause.end_due(1000 + kPause - 1);
    EXPECT_FALSE(one.polled);
    one.down->cpu.store(~0U);
    throttle_pause.end_due(1000 + kPause);
    EXPECT_TRUE(one.polled);
    EXPECT_FALSE(one.sits_out);
    EXPECT_NE(one.down->cpu.load(), ~0U);  // else it would spin for a broker on its own CPU
    EXPECT_EQ(throttle_pause.next_due(), shm::kNever);
}

TEST_F(ThrottlePauseTest, IsLongerTheMoreOfOneUserSitOut) {
    throttle_pause.begin(one, 1000);
    throttle_pause.begin(other, 1010);
    EXPECT_EQ(other.sits_until, 1010 + 2 * kPause);
    EXPECT_EQ(throttle_pause.next_due(), 1000 + kPause);
    Session& stranger = bench.open({}, 61002);
    throttle_pause.begin(stranger, 1020);  // the others do not count for it, nor it for them
    EXPECT_EQ(stranger.sits_until, 1020 + kPause);
    throttle_pause.forget(stranger);
    throttle_pause.end_due(1000 + kPause);
    EXPECT_TRUE(one.polled);
    EXPECT_FALSE(other.polled);
    EXPECT_EQ(throttle_pause.next_due(), 1010 + 2 * kPause);
}

TEST_F(ThrottlePauseTest, IsBoundedThoughManyShareIt) {
    throttle_pause.set_pause(ThrottlePause::kLongest / 2 + 1);
    throttle_pause.begin(one, 1000);
    throttle_pause.begin(other, 1000);
    EXPECT_EQ(other.sits_until, 1000 + ThrottlePause::kLongest);
    throttle_pause.set_pause(3 * ThrottlePause::kLongest);
    throttle_pause.end_due(1000);
    throttle_pause.begin(one, 1000);
    throttle_pause.begin(other, 1000);
    EXPECT_EQ(other.sits_until, 1000 + 3 * ThrottlePause::kLongest);
}

TEST_F(ThrottlePauseTest, EndsWhenItsLengthIsChanged) {
    throttle_pause.begin(one, 1000);
    throttle_pause.set_pause(0);
    EXPECT_EQ(throttle_pause.next_due(), 0U);
    throttle_pause.end_due(1001);
    EXPECT_TRUE(one.polled);
    EXPECT_EQ(throttle_pause.next_due(), shm::kNever);
}

TEST_F(ThrottlePauseTest, IsNotBegunTwice) {
    throttle_pause.begin(one, 1000);
    throttle_pause.begin(one, 1050);
    EXPECT_EQ(one.sits_until, 1000 + kPause);
}

TEST_F(ThrottlePauseTest, OfNoLengthIsNone) {
    throttle_pause.set_pause(0);
    throttle_pause.begin(one, 1000);
    EXPECT_TRUE(one.polled);
    EXPECT_EQ(throttle_pause.next_due(), shm::kNever);
}

TEST_F(ThrottlePauseTest, BringsNobodyBackWhoHasEnded) {
    throttle_pause.begin(one, 1000);
    throttle_pause.begin(other, 1000);
    bench.sessions.end(&one, shm::Reason::kMalformed);
    bench.sessions.drain(&other);
    throttle_pause.end_due(1000 + 2 * kPause);
    EXPECT_FALSE(one.polled);
    EXPECT_FALSE(other.polled);
    EXPECT_EQ(throttle_pause.next_due(), shm::kNever);
}

TEST_F(ThrottlePauseTest, ForgetsWhoGoes) {
    throttle_pause.begin(one, 1000);
    throttle_pause.begin(other, 1000);
    throttle_pause.forget(one);
    EXPECT_EQ(throttle_pause.next_due(), 1000 + 2 * kPause);
    throttle_pause.forget(other);
    EXPECT_EQ(throttle_pause.next_due(), shm::kNever);
}

}  // namespace
}  // namespace dibs::test
