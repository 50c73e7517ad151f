// tests/broker/admission/patience_test.cpp -- who is read in small bites, and who is not.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/patience.hpp"

#include <gtest/gtest.h>

#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::Op;
using shm::Reason;

TEST(PatienceTest, EndsWithMostOfWhatATurnReadIsRefused) {
    Patience patience(2);
    const auto turn = [&](uint64_t entries, uint32_t refused) {
        for (uint32_t i = 0; i < refused; ++i)
            patience.answered(1, Reason::kMalformed);
        patience.settle(1, entries);
        return patience.budget(1);
    };
    EXPECT_EQ(patience.budget(1), 64U);
    EXPECT_EQ(turn(64, 32), 64U);  // half of it is not most of it
    EXPECT_EQ(turn(1, 1), 16U);
    EXPECT_FALSE(patience.shuns(1));  // one refusal makes nobody wait
    EXPECT_EQ(turn(1, 0), 32U);
    EXPECT_EQ(turn(1, 0), 64U);
    EXPECT_EQ(turn(64, 33), 16U);
    EXPECT_EQ(turn(16, 16), 4U);
    EXPECT_TRUE(patience.shuns(1));
    EXPECT_EQ(turn(4, 4), 1U);
    EXPECT_EQ(turn(1, 1), 1U);
    EXPECT_EQ(patience.shunned(), 1U);
    EXPECT_EQ(turn(1, 0), 2U);
    EXPECT_EQ(turn(2, 1), 4U);
    EXPECT_EQ(turn(4, 0), 8U);
    EXPECT_EQ(patience.shunned(), 0U);
    EXPECT_EQ(patience.budget(0), 64U);
}

TEST(PatienceTest, DoesNotEndWithWhatAnybodyMayMeet) {
    Patience patience(1);
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
            patience.answered(0, reason);
            patience.settle(0, 1);
        }
        EXPECT_EQ(patience.budget(0), 64U) << static_cast<int>(reason);
    }
}

// A slot is freed while its worker confirms: its word is answered "state", and it made no mistake.
TEST(PatienceTest, DoesNotEndWithWhatAWorkerMeets) {
    Patience patience(2);
    for (const Reason reason : {Reason::kState, Reason::kStale, Reason::kNotFound}) {
        for (const uint32_t row : {0U, 1U}) {
            patience.answered(row, reason, row == 1);
            patience.settle(row, 1);
        }
    }
    EXPECT_TRUE(patience.shuns(0));
    EXPECT_EQ(patience.budget(1), Patience::kMost);
}

TEST(PatienceTest, IsAnothersWithTheNextSessionOfItsRow) {
    Patience patience(1);
    for (int turn = 0; turn < 4; ++turn) {
        patience.answered(0, Reason::kMalformed);
        patience.settle(0, 1);
    }
    ASSERT_EQ(patience.shunned(), 1U);
    patience.answered(0, Reason::kMalformed);
    patience.forget(0);
    EXPECT_EQ(patience.shunned(), 0U);
    patience.settle(0, 1);
    EXPECT_EQ(patience.budget(0), 64U);
}

// What a turn reads of a session, and what it is told, is what its patience is made of.
TEST(PatienceTest, IsThatOfWholeTurns) {
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
    EXPECT_EQ(bench.patience.budget(session.row), 16U);
    read(Op::kRelease, 40);
    EXPECT_EQ(bench.patience.budget(session.row), 4U);
    EXPECT_EQ(session.consumed, 26U);
    read(Op::kNop, 0);
    EXPECT_EQ(session.consumed, 30U);
    EXPECT_EQ(bench.patience.budget(session.row), 1U);
    while (session.consumed < 50)  // the rest of the releases
        bench.turn();
    read(Op::kNop, 1);
    EXPECT_EQ(bench.patience.budget(session.row), 2U);
    read(Op::kNop, 2);
    EXPECT_EQ(bench.patience.budget(session.row), 4U);
}

}  // namespace
}  // namespace dibs::test
