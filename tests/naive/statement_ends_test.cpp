// tests/naive/statement_ends_test.cpp -- the same of S0.21 to S0.41.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/naive/doctored_turns.hpp"

namespace dibs::naive {

using core::DecisionKind;
using shm::Outcome;
using shm::Reason;
using Word = core::WorkerWord::Kind;

class StatementEndsTest : public DoctoredTurns {
  protected:
    // The pool's slot was taken again so often as it is recalled, and a second claim waits for it.
    void park_and_recall(uint64_t takes) {
        config().quantum_ns = 1000;
        counted(1);
        claim();
        turn(1001);
        claim();
        turn(1002);
        Step& harvest = put(StepKind::kHarvest);
        harvest.subject = 1;
        harvest.harvest.takes = takes;
        harvest.harvest.parked = true;
        harvest.harvest.recalled = true;
        play();
    }
};

TEST_F(StatementEndsTest, S0_21_NothingIsPolled) {
    begin();
    claim();
    play();
    last().next_due = 1300;
    EXPECT_EQ(broken(), "S0.21");
}

TEST_F(StatementEndsTest, S0_22_SoManyAreUnconfirmedAtMost) {
    begin();
    announce();
    announce();
    claim();
    claim();
    play();
    config().unconfirmed_max = 1;
    EXPECT_EQ(broken(), "S0.22");
}

TEST_F(StatementEndsTest, S0_22_TheDeadlineGoesOnWhileAWorkerConfirms) {
    begin();
    announce();
    claim(5);
    turn(1006);
    play();
    drop(DecisionKind::kEnd);
    drop(DecisionKind::kRevoke);
    EXPECT_EQ(broken(), "S0.22");
}

TEST_F(StatementEndsTest, S0_23_OnlyWhatIsIdleIsTaken) {
    counted(2);
    claim();
    claim();
    play();
    last().lines[1].slots = last().lines[0].slots;
    EXPECT_EQ(broken(), "S0.23");
}

TEST_F(StatementEndsTest, S0_23_TheTransitionRemovesTheProtection) {
    config().release_is_ready = true;
    begin();
    announce();
    claim();
    claim();
    turn(1001);
    say(Word::kUnprotect, 0);
    const size_t word = step();
    say(Word::kConfirm, 0);
    turn(1002);
    release(1);
    play();
    was(word, Word::kProtect);
    EXPECT_EQ(judged(), "");
    drop(DecisionKind::kAssign);
    EXPECT_EQ(broken(), "S0.23");
}

TEST_F(StatementEndsTest, S0_24_ANewGenerationIsFreeAtOnce) {
    config().release_is_ready = true;
    begin();
    announce();
    claim();
    claim();
    turn(1001);
    say(Word::kConfirm, 0);
    turn(1002);
    release(1);
    play();
    drop(DecisionKind::kAssign);
    EXPECT_EQ(broken(), "S0.24");
}

TEST_F(StatementEndsTest, S0_24_AGrantFollowsTheLastConfirmation) {
    begin();
    announce();
    claim();
    turn(1001);
    say(Word::kConfirm, 0);
    play();
    drop(DecisionKind::kGrant);
    EXPECT_EQ(broken(), "S0.24");
}

TEST_F(StatementEndsTest, S0_25_ARetriedClaimKeepsItsPlace) {
    begin();
    announce();
    claim();
    claim();
    turn(1001);
    refuse(0, true);
    turn(1010);
    play();
    rename(line(DecisionKind::kAssign), 2);
    EXPECT_EQ(broken(), "S0.25");
}

TEST_F(StatementEndsTest, S0_26_AClaimFailsWithItsWorkersError) {
    begin();
    announce();
    claim();
    turn(1001);
    refuse(0, false, 5);
    play();
    line(DecisionKind::kEnd).value = 6;
    EXPECT_EQ(broken(), "S0.26");
}

TEST_F(StatementEndsTest, S0_27_NewsOfASlotIsNotLost) {
    begin();
    announce(false);
    claim();
    turn(1001);
    say(Word::kReady, 0);
    play();
    drop(DecisionKind::kAssign);
    EXPECT_EQ(broken(), "S0.27");
}

TEST_F(StatementEndsTest, S0_28_NewsIsNotAheadOfItsState) {
    begin();
    announce(false);
    turn(1001);
    say(Word::kReady, 0);
    play();
    last().pools[0].idle = 0;
    EXPECT_EQ(broken(), "S0.28");
}

TEST_F(StatementEndsTest, S0_29_ADrainAnswersWhoeverWaits) {
    begin();
    claim();
    turn(1001);
    put(StepKind::kDrain);
    play();
    drop(DecisionKind::kEnd);
    drop(DecisionKind::kDrained);
    EXPECT_EQ(broken(), "S0.29");
}

TEST_F(StatementEndsTest, S0_29_ADrainIsToldOnce) {
    begin();
    put(StepKind::kDrain);
    play();
    last().lines.push_back(line(DecisionKind::kDrained));
    EXPECT_EQ(broken(), "S0.29");
}

TEST_F(StatementEndsTest, S0_30_NothingElseStopsThePool) {
    begin();
    claim().claim.timeout_ns = 0;
    play();
    line(DecisionKind::kEnd).reason = Reason::kDraining;
    EXPECT_EQ(broken(), "S0.30");
}

TEST_F(StatementEndsTest, S0_31_ADrainAwaitsWhatConfirms) {
    begin();
    announce();
    claim();
    turn(1001);
    put(StepKind::kDrain);
    play();
    DecisionLine drained;
    drained.kind = DecisionKind::kDrained;
    drained.pool = 0;
    last().lines.push_back(drained);
    EXPECT_EQ(broken(), "S0.31");
}

TEST_F(StatementEndsTest, S0_31_TheEndOfADrainIsTold) {
    begin();
    put(StepKind::kDrain);
    play();
    drop(DecisionKind::kDrained);
    EXPECT_EQ(broken(), "S0.31");
}

TEST_F(StatementEndsTest, S0_32_AnEndHasItsOwnName) {
    begin();
    claim(5);
    turn(1006);
    play();
    line(DecisionKind::kEnd).outcome = Outcome::kCancelled;
    EXPECT_EQ(broken(), "S0.32");
}

TEST_F(StatementEndsTest, S0_24_ARecalledSlotIsGrantedWithAFenceBehindItsTakes) {
    park_and_recall(3);
    EXPECT_EQ(line(DecisionKind::kGrant).fence, 5U);
    line(DecisionKind::kGrant).fence = 4;
    EXPECT_EQ(broken(), "S0.24");
}

TEST_F(StatementEndsTest, S0_11_ARecalledSlotReachesTheHeadInItsTurn) {
    park_and_recall(0);
    drop(DecisionKind::kGrant);
    EXPECT_EQ(broken(), "S0.11");
}

TEST_F(StatementEndsTest, S0_33_TheLastDispatchIsShown) {
    counted(1);
    claim();
    turn(1005);
    play();
    last().pools[0].last_dispatch_ns = 1005;
    EXPECT_EQ(broken(), "S0.33");
}

TEST_F(StatementEndsTest, S0_34_DemandIsPublishedWhenItIsNews) {
    begin();
    turn(1001);
    claim();
    play();
    drop(DecisionKind::kDemand);
    EXPECT_EQ(broken(), "S0.34");
}

TEST_F(StatementEndsTest, S0_34_AndOnlyThen) {
    begin();
    turn(1001);
    play();
    DecisionLine demand;
    demand.kind = DecisionKind::kDemand;
    demand.pool = 0;
    last().lines.push_back(demand);
    EXPECT_EQ(broken(), "S0.34");
}

TEST_F(StatementEndsTest, S0_39_OnlyWhoWouldNotWaitIsBusy) {
    config().when_busy = shm::WhenBusy::kReject;
    begin();
    claim();
    play();
    config().when_busy = shm::WhenBusy::kWait;
    EXPECT_EQ(broken(), "S0.39");
}

TEST_F(StatementEndsTest, S0_40_WhoIsGoneIsGrantedNothing) {
    begin();
    claim();
    turn(1001);
    by(StepKind::kDied, 100);
    play();
    drop(DecisionKind::kEnd);
    EXPECT_EQ(broken(), "S0.40");
}

TEST_F(StatementEndsTest, S0_41_DemandDoesNotDipWhileAClaimMoves) {
    begin();
    announce();
    claim();
    turn(1001);
    refuse(0, true);
    play();
    last().pools[0].waiting = 0;
    EXPECT_EQ(broken(), "S0.41");
}

}  // namespace dibs::naive
