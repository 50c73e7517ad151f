// tests/naive/naive_core_test.cpp -- cases worked out by hand from what is written, so that the
// agreement of two cores is not the agreement of two mistakes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/naive/naive_core_turns.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Outcome;
using shm::Reason;
using Word = core::WorkerWord::Kind;

class NaiveCoreTest : public NaiveCoreTurns {};

TEST_F(NaiveCoreTest, GrantsACountedPoolInOrderOfArrivalAndFencesGrow) {
    const uint32_t pool = counted(2);
    claim(pool, 0);
    claim(pool, 1);
    claim(pool, 2);
    const auto decided = turn(1001);
    ASSERT_EQ(kinds(decided), (std::vector{DecisionKind::kGrant, DecisionKind::kGrant}));
    EXPECT_EQ(decided[0].claim, 1U);
    EXPECT_EQ(decided[0].fence, 1U);
    EXPECT_EQ(decided[1].claim, 2U);
    EXPECT_EQ(decided[1].fence, 2U);
    EXPECT_EQ(core_.counters(pool).waiting, 1U);
    EXPECT_EQ(core_.counters(pool).totals.hits, 2U);
}

TEST_F(NaiveCoreTest, LetsNobodyOvertakeForASlotThatTheFirstCouldUse) {
    const uint32_t pool = counted(3);
    claim(pool, 0, 2);
    claim(pool, 1, 2);     // one slot is left: it waits
    claim(pool, 2, 1);     // could have it, but is behind
    claim(pool, 3, 1, 0);  // now or not at all
    const auto decided = turn(1007);
    ASSERT_EQ(kinds(decided), (std::vector{DecisionKind::kGrant, DecisionKind::kEnd}));
    EXPECT_EQ(decided[1].claim, 4U);
    EXPECT_EQ(decided[1].reason, Reason::kBusy);
    EXPECT_EQ(decided[1].value, 10'000'000U);
    EXPECT_EQ(decided[1].holder_uid, 1000U);
    EXPECT_EQ(decided[1].holder_pid, 70U);
    EXPECT_EQ(decided[1].holder_claim, 1U);
    EXPECT_EQ(decided[1].holder_age_ns, 0U);
}

TEST_F(NaiveCoreTest, ExpiresAClaimStrictlyAfterItsDeadline) {
    const uint32_t pool = workers(5);
    claim(pool, 0, 1, 10);  // deadline 1010
    EXPECT_TRUE(turn(1010).empty());
    EXPECT_TRUE(turn(1011).empty());
    const auto decided = turn(1012);
    ASSERT_EQ(kinds(decided), (std::vector{DecisionKind::kEnd}));
    EXPECT_EQ(decided[0].outcome, Outcome::kExpired);
}

TEST_F(NaiveCoreTest, EndsAReservationAtItsExpiryAndKeepsTheClaimsPlace) {
    const uint32_t pool = workers(5);
    announce(pool);
    announce(pool);
    claim(pool, 0, 2);
    EXPECT_EQ(turn(1001).size(), 4U);  // two announced, two assigned until 1005
    say(Word::kConfirm, 0, 1);
    claim(pool, 1);
    EXPECT_EQ(turn(1004).size(), 1U);
    EXPECT_TRUE(turn(1005).empty());
    const auto decided = turn(1006);  // slot 0 had confirmed, slot 1 is unknown
    ASSERT_EQ(kinds(decided), (std::vector{DecisionKind::kRevoke}));
    EXPECT_EQ(decided[0].slot_number, 0U);
    EXPECT_EQ(core_.counters(pool).unknown, 1U);
    EXPECT_EQ(core_.counters(pool).recovering, 1U);
    say(Word::kReady, 0, 1);
    EXPECT_EQ(turn(1007).size(), 1U);  // claim 1 needs two and stands before claim 2
    say(Word::kReady, 1, 1);
    const auto again = turn(1008);
    ASSERT_EQ(kinds(again),
              (std::vector{DecisionKind::kResult, DecisionKind::kAssign, DecisionKind::kAssign}));
    EXPECT_EQ(again[1].claim, 1U);
    EXPECT_EQ(again[1].round, 2U);
}

TEST_F(NaiveCoreTest, GrantsAWorkerPoolWhenItsLastSlotConfirms) {
    const uint32_t pool = workers(5);
    announce(pool);
    announce(pool);
    claim(pool, 0, 2);
    turn(1001);
    say(Word::kConfirm, 1, 1);
    say(Word::kConfirm, 1, 1);  // it has said so
    say(Word::kConfirm, 0, 1);
    const auto decided = turn(1002);
    ASSERT_EQ(kinds(decided),
              (std::vector{DecisionKind::kResult,
                           DecisionKind::kResult,
                           DecisionKind::kResult,
                           DecisionKind::kGrant}));
    EXPECT_EQ(decided[1].reason, Reason::kState);
    EXPECT_EQ(core_.counters(pool).totals.hits, 0U);
    EXPECT_EQ(core_.counters(pool).last_dispatch_ns, 1001U);
}

TEST_F(NaiveCoreTest, KeepsASlotThatRefusedForNowAndFreesTheOthers) {
    const uint32_t pool = workers(5);
    announce(pool);
    announce(pool);
    claim(pool, 0, 2);  // until 1005
    turn(1001);
    say(Word::kRefuse, 0, 1, true);
    ASSERT_EQ(kinds(turn(1004)), (std::vector{DecisionKind::kResult, DecisionKind::kRevoke}));
    EXPECT_EQ(core_.counters(pool).reserved, 1U);
    EXPECT_EQ(core_.counters(pool).unconfirmed, 0U);
    say(Word::kReady, 1, 1);
    turn(1005);
    EXPECT_EQ(kinds(turn(1006)), (std::vector{DecisionKind::kAssign, DecisionKind::kAssign}));
}

TEST_F(NaiveCoreTest, EndsAClaimThatWasRefusedForGood) {
    const uint32_t pool = workers(5);
    announce(pool);
    claim(pool, 0);
    turn(1001);
    say(Word::kRefuse, 0, 1);
    const auto decided = turn(1002);
    ASSERT_EQ(kinds(decided), (std::vector{DecisionKind::kResult, DecisionKind::kEnd}));
    EXPECT_EQ(decided[1].reason, Reason::kRefused);
    EXPECT_EQ(decided[1].value, 9U);
    EXPECT_EQ(core_.counters(pool).idle, 1U);
}

TEST_F(NaiveCoreTest, LetsALeaseLiveAtItsExpiryAndThroughItsGrace) {
    core::PoolConfig config;
    config.name = "graceful";
    config.slots = 1;
    config.grace_ns = 4;
    const uint32_t pool = add(config);
    core_.apply(core::Claim{.session = holder_, .pool = pool, .interval_ns = 10});
    turn(1010);  // granted at 1000, expires at 1010
    EXPECT_TRUE(turn(1011).empty());
    const auto grace = turn(1014);
    ASSERT_EQ(kinds(grace), (std::vector{DecisionKind::kLeaseGrace}));
    EXPECT_EQ(grace[0].value, 1015U);  // from 1011, when it was decided
    core_.apply(core::Keepalive{.session = holder_, .lease = 1, .fence = 1, .interval_ns = 3});
    const auto kept = turn(1016);
    ASSERT_EQ(kinds(kept), (std::vector{DecisionKind::kResult}));
    EXPECT_EQ(kept[0].value, 3U);
    EXPECT_TRUE(turn(1050).empty());  // 1016 is its expiry
    // Its grace is not shorter for being decided late: from 1050 to 1054.
    const auto late = turn(1053);
    ASSERT_EQ(kinds(late), (std::vector{DecisionKind::kLeaseGrace}));
    EXPECT_EQ(late[0].value, 1054U);
    EXPECT_TRUE(turn(1054).empty());
    const auto ended = turn(1055);
    ASSERT_EQ(kinds(ended), (std::vector{DecisionKind::kLeaseEnd}));
    EXPECT_EQ(ended[0].reason, Reason::kExpiredLease);
    EXPECT_EQ(core_.counters(pool).idle, 1U);
}

TEST_F(NaiveCoreTest, TellsASecondReleaseFromAStaleOne) {
    const uint32_t pool = counted(1);
    claim(pool, 0);
    turn(1001);
    const auto release = [&](uint32_t session, uint64_t fence) {
        core_.apply(core::Release{.session = session, .lease = 1, .fence = fence});
        return core_.decisions().back();
    };
    const Decision other = release(worker_, 1);
    EXPECT_EQ(other.reason, Reason::kNotHolder);
    EXPECT_EQ(other.holder_pid, 70U);
    EXPECT_EQ(other.holder_age_ns, 1U);
    EXPECT_EQ(release(holder_, 2).reason, Reason::kStale);
    EXPECT_EQ(release(holder_, 1).reason, Reason::kOk);
    EXPECT_EQ(release(holder_, 1).reason, Reason::kAlreadyEnded);
    EXPECT_EQ(release(holder_, 2).reason, Reason::kStale);
    core_.lease_row_used_again(1);
    EXPECT_EQ(release(holder_, 2).reason, Reason::kAlreadyEnded);
}

TEST_F(NaiveCoreTest, CountsAnAdmissionThatProtectionStopsAndAdmitsWhenItIsLifted) {
    const uint32_t pool = workers(5);
    announce(pool, true);
    EXPECT_EQ(core_.counters(pool).totals.skipped, 1U);
    EXPECT_EQ(core_.counters(pool).recovering, 1U);
    say(Word::kUnprotect, 0, 0);
    EXPECT_EQ(core_.counters(pool).idle, 1U);
}

TEST_F(NaiveCoreTest, GivesBackWhatADeadSessionHeldAndTellsNobody) {
    const uint32_t pool = workers(5);
    announce(pool);
    announce(pool);
    claim(pool, 0);
    claim(pool, 1);
    claim(pool, 2);
    turn(1001);
    say(Word::kConfirm, 0, 1);
    turn(1002);
    core_.session_died(holder_);
    const auto decided = turn(1003);
    // Claim 2 confirms on slot 1, claim 3 waits, claim 1 has its lease on slot 0.
    ASSERT_EQ(
        kinds(decided),
        (std::vector{
            DecisionKind::kEnd, DecisionKind::kRevoke, DecisionKind::kEnd, DecisionKind::kRevoke}));
    EXPECT_EQ(decided[0].claim, 2U);
    EXPECT_EQ(decided[0].session, shm::kNoRow);
    EXPECT_EQ(decided[0].reason, Reason::kHolderGone);
    EXPECT_EQ(decided[1].slot_number, 1U);
    EXPECT_EQ(decided[3].slot_number, 0U);
}

TEST_F(NaiveCoreTest, EndsALeaseWhoseWorkerDied) {
    const uint32_t pool = workers(5);
    announce(pool);
    claim(pool, 0);
    turn(1001);
    say(Word::kConfirm, 0, 1);
    turn(1002);
    core_.session_died(worker_);
    const auto decided = turn(1003);
    ASSERT_EQ(kinds(decided), (std::vector{DecisionKind::kLeaseEnd, DecisionKind::kSlotGone}));
    EXPECT_EQ(decided[0].session, holder_);
    EXPECT_EQ(decided[0].reason, Reason::kWorkerLost);
}

TEST_F(NaiveCoreTest, DrainsWhatWaitsAndSaysOnceThatNothingDoes) {
    const uint32_t pool = workers(5);
    announce(pool);
    claim(pool, 0);
    claim(pool, 1);
    turn(1001);  // claim 1 confirms, claim 2 waits
    core_.apply(core::Drain{.pool = pool, .on = true});
    claim(pool, 2);
    const auto decided = turn(1002);
    ASSERT_EQ(kinds(decided), (std::vector{DecisionKind::kEnd, DecisionKind::kEnd}));
    EXPECT_EQ(decided[0].claim, 2U);
    EXPECT_EQ(decided[1].claim, 3U);
    EXPECT_EQ(decided[1].reason, Reason::kDraining);
    say(Word::kConfirm, 0, 1);
    EXPECT_EQ(kinds(turn(1003)),
              (std::vector{DecisionKind::kResult, DecisionKind::kGrant, DecisionKind::kDrained}));
    core_.apply(core::Drain{.pool = pool, .on = true});
    EXPECT_TRUE(turn(1004).empty());
}

TEST_F(NaiveCoreTest, PublishesDemandWhenItMovesByAFifthOrToOrFromZero) {
    const uint32_t pool = workers(5);
    const auto demand = [&](int claims, core::TimeNs next) {
        static uint16_t tag = 0;
        for (int i = 0; i < claims; ++i)
            claim(pool, tag++);
        core_.decide();
        std::string published;
        for (const Decision& decision : core_.decisions()) {
            if (decision.kind == DecisionKind::kDemand) published += std::to_string(decision.value);
        }
        core_.begin_turn(next);
        return published;
    };
    EXPECT_EQ(demand(0, 1001), "0");  // the first
    EXPECT_EQ(demand(0, 1002), "");   // never 0 to 0
    EXPECT_EQ(demand(10, 1003), "10");
    EXPECT_EQ(demand(1, 1004), "");    // a tenth
    EXPECT_EQ(demand(1, 1005), "12");  // a fifth
}

TEST_F(NaiveCoreTest, RejectsAKeyThatLivesAndNamesTheFirstClaim) {
    const uint32_t pool = counted(1);
    const core::Key key = {7};
    const auto claim_with_key = [&](uint16_t tag) {
        core_.apply(core::Claim{.session = holder_, .tag = tag, .pool = pool, .key = key});
    };
    claim(pool, 0);
    claim_with_key(1);  // number 2, waits
    claim_with_key(2);  // number 3
    const auto decided = turn(1001);
    ASSERT_EQ(kinds(decided), (std::vector{DecisionKind::kEnd, DecisionKind::kGrant}));
    EXPECT_EQ(decided[0].claim, 3U);
    EXPECT_EQ(decided[0].reason, Reason::kDuplicate);
    EXPECT_EQ(decided[0].id, 2U);
}

// A lease that may be parked, granted at 1000 with fence 1.
class NaiveParkingTest : public NaiveCoreTurns {
  protected:
    NaiveParkingTest() {
        core::PoolConfig config;
        config.name = "parks";
        config.slots = 1;
        config.quantum_ns = 1000;
        pool_ = add(config);
        claim(pool_, 0);
        granted_ = turn(1001);
    }
    void harvest(uint64_t takes, bool parked, bool recalled) {
        core_.apply(core::Harvest{1, takes, parked, recalled});
    }
    Reason release(uint64_t fence) {
        core_.apply(core::Release{holder_, false, 1, fence, 0});
        return core_.decisions().back().reason;
    }

    uint32_t pool_ = 0;
    std::vector<Decision> granted_;
};

TEST_F(NaiveParkingTest, GrantsBehindTheTakesOfALeaseThatWasRecalled) {
    EXPECT_TRUE(granted_.at(0).may_park);
    harvest(3, true, false);
    EXPECT_EQ(core_.counters(pool_).parked, 1U);
    EXPECT_EQ(core_.counters(pool_).totals.granted, 4U);
    EXPECT_EQ(core_.counters(pool_).totals.released, 3U);
    EXPECT_EQ(core_.counters(pool_).last_dispatch_ns, 1001U);
    claim(pool_, 1);
    EXPECT_TRUE(turn(1002).empty());
    harvest(4, true, true);
    const auto decided = turn(1003);
    ASSERT_EQ(kinds(decided), (std::vector{DecisionKind::kGrant}));
    EXPECT_EQ(decided[0].fence, 6U);
    EXPECT_EQ(core_.counters(pool_).totals.released, 5U);
    EXPECT_EQ(core_.counters(pool_).parked, 0U);
    EXPECT_EQ(release(5), Reason::kAlreadyEnded);
    EXPECT_EQ(release(4), Reason::kStale);
}

TEST_F(NaiveParkingTest, WantsWhatIsTakenUntilItsLastTakeIsReleased) {
    harvest(2, false, true);
    EXPECT_EQ(core_.counters(pool_).wanted, 1U);
    EXPECT_TRUE(core_.parkable_of(pool_).empty());
    EXPECT_EQ(release(1), Reason::kAlreadyEnded);
    EXPECT_EQ(release(4), Reason::kStale);
    EXPECT_EQ(release(3), Reason::kOk);
    EXPECT_EQ(core_.counters(pool_).wanted, 0U);
}

TEST_F(NaiveCoreTest, GrantsWhatMayBeParkedOnlyToClaimsForASlotAndNothingElse) {
    core::PoolConfig config;
    config.name = "parks";
    config.slots = 4;
    config.quantum_ns = 1000;
    const uint32_t pool = add(config);
    claim(pool, 0);
    claim(pool, 1, 2);
    core_.apply(core::Claim{.session = holder_, .tag = 2, .pool = pool, .interval_ns = 9});
    const auto decided = turn(1001);
    ASSERT_EQ(decided.size(), 3U);
    EXPECT_TRUE(decided[0].may_park);
    EXPECT_FALSE(decided[1].may_park);
    EXPECT_FALSE(decided[2].may_park);
}

}  // namespace dibs::naive
