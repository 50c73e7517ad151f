// tests/broker/core/rules/steer_test.cpp -- what an administrator ends and prolongs, and why who
// waits.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <gtest/gtest.h>

#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

using core::DecisionKind;
using core::Steer;
using core::WaitReason;
using shm::Reason;

class SteerTest : public CoreFixture {
  protected:
    std::vector<core::Decision> steer(Steer::Kind kind, uint64_t lease, core::TimeNs interval = 0) {
        Steer command;
        command.kind = kind;
        command.lease = lease;
        command.interval_ns = interval;
        return give(command);
    }
    std::vector<core::Decision> cancel(uint32_t session, uint16_t tag, uint64_t number) {
        Steer command;
        command.kind = Steer::Kind::kCancel;
        command.session = session;
        command.tag = tag;
        command.number = number;
        return give(command);
    }
    std::vector<core::Decision> give(const Steer& command) {
        return turn(100, [&] {
            granted_ns_ = 77;
            reason_ = core().apply(command, &granted_ns_);
        });
    }
    Reason reason_ = Reason::kOk;
    core::TimeNs granted_ns_ = 0;
};

TEST_F(SteerTest, EndsALeaseAndTellsItsHolder) {
    const uint32_t pool = counted_pool("gpu", 1);
    const uint32_t holder = session();
    const auto granted = turn(1, [&] { claim(holder, 0, pool); });
    const uint64_t id = granted.at(0).id;
    const auto told = steer(Steer::Kind::kRelease, id);
    EXPECT_EQ(reason_, Reason::kOk);
    ASSERT_EQ(told.at(0).kind, DecisionKind::kLeaseEnd);
    EXPECT_EQ(told.at(0).session, holder);
    EXPECT_EQ(told.at(0).reason, Reason::kRevoked);
    EXPECT_EQ(core().pool(pool).idle, 1U);
    EXPECT_TRUE(steer(Steer::Kind::kRelease, id).empty());
    EXPECT_EQ(reason_, Reason::kAlreadyEnded);
}

TEST_F(SteerTest, FindsNoLeaseByAnIdThatNoneCanHave) {
    const uint32_t pool = counted_pool("gpu", 1);
    const uint32_t holder = session();
    turn(1, [&] { claim(holder, 0, pool); });
    for (const Steer::Kind kind : {Steer::Kind::kRelease, Steer::Kind::kRenew}) {
        EXPECT_TRUE(steer(kind, 0).empty());
        EXPECT_EQ(reason_, Reason::kNotFound);
    }
}

TEST_F(SteerTest, GivesTheSlotOfARevokedLeaseToWhoWaits) {
    const uint32_t pool = counted_pool("gpu", 1);
    const uint32_t holder = session(1000);
    const uint32_t next = session(1001);
    const auto granted = turn(1, [&] { claim(holder, 0, pool); });
    turn(2, [&] { claim(next, 3, pool); });
    const auto told = steer(Steer::Kind::kRelease, granted.at(0).id);
    ASSERT_GE(told.size(), 2U);
    EXPECT_EQ(told.at(1).kind, DecisionKind::kGrant);
    EXPECT_EQ(told.at(1).session, next);
}

TEST_F(SteerTest, CancelsAWaitingClaim) {
    const uint32_t pool = counted_pool("gpu", 1);
    const uint32_t one = session();
    turn(1, [&] { claim(one, 0, pool); });
    turn(2, [&] { claim(one, 1, pool); });
    const uint32_t row = core().claim_of_tag(one, 1);
    ASSERT_NE(row, shm::kNoRow);
    EXPECT_EQ(core().claim_of_tag(one, 0), shm::kNoRow);  // a lease
    EXPECT_EQ(core().claim_of_tag(one, 7), shm::kNoRow);  // nothing
    const auto told = cancel(one, 1, 2);
    EXPECT_EQ(reason_, Reason::kOk);
    ASSERT_EQ(told.at(0).kind, DecisionKind::kEnd);
    EXPECT_EQ(told.at(0).outcome, shm::Outcome::kCancelled);
    EXPECT_EQ(told.at(0).reason, Reason::kRevoked);
    EXPECT_EQ(told.at(0).claim, 2U);
    cancel(one, 1, 2);
    EXPECT_EQ(reason_, Reason::kAlreadyEnded);
    turn(200, [&] { claim(one, 1, pool); });  // the tag is another claim's now
    cancel(one, 1, 2);
    EXPECT_EQ(reason_, Reason::kAlreadyEnded);
    cancel(one, 0, 1);  // it has its lease
    EXPECT_EQ(reason_, Reason::kAlreadyEnded);
    cancel(one, 1, 77);
    EXPECT_EQ(reason_, Reason::kNotFound);
    steer(Steer::Kind::kRelease, core::row_id(9, 5));
    EXPECT_EQ(reason_, Reason::kNotFound);
}

TEST_F(SteerTest, ProlongsALeaseFromNow) {
    const uint32_t pool = counted_pool("gpu", 2);
    const uint32_t holder = session();
    const auto granted = turn(1, [&] {
        core::Claim command;
        command.session = holder;
        command.pool = pool;
        command.interval_ns = 1000;
        core().apply(command);
        claim(holder, 1, pool);
    });
    steer(Steer::Kind::kRenew, granted.at(0).id, 5000);
    EXPECT_EQ(reason_, Reason::kOk);
    EXPECT_EQ(granted_ns_, 5000U);
    EXPECT_EQ(core().lease(static_cast<uint32_t>(granted.at(0).id)).expires_ns, 5100U);
    steer(Steer::Kind::kRenew, granted.at(1).id, 5000);  // bound to its holder's life
    EXPECT_EQ(reason_, Reason::kOk);
    EXPECT_EQ(granted_ns_, 0U);
}

TEST_F(SteerTest, EndsAndProlongsALeaseOverSeveralPoolsByAnyOfItsIds) {
    const std::array<core::PoolUnits, 1> also{{{.pool = counted_pool("port", 1)}}};
    core::Claim command;
    command.pool = counted_pool("gpu", 1);
    command.session = session();
    command.interval_ns = 1000;
    command.also = also;
    for (const size_t by : {0U, 1U}) {
        const auto granted = turn(1, [&] { core().apply(command); });
        ASSERT_EQ(granted.size(), 2U);
        steer(Steer::Kind::kRenew, granted.at(by).id, 5000);
        EXPECT_EQ(granted_ns_, 5000U);
        for (const core::Decision& of : granted)
            EXPECT_EQ(core().lease(static_cast<uint32_t>(of.id)).expires_ns, 5100U);
        steer(Steer::Kind::kRelease, granted.at(by).id);
        EXPECT_EQ(reason_, Reason::kOk);
        EXPECT_EQ(core().pool(command.pool).idle, 1U);
        EXPECT_EQ(core().pool(also.at(0).pool).idle, 1U);
    }
}

TEST_F(SteerTest, ExplainsWhoWaitsForWhatAndBehindHowMany) {
    const uint32_t pool = counted_pool("gpu", 2);
    const uint32_t one = session();
    turn(10, [&] { claim(one, 0, pool); });
    turn(20, [&] { claim(one, 1, pool, 2); });
    turn(30, [&] { claim(one, 2, pool); });
    turn(1030, [&] {});
    core::Explanation first = core().explain(core().claim_of_tag(one, 1));
    EXPECT_EQ(first.reason, WaitReason::kUnits);
    EXPECT_EQ(first.position, 1U);
    EXPECT_EQ(first.waiting, 2U);
    EXPECT_EQ(first.units, 2U);
    EXPECT_EQ(first.waited_ns, 1010U);
    EXPECT_EQ(core().lease(first.holder).arrival, 1U);
    const core::Explanation second = core().explain(core().claim_of_tag(one, 2));
    EXPECT_EQ(second.reason, WaitReason::kBehind);
    EXPECT_EQ(second.obstacle, WaitReason::kUnits);
    EXPECT_EQ(second.position, 2U);
    EXPECT_EQ(second.left_ns, shm::kNever);
}

TEST_F(SteerTest, ExplainsAFullPoolAnEmptyOneAndOneThatIsAsked) {
    const uint32_t counted = counted_pool("gpu", 1);
    core::PoolConfig config;
    config.name = "web";
    config.kind = shm::PoolKind::kWorker;
    uint32_t web = shm::kNoRow;
    turn(0, [&] { web = core().set_pool(config, nullptr); });
    const uint32_t one = session();
    turn(1, [&] {
        claim(one, 0, counted);
        claim(one, 1, counted);
        claim(one, 2, web);
    });
    EXPECT_EQ(core().explain(core().claim_of_tag(one, 1)).reason, WaitReason::kHeld);
    const core::Explanation none = core().explain(core().claim_of_tag(one, 2));
    EXPECT_EQ(none.reason, WaitReason::kNoSlots);
    EXPECT_EQ(none.holder, shm::kNoRow);
    const uint32_t worker = session();
    turn(2, [&] {
        core::Announce command;
        command.session = worker;
        command.pool = web;
        core().apply(command);
    });
    EXPECT_EQ(core().explain(core().claim_of_tag(one, 2)).reason, WaitReason::kRecovering);
    turn(3, [&] {
        core::Announce command;
        command.session = worker;
        command.pool = web;
        command.ready = true;
        core().apply(command);
    });
    const core::Explanation asked = core().explain(core().claim_of_tag(one, 2));
    EXPECT_EQ(asked.reason, WaitReason::kConfirming);
    EXPECT_EQ(asked.position, 0U);
    EXPECT_EQ(asked.left_ns, 2'000'000'000U);
    cancel(one, 2, 3);
    EXPECT_EQ(reason_, Reason::kOk);
    EXPECT_EQ(core().claim_of_tag(one, 2), shm::kNoRow);
}

// The slots of a counted pool are confirmed from the beginning: it is the worker that is waited
// for.
TEST_F(SteerTest, SaysOfAClaimOverSeveralPoolsWhichWorkersAreAsked) {
    const uint32_t gpu = counted_pool("gpu", 2);
    core::PoolConfig config;
    config.name = "box";
    config.kind = shm::PoolKind::kWorker;
    uint32_t box = shm::kNoRow;
    turn(0, [&] { box = core().set_pool(config, nullptr); });
    const uint32_t holder = session();
    const uint32_t worker = session();
    const core::PoolUnits also[] = {{box, 1}};
    turn(1, [&] {
        core::Announce announce;
        announce.session = worker;
        announce.pool = box;
        announce.ready = true;
        core().apply(announce);
        core::Claim claim;
        claim.session = holder;
        claim.pool = gpu;
        claim.units = 2;
        claim.also = also;
        core().apply(claim);
    });
    const core::Explanation asked = core().explain(core().claim_of_tag(holder, 0));
    EXPECT_EQ(asked.reason, WaitReason::kConfirming);
    EXPECT_EQ(asked.pool, box);
    EXPECT_EQ(asked.units, 1U);
    EXPECT_EQ(asked.confirmed, 0U);
}

// Its word belongs to the first pool's row; a drain of the other pool looks at it, too.
TEST_F(SteerTest, DrainsNoPoolOfALeaseOverSeveralThatATouchMayProlong) {
    const uint32_t gpu = counted_pool("gpu", 1);
    const uint32_t port = counted_pool("port", 1);
    const uint32_t holder = session();
    const core::PoolUnits also[] = {{port, 1}};
    const auto granted = turn(1, [&] {
        core::Claim claim;
        claim.session = holder;
        claim.pool = gpu;
        claim.interval_ns = 100;
        claim.by_word = true;
        claim.also = also;
        core().apply(claim);
    });
    ASSERT_EQ(granted.size(), 2U);
    core::TimeNs left_ns = 0;
    const core::Drain drain{.pool = port, .on = true, .if_idle_for_ns = 0};
    turn(102, [&] {
        EXPECT_EQ(core().apply(drain, &left_ns), Reason::kState);
        core().apply(core::Touch{.lease = granted.at(0).id, .value = 1});
    });
    EXPECT_EQ(core().pool(port).leased, 1U);
    // Nobody has touched it since: it ends in both.
    turn(202, [&] { EXPECT_EQ(core().apply(drain, &left_ns), Reason::kState); });
    EXPECT_EQ(core().pool(port).leased, 0U);
    EXPECT_EQ(core().pool(gpu).idle, 1U);
    turn(203, [&] { EXPECT_EQ(core().apply(drain, &left_ns), Reason::kOk); });
    EXPECT_EQ(core().pool(port).state, shm::PoolState::kDraining);
}

}  // namespace
}  // namespace dibs::tests
