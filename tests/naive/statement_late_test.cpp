// tests/naive/statement_late_test.cpp -- the same of confirmations that come too late.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/naive/doctored_turns.hpp"

namespace dibs::naive {

using core::DecisionKind;
using shm::Reason;
using Word = core::WorkerWord::Kind;

class StatementLateTest : public DoctoredTurns {
  protected:
    // In the turn in which its claim's deadline has passed.
    void confirm_after_the_deadline() {
        begin();
        announce();
        claim(5);
        turn(1006);
        say(Word::kProtect, 0);
        play();
        was(step(), Word::kConfirm);
    }
    // Of a slot that its claim has let go, in a turn of its own.
    void confirm_after_the_claim() {
        begin();
        announce();
        claim();
        turn(1001);
        cancel(1);
        turn(1002);
        say(Word::kProtect, 0);
        play();
        was(step(), Word::kConfirm);
    }
};

TEST_F(StatementLateTest, S0_22_AConfirmationAfterTheDeadlineIsTaken) {
    confirm_after_the_deadline();
    EXPECT_EQ(judged(), "");
    line(DecisionKind::kResult).reason = Reason::kState;
    EXPECT_EQ(broken(), "S0.22");
}

TEST_F(StatementLateTest, S0_22_AndGrantsNothing) {
    confirm_after_the_deadline();
    DecisionLine grant;
    grant.kind = DecisionKind::kGrant;
    grant.session = 100;
    grant.slots = {0};
    rename(grant, 1);
    tell(grant);
    EXPECT_EQ(broken(), "S0.22");
}

TEST_F(StatementLateTest, S0_40_ItsAnswerIsToldToNobody) {
    confirm_after_the_deadline();
    DecisionLine answer;
    answer.kind = DecisionKind::kAnswer;
    answer.session = 100;
    tell(answer);
    EXPECT_EQ(broken(), "S0.40");
}

TEST_F(StatementLateTest, S0_40_WhereAReleaseIsReadyItsSlotIsNotRevoked) {
    config().release_is_ready = true;
    confirm_after_the_deadline();
    EXPECT_EQ(broken(), "S0.40");
    drop(DecisionKind::kRevoke);
    last().pools[0].idle = 1;
    EXPECT_EQ(judged(), "");
}

TEST_F(StatementLateTest, S0_40_WhatIsConfirmedAfterItsReservationIsFreeAtOnce) {
    config().release_is_ready = true;
    begin();
    announce();
    claim();
    turn(1010);
    turn(1011);
    say(Word::kReady, 0);
    const size_t word = step();
    play();
    was(word, Word::kConfirm);
    EXPECT_EQ(judged(), "");
    drop(DecisionKind::kAssign);
    EXPECT_EQ(broken(), "S0.40");
}

TEST_F(StatementLateTest, S0_40_OrItsWorkerIsToldToCleanIt) {
    begin();
    announce();
    claim();
    turn(1010);
    turn(1011);
    say(Word::kConfirm, 0);
    play();
    drop(DecisionKind::kRevoke);
    EXPECT_EQ(broken(), "S0.40");
}

TEST_F(StatementLateTest, S0_40_AConfirmationAfterTheClaimsEndIsTaken) {
    confirm_after_the_claim();
    EXPECT_EQ(judged(), "");
    line(DecisionKind::kResult).reason = Reason::kState;
    EXPECT_EQ(broken(), "S0.40");
}

TEST_F(StatementLateTest, S0_40_AndFreesItsSlotWhereAReleaseIsReady) {
    config().release_is_ready = true;
    confirm_after_the_claim();
    EXPECT_EQ(broken(), "S0.28");
    last().pools[0].idle = 1;
    EXPECT_EQ(judged(), "");
}

TEST_F(StatementLateTest, S0_40_ItsWorkerIsToldOnce) {
    confirm_after_the_claim();
    DecisionLine revoke;
    revoke.kind = DecisionKind::kRevoke;
    tell(revoke);
    EXPECT_EQ(broken(), "S0.40");
}

TEST_F(StatementLateTest, S0_23_WhatNobodyHasAskedForIsNotConfirmed) {
    begin();
    announce();
    claim();
    turn(1001);
    cancel(1);
    turn(1002);
    say(Word::kProtect, 0);
    const size_t first = step();
    say(Word::kProtect, 0);
    play();
    was(first, Word::kConfirm);
    EXPECT_EQ(judged(), "");
    was(step(), Word::kConfirm);
    EXPECT_EQ(broken(), "S0.23");
}

}  // namespace dibs::naive
