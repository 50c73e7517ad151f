// tests/broker/turn/pledges_test.cpp -- a claim that is all there is to do is answered before its
// turn.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/pledges.hpp"

#include <gtest/gtest.h>

#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

struct Pledging : testing::Test {
    void SetUp() override {
        core::PoolConfig pool;
        pool.name = "tokens";
        pool.slots = 2;
        bench.pool(pool);
        session = &bench.open();
        session->singly = true;
    }

    Bench bench;
    Session* session = nullptr;
};

TEST_F(Pledging, AnswersBeforeTheTurnIsOverAndOnce) {
    bench.push(*session, claim(1));
    bench.read(true);
    const auto granted = bench.next(*session);
    ASSERT_TRUE(granted);
    EXPECT_EQ(granted->outcome, shm::Outcome::kGranted);
    EXPECT_EQ(granted->user_data, 101U);
    EXPECT_EQ(granted->fence, 1U);
    const auto* head = reinterpret_cast<const shm::GrantHead*>(session->payload + granted->data);
    EXPECT_EQ(head->units, 1U);
    EXPECT_EQ(session->consumed, 0U) << "the turn has not happened yet";
    bench.finish();
    EXPECT_EQ(session->consumed, 1U);
    EXPECT_EQ(session->completion_tail, 1U);
    EXPECT_FALSE(bench.next(*session));
    EXPECT_EQ(bench.core.check_all(), std::vector<std::string>{});
    bench.push(*session, word(shm::Op::kRelease, granted->id, granted->fence));
    bench.turn(true);
    EXPECT_EQ(bench.next(*session)->reason, shm::Reason::kOk);
}

// What it says next may be about its new lease, which the turn does not know before its end.
TEST_F(Pledging, ReadsNothingMoreInItsTurn) {
    bench.push(*session, claim(1));
    bench.push(*session, claim(2));
    EXPECT_EQ(bench.turn(true), Ingest::Read::kMore);
    EXPECT_EQ(session->up.head(), 1U);
    EXPECT_TRUE(bench.next(*session));
    EXPECT_FALSE(bench.next(*session));
    bench.turn(true);
    EXPECT_TRUE(bench.next(*session));
}

TEST_F(Pledging, IsNotForWhoeverSaysMuchAtATime) {
    session->singly = false;
    bench.push(*session, claim(1));
    bench.read(true);
    EXPECT_FALSE(bench.next(*session)) << "it is answered in its turn";
    bench.finish();
    EXPECT_TRUE(bench.next(*session));
    EXPECT_TRUE(session->singly) << "from now on, as it has said one thing";
}

TEST_F(Pledging, IsNotWhileOthersSpeak) {
    bench.push(*session, claim(1));
    bench.read(false);
    EXPECT_FALSE(bench.next(*session));
    bench.finish();
    EXPECT_TRUE(bench.next(*session));
}

TEST_F(Pledging, LeavesAClaimThatMustWaitToTheTurn) {
    bench.push(*session, claim(1));
    bench.turn(true);
    bench.push(*session, claim(2));
    bench.turn(true);
    bench.push(*session, claim(3));
    bench.turn(true);
    EXPECT_TRUE(bench.next(*session));
    EXPECT_TRUE(bench.next(*session));
    EXPECT_FALSE(bench.next(*session));
    EXPECT_EQ(bench.core.pool(0).waiting, 1U);
}

TEST_F(Pledging, NeedsRoomForItsCompletion) {
    session->completions_released = session->completion_tail - session->sizes.completion_entries;
    bench.push(*session, claim(1));
    bench.read(true);
    EXPECT_FALSE(bench.next(*session));
    bench.finish();
}

}  // namespace
}  // namespace dibs::test
