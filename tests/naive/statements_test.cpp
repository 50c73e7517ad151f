// tests/naive/statements_test.cpp -- the judge accepts what the core decides, and names the
// statement that is broken when something else is put into it: S0.1 to S0.20.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/statements.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/naive/doctored_turns.hpp"

namespace dibs::naive {

using core::DecisionKind;
using shm::Reason;
using Word = core::WorkerWord::Kind;

class StatementsTest : public DoctoredTurns {};

TEST_F(StatementsTest, S0_1_AnAnswerGoesToItsClaimsChannel) {
    counted(1);
    claim();
    play();
    line(DecisionKind::kGrant).tag = 7;
    EXPECT_EQ(broken(), "S0.1");
}

TEST_F(StatementsTest, S0_2_AClaimExpiresOnlyAfterItsDeadline) {
    begin();
    claim(5);
    turn(1006);
    play();
    last().now = 1005;
    EXPECT_EQ(broken(), "S0.2");
}

TEST_F(StatementsTest, S0_3_OnlyAFullBacklogTurnsAway) {
    config().backlog_max = 1;
    begin();
    claim();
    claim();
    play();
    config().backlog_max = 2;
    EXPECT_EQ(broken(), "S0.3");
}

TEST_F(StatementsTest, S0_3_AFullBacklogTakesNoMore) {
    config().backlog_max = 2;
    begin();
    claim();
    claim();
    play();
    config().backlog_max = 1;
    EXPECT_EQ(broken(), "S0.3");
}

TEST_F(StatementsTest, S0_4_TheOldestWaitCountsFromTheArrival) {
    begin();
    claim();
    turn(1007);
    claim();
    play();
    line(DecisionKind::kDemand).user_data = 0;
    EXPECT_EQ(broken(), "S0.4");
}

TEST_F(StatementsTest, S0_4_AndFromTheEnqueueTimeThatTheClaimBrings) {
    begin();
    claim();
    play();
    journal_.steps[step()].terms.enqueued_ns = 900;
    EXPECT_EQ(broken(), "S0.4");
}

TEST_F(StatementsTest, S0_5_TheCountIsNeverBelowTheTruth) {
    begin();
    claim();
    play();
    last().pools[0].waiting = 0;
    EXPECT_EQ(broken(), "S0.5");
}

TEST_F(StatementsTest, S0_6_AClaimEndsOnce) {
    counted(1);
    claim();
    play();
    turns_.push_back(last());
    turns_.back().heard.clear();
    EXPECT_EQ(broken(), "S0.6");
}

TEST_F(StatementsTest, S0_7_TheFirstClaimFindsThePoolsSlots) {
    counted(1);
    claim();
    play();
    drop(DecisionKind::kGrant);
    EXPECT_EQ(broken(), "S0.7");
}

TEST_F(StatementsTest, S0_8_ANewClaimGetsAFreeSlot) {
    counted(2);
    claim();
    turn(1001);
    claim();
    play();
    drop(DecisionKind::kGrant);
    EXPECT_EQ(broken(), "S0.8");
}

TEST_F(StatementsTest, S0_9_ANewClaimDoesNotOvertake) {
    counted(1);
    claim();
    claim();
    turn(1001);
    release(1);
    claim();
    play();
    rename(line(DecisionKind::kGrant), 3);
    EXPECT_EQ(broken(), "S0.9");
}

TEST_F(StatementsTest, S0_10_ClaimsThatWaitAreServedInOrder) {
    counted(1);
    claim();
    claim();
    claim();
    turn(1001);
    release(1);
    play();
    rename(line(DecisionKind::kGrant), 3);
    EXPECT_EQ(broken(), "S0.10");
}

TEST_F(StatementsTest, S0_11_AFreedSlotReachesTheHeadInItsTurn) {
    counted(1);
    claim();
    claim();
    turn(1001);
    release(1);
    play();
    drop(DecisionKind::kGrant);
    EXPECT_EQ(broken(), "S0.11");
}

TEST_F(StatementsTest, S0_12_AClaimIsAnsweredAfterItsDeadline) {
    begin();
    claim(5);
    turn(1006);
    play();
    drop(DecisionKind::kEnd);
    EXPECT_EQ(broken(), "S0.12");
}

TEST_F(StatementsTest, S0_13_ATimerStandsAtTheDeadline) {
    begin();
    claim(5);
    play();
    EXPECT_EQ(last().next_due, 1006U);
    last().next_due = 1300;
    EXPECT_EQ(broken(), "S0.13");
}

TEST_F(StatementsTest, S0_14_SlotsAreTakenInTheOrderInWhichTheyBecameIdle) {
    counted(2);
    claim();
    turn(1001);
    release(1);
    turn(1002);
    claim();
    play();
    EXPECT_EQ(line(DecisionKind::kGrant).slots, std::vector<uint32_t>{1});
    line(DecisionKind::kGrant).slots = {0};
    EXPECT_EQ(broken(), "S0.14");
}

TEST_F(StatementsTest, S0_14_AProtectedSlotIsNotTaken) {
    begin();
    announce().announce.is_protected = true;
    announce();
    claim();
    play();
    line(DecisionKind::kAssign).slot = 0;
    EXPECT_EQ(broken(), "S0.14");
}

TEST_F(StatementsTest, S0_15_ASlotWithoutTheRequiredLabelIsNotTaken) {
    journal_.pools[0].required_label = "gpu";
    begin();
    announce();
    announce().labels = {"gpu"};
    claim();
    play();
    line(DecisionKind::kAssign).slot = 0;
    EXPECT_EQ(broken(), "S0.15");
}

TEST_F(StatementsTest, S0_15_ASlotThatIsGoneIsNotTaken) {
    begin();
    announce();
    say(Word::kWithdraw, 0);
    announce();
    claim();
    play();
    line(DecisionKind::kAssign).slot = 0;
    EXPECT_EQ(broken(), "S0.15");
}

TEST_F(StatementsTest, S0_16_ASlotIsAdmittedAgain) {
    begin();
    announce();
    say(Word::kProtect, 0);
    claim();
    turn(1001);
    say(Word::kUnprotect, 0);
    play();
    drop(DecisionKind::kAssign);
    EXPECT_EQ(broken(), "S0.16");
}

TEST_F(StatementsTest, S0_17_ASlotIsReservedUntilItsExpiry) {
    begin();
    announce();
    claim();
    turn(1004);
    refuse(0, true);
    turn(1010);
    play();
    last().now = 1009;
    EXPECT_EQ(broken(), "S0.17");
}

TEST_F(StatementsTest, S0_17_AndNotAtIt) {
    begin();
    announce();
    claim();
    turn(1010);
    play();
    last().pools[0].waiting = 0;
    last().pools[0].confirming = 1;
    EXPECT_EQ(broken(), "S0.17");
}

TEST_F(StatementsTest, S0_18_WhatIsOverIsSweptBeforeAnythingIsChosen) {
    begin();
    announce();
    claim();
    turn(1004);
    refuse(0, true);
    turn(1010);
    play();
    drop(DecisionKind::kAssign);
    EXPECT_EQ(broken(), "S0.18");
}

TEST_F(StatementsTest, S0_18_AndBeforeWhatIsSaidInItsTurnIsAdmitted) {
    begin();
    announce();
    announce(false);
    claim();
    turn(1004);
    refuse(0, true);
    cancel(1);
    turn(1010);
    turn(1011);
    say(Word::kReady, 1);
    claim();
    play();
    turns_.erase(turns_.begin() + 2);  // the slot is swept in the turn at 1011, too
    EXPECT_EQ(judged(), "");
    EXPECT_EQ(line(DecisionKind::kAssign).slot, 0U);
    line(DecisionKind::kAssign).slot = 1;
    EXPECT_EQ(broken(), "S0.18");
}

TEST_F(StatementsTest, S0_18_WhatIsRefusedWhenItIsOverIsSweptInItsTurn) {
    begin();
    announce();
    claim();
    turn(1010);
    refuse(0, true);
    play();
    drop(DecisionKind::kAssign);
    EXPECT_EQ(broken(), "S0.18");
}

TEST_F(StatementsTest, S0_18_ATimerStandsAtTheSweep) {
    begin();
    announce();
    claim();
    turn(1004);
    refuse(0, true);
    play();
    EXPECT_EQ(last().next_due, 1010U);
    last().next_due = 1300;
    EXPECT_EQ(broken(), "S0.18");
}

TEST_F(StatementsTest, S0_19_AReservationsTimeCountsFromItsBeginning) {
    begin();
    claim();
    turn(1008);
    announce();
    turn(1012);
    play();
    DecisionLine revoke;
    revoke.kind = DecisionKind::kRevoke;
    revoke.pool = 0;
    revoke.slot = 0;
    last().lines.push_back(revoke);
    EXPECT_EQ(broken(), "S0.19");
}

TEST_F(StatementsTest, S0_20_AWordOfAnotherGenerationSaysNothing) {
    begin();
    announce();
    claim();
    turn(1001);
    say(Word::kConfirm, 0).distance = -1;
    play();
    EXPECT_EQ(line(DecisionKind::kResult).reason, Reason::kStale);
    line(DecisionKind::kResult).reason = Reason::kOk;
    EXPECT_EQ(broken(), "S0.20");
}

TEST_F(StatementsTest, S0_20_ASlotAnnouncedByAReservedNameIsFree) {
    begin();
    announce().name = "worker";
    claim();
    turn(1001);
    refuse(0, true);
    say(Word::kWithdraw, 0);
    announce().name = "worker";
    play();
    drop(DecisionKind::kAssign);
    EXPECT_EQ(broken(), "S0.20");
}

}  // namespace dibs::naive
