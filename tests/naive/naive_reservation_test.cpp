// tests/naive/naive_reservation_test.cpp -- what becomes of reservations, worked out by hand: swept
// as a turn opens, confirmed too late, promised past the maximum, unmarked by its confirmation.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/naive/naive_core_turns.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Outcome;
using shm::Reason;
using Word = core::WorkerWord::Kind;

// A pool of workers whose reservations last for 5 ns; the first turn is at 1000.
class NaiveReservationTest : public NaiveCoreTurns {
  protected:
    // The wait that the turn publishes.
    uint64_t published_wait() {
        core_.decide();
        uint64_t wait_ns = 0;
        for (const Decision& decision : core_.decisions()) {
            if (decision.kind == DecisionKind::kDemand) wait_ns = decision.id;
        }
        core_.begin_turn(1000);
        return wait_ns;
    }
    void claim_with(uint32_t pool, uint16_t tag, const core::ClaimTerms& terms) {
        core_.apply(core::Claim{.session = holder_, .tag = tag, .pool = pool, .terms = &terms});
    }
    SlotIs state(uint64_t slot) { return core_.model().slots.at(slot).is; }
    // Of the word said last.
    Reason said(Word kind, uint64_t slot, uint32_t round) {
        const size_t before = core_.decisions().size();
        say(kind, slot, round);
        return core_.decisions()[before].reason;
    }
    void cancel(uint16_t tag) { core_.apply(core::Cancel{holder_, tag, 0}); }
};

TEST_F(NaiveReservationTest, PublishesTheWaitSinceTheEnqueueTimeThatAClaimBrings) {
    const uint32_t pool = workers(5);
    claim_with(pool, 0, {.enqueued_ns = 400});
    claim_with(pool, 1, {.enqueued_ns = 100});  // it came second, and is not the first for that
    EXPECT_EQ(published_wait(), 600U);
}

TEST_F(NaiveReservationTest, PublishesNoWaitOfAClaimThatIsSaidToComeLater) {
    const uint32_t pool = workers(5);
    claim_with(pool, 0, {.enqueued_ns = 1001});
    EXPECT_EQ(published_wait(), 0U);
}

TEST_F(NaiveReservationTest, SweepsWhatIsOverBeforeTheCommandsOfItsTurn) {
    const uint32_t pool = workers(5);
    announce(pool);
    claim(pool, 0);
    turn(1001);  // assigned until 1005
    say(Word::kRefuse, 0, 1, true);
    core_.apply(core::Announce{.session = worker_, .pool = pool});
    turn(1005);
    EXPECT_EQ(state(0), SlotIs::kIdle);
    EXPECT_EQ(said(Word::kRefuse, 0, 1), Reason::kState);
    say(Word::kReady, 1, 0);  // idle after slot 0
    const auto decided = turn(1006);
    ASSERT_EQ(kinds(decided),
              (std::vector{DecisionKind::kResult, DecisionKind::kResult, DecisionKind::kAssign}));
    EXPECT_EQ(decided[2].slot_number, 0U);
}

TEST_F(NaiveReservationTest, SweepsAtTheTurnsEndWhatARefusalHasLeftOver) {
    const uint32_t pool = workers(5);
    announce(pool);
    announce(pool);
    claim(pool, 0);
    turn(1002);  // slot 0 until 1005
    claim(pool, 1);
    turn(1007);  // slot 1 until 1007
    say(Word::kRefuse, 1, 1, true);
    say(Word::kRefuse, 0, 1, true);
    EXPECT_EQ(state(0), SlotIs::kKept);
    EXPECT_EQ(state(1), SlotIs::kKept);
    const auto decided = turn(1008);
    // Slot 0 was over first.
    ASSERT_EQ(kinds(decided),
              (std::vector{DecisionKind::kResult,
                           DecisionKind::kResult,
                           DecisionKind::kAssign,
                           DecisionKind::kAssign}));
    EXPECT_EQ(decided[2].claim, 1U);
    EXPECT_EQ(decided[2].slot_number, 0U);
    EXPECT_EQ(decided[3].slot_number, 1U);
}

TEST_F(NaiveReservationTest, WantsATurnWhenAKeptSlotIsOver) {
    const uint32_t pool = workers(5);
    announce(pool);
    claim(pool, 0);
    turn(1001);
    say(Word::kRefuse, 0, 1, true);
    core_.decide();
    EXPECT_EQ(core_.next_due(), 1005U);
}

TEST_F(NaiveReservationTest, GrantsNothingByAConfirmationAfterTheDeadline) {
    const uint32_t pool = workers(5);
    announce(pool);
    claim(pool, 0, 1, 2);  // deadline 1002
    turn(1003);
    EXPECT_EQ(said(Word::kConfirm, 0, 1), Reason::kOk);
    EXPECT_EQ(core_.counters(pool).unconfirmed, 0U);
    EXPECT_EQ(core_.counters(pool).confirming, 1U);
    EXPECT_EQ(said(Word::kConfirm, 0, 1), Reason::kState);
    const auto decided = turn(1004);
    ASSERT_EQ(kinds(decided),
              (std::vector{DecisionKind::kResult,
                           DecisionKind::kResult,
                           DecisionKind::kEnd,
                           DecisionKind::kRevoke}));
    EXPECT_EQ(decided[2].outcome, Outcome::kExpired);
    EXPECT_EQ(state(0), SlotIs::kRecovering);
    EXPECT_EQ(said(Word::kConfirm, 0, 1), Reason::kState);  // it has said so
}

TEST_F(NaiveReservationTest, FreesAtOnceWhatWasConfirmedAfterTheDeadlineWhereAReleaseIsReady) {
    const uint32_t pool = workers(50, true);
    announce(pool);
    announce(pool);
    claim(pool, 0, 2, 2);  // deadline 1002
    claim(pool, 1);
    turn(1003);
    say(Word::kConfirm, 1, 1);
    const auto decided = turn(1004);
    // Slot 0 has not confirmed; slot 1 is the next claim's in the same turn.
    ASSERT_EQ(kinds(decided),
              (std::vector{DecisionKind::kResult,
                           DecisionKind::kEnd,
                           DecisionKind::kRevoke,
                           DecisionKind::kAssign}));
    EXPECT_EQ(decided[2].slot_number, 0U);
    EXPECT_EQ(decided[3].slot_number, 1U);
    EXPECT_EQ(decided[3].claim, 2U);
}

TEST_F(NaiveReservationTest, ReleasesAtOnceWhatIsConfirmedAfterItsReservation) {
    const uint32_t pool = workers(5, true);
    announce(pool);
    claim(pool, 0);
    turn(1005);
    EXPECT_TRUE(turn(1006).empty());
    EXPECT_EQ(state(0), SlotIs::kUnknown);
    say(Word::kConfirm, 0, 1);
    const auto decided = turn(1007);
    ASSERT_EQ(kinds(decided), (std::vector{DecisionKind::kResult, DecisionKind::kAssign}));
    EXPECT_EQ(decided[1].round, 2U);
}

TEST_F(NaiveReservationTest, RevokesWhatIsConfirmedAfterItsReservationWhereItsWorkerMustSayReady) {
    const uint32_t pool = workers(5);
    announce(pool);
    claim(pool, 0);
    turn(1005);
    turn(1006);
    EXPECT_EQ(said(Word::kConfirm, 0, 1), Reason::kOk);
    EXPECT_EQ(state(0), SlotIs::kRecovering);
    EXPECT_EQ(said(Word::kConfirm, 0, 1), Reason::kState);
    EXPECT_EQ(kinds(turn(1007)),
              (std::vector{DecisionKind::kResult, DecisionKind::kRevoke, DecisionKind::kResult}));
}

TEST_F(NaiveReservationTest, ReleasesAtOnceWhatIsConfirmedAfterItsClaimsEnd) {
    const uint32_t pool = workers(5, true);
    announce(pool);
    claim(pool, 0);
    claim(pool, 1);
    turn(1001);
    cancel(0);
    ASSERT_EQ(kinds(turn(1002)),
              (std::vector{DecisionKind::kResult, DecisionKind::kEnd, DecisionKind::kRevoke}));
    EXPECT_EQ(said(Word::kConfirm, 0, 0), Reason::kStale);
    EXPECT_EQ(said(Word::kProtect, 0, 1), Reason::kOk);  // which is no answer
    EXPECT_EQ(said(Word::kUnprotect, 0, 1), Reason::kOk);
    EXPECT_EQ(said(Word::kConfirm, 0, 1), Reason::kOk);
    EXPECT_EQ(state(0), SlotIs::kIdle);
    EXPECT_EQ(turn(1003).back().kind, DecisionKind::kAssign);
}

TEST_F(NaiveReservationTest, AdmitsAProtectedSlotThatIsConfirmedTooLateWhenTheMarkIsLifted) {
    const uint32_t pool = workers(5, true);
    announce(pool);
    claim(pool, 0);
    turn(1001);
    cancel(0);
    say(Word::kProtect, 0, 1);
    say(Word::kConfirm, 0, 1);
    EXPECT_EQ(state(0), SlotIs::kRecovering);
    EXPECT_EQ(core_.counters(pool).totals.skipped, 1U);
    EXPECT_EQ(said(Word::kConfirm, 0, 1), Reason::kState);
    say(Word::kUnprotect, 0, 1);
    EXPECT_EQ(state(0), SlotIs::kIdle);
}

TEST_F(NaiveReservationTest,
       TellsNobodyOfAConfirmationAfterTheClaimsEndWhereItsWorkerMustSayReady) {
    const uint32_t pool = workers(5);
    announce(pool);
    announce(pool);
    claim(pool, 0, 2);
    turn(1001);
    say(Word::kRefuse, 0, 1);  // slot 1 is freed
    turn(1002);
    EXPECT_EQ(said(Word::kConfirm, 1, 1), Reason::kOk);
    EXPECT_EQ(state(1), SlotIs::kRecovering);
    EXPECT_EQ(said(Word::kConfirm, 1, 1), Reason::kState);
    EXPECT_EQ(kinds(turn(1003)), (std::vector{DecisionKind::kResult, DecisionKind::kResult}));
}

TEST_F(NaiveReservationTest, TakesNoConfirmationOfWhatRecoversFromALease) {
    const uint32_t pool = workers(5);
    announce(pool);
    claim(pool, 0);
    turn(1001);
    say(Word::kConfirm, 0, 1);
    cancel(0);
    EXPECT_EQ(state(0), SlotIs::kRecovering);
    EXPECT_EQ(said(Word::kConfirm, 0, 1), Reason::kState);
}

TEST_F(NaiveReservationTest, RemovesAProtectionThatWasSetWhileReserved) {
    const uint32_t pool = workers(5, true);
    announce(pool);
    claim(pool, 0);
    turn(1001);
    say(Word::kProtect, 0, 1);
    say(Word::kConfirm, 0, 1);  // granted
    cancel(0);
    EXPECT_EQ(state(0), SlotIs::kIdle);
    EXPECT_EQ(core_.counters(pool).totals.skipped, 0U);
}

TEST_F(NaiveReservationTest, KeepsAProtectionThatWasSetWhileLeased) {
    const uint32_t pool = workers(5, true);
    announce(pool);
    claim(pool, 0);
    turn(1001);
    say(Word::kConfirm, 0, 1);
    say(Word::kProtect, 0, 1);
    cancel(0);
    EXPECT_EQ(state(0), SlotIs::kRecovering);
    EXPECT_EQ(core_.counters(pool).totals.skipped, 1U);
}

// Account a pays for P0, which takes the slot of a free run; and then the pool has as many
// unconfirmed workers as it may have.
TEST_F(NaiveReservationTest, HoldsOverAPromiseThatWouldAskOneWorkerTooMany) {
    core::PoolConfig config;
    config.name = "accounts";
    config.kind = shm::PoolKind::kWorker;
    config.order = shm::PoolOrder::kAccount;
    config.unconfirmed_max = 1;
    const uint32_t pool = add(config);
    std::string why;
    const std::array<int64_t, 1> balance = {1'000'000};
    ASSERT_TRUE(core_.set_account({.name = "a", .balance = balance}, &why));
    announce(pool);
    claim(pool, 0);  // of no account: free
    turn(1001);
    say(Word::kConfirm, 0, 1);
    claim_with(pool, 1, {.account = "a"});
    // Slot 0 recovers, promised to claim 2.
    ASSERT_EQ(kinds(turn(1002)),
              (std::vector{DecisionKind::kResult,
                           DecisionKind::kGrant,
                           DecisionKind::kPreempt,
                           DecisionKind::kRefund,
                           DecisionKind::kLeaseEnd,
                           DecisionKind::kRevoke}));
    announce(pool);
    claim(pool, 2);
    ASSERT_EQ(turn(1003).back().kind, DecisionKind::kAssign);  // slot 1, for claim 3
    say(Word::kReady, 0, 1);
    EXPECT_EQ(state(0), SlotIs::kRecovering);
    EXPECT_TRUE(core_.model().claims.at(2).is_promised);
    EXPECT_EQ(kinds(turn(1004)), (std::vector{DecisionKind::kResult}));
    say(Word::kConfirm, 1, 1);
    const auto decided = turn(1005);
    ASSERT_EQ(kinds(decided),
              (std::vector{DecisionKind::kResult, DecisionKind::kGrant, DecisionKind::kAssign}));
    EXPECT_EQ(decided[2].claim, 2U);
    EXPECT_EQ(decided[2].slot_number, 0U);
}

}  // namespace dibs::naive
