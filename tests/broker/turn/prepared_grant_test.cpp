// tests/broker/turn/prepared_grant_test.cpp -- what is worked out between turns is what the turn
// grants, and is told to nobody whom it does not fit.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/prepared_grant.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

struct Prepared : testing::Test {
    void SetUp() override {
        core::PoolConfig pool;
        pool.name = "tokens";
        pool.slots = 3;
        bench.pool(pool);
        pool.name = "others";
        bench.pool(pool);
        session = &bench.open();
        session->singly = true;
        bench.prepared.expect(session);
    }

    // A claim of tag 1 and its release: so the next is expected to be of tag 1, too.
    void claim_and_give_back() {
        bench.push(*session, claim(1));
        bench.turn();
        const auto granted = bench.next(*session);
        bench.push(*session,
                   word(shm::Op::kRelease, granted->id, granted->fence, shm::OpFlag::kQuiet));
        bench.turn();
        bench.release_read(*session);
    }
    // Whether this entry is answered by what was prepared; its turn is over either way.
    bool is_answered(const shm::Submission& entry) {
        bench.prepared.prepare();
        bench.push(*session, entry);
        const bool answered = bench.answer();
        if (answered) bench.apply_answered();
        bench.finish();
        if (!answered) bench.turn();
        EXPECT_EQ(bench.core.check_all(), std::vector<std::string>{});
        return answered;
    }

    Bench bench;
    Session* session = nullptr;
};

TEST_F(Prepared, IsToldBeforeItsClaimIsApplied) {
    claim_and_give_back();
    bench.prepared.prepare();
    shm::Submission asked = claim(1);
    asked.fence = 5'000;
    asked.user_data = 77;
    bench.push(*session, asked);
    ASSERT_TRUE(bench.answer());
    const auto granted = bench.next(*session);
    ASSERT_TRUE(granted);
    EXPECT_EQ(granted->outcome, shm::Outcome::kGranted);
    EXPECT_EQ(granted->user_data, 77U);
    EXPECT_EQ(granted->value, 5'000U);
    EXPECT_EQ(granted->fence, 2U);
    EXPECT_EQ(granted->tag, 1U);
    const auto* head = reinterpret_cast<const shm::GrantHead*>(session->payload + granted->data);
    EXPECT_EQ(head->units, 1U);
    EXPECT_EQ(bench.core.pool(0).leased, 0U) << "the turn has not happened yet";
    bench.apply_answered();
    bench.finish();
    EXPECT_EQ(bench.core.pool(0).leased, 1U);
    EXPECT_EQ(session->consumed, 3U);
    EXPECT_FALSE(bench.next(*session)) << "told once";
    EXPECT_EQ(bench.core.check_all(), std::vector<std::string>{});
    bench.push(*session, word(shm::Op::kRelease, granted->id, granted->fence));
    bench.turn();
    EXPECT_EQ(bench.next(*session)->reason, shm::Reason::kOk);
}

// The client may write its line again as soon as it has its answer.
TEST_F(Prepared, ReadsItsClaimOnce) {
    claim_and_give_back();
    bench.prepared.prepare();
    bench.push(*session, claim(1));
    ASSERT_TRUE(bench.answer());
    --bench.pushed(*session);
    bench.push(*session, word(shm::Op::kClose, 0, 0));
    bench.apply_answered();
    bench.finish();
    EXPECT_EQ(bench.core.pool(0).leased, 1U);
    EXPECT_EQ(bench.core.check_all(), std::vector<std::string>{});
    EXPECT_EQ(bench.turn(), Ingest::Read::kOpen) << "nothing more was said";
}

TEST_F(Prepared, FitsWhatWasClaimedLastTime) {
    claim_and_give_back();
    shm::Submission entry = claim(1);
    entry.flags = shm::OpFlag::kReject;
    EXPECT_TRUE(is_answered(entry));
    EXPECT_TRUE(is_answered(claim(2))) << "tag 1 is in use, so the next one is expected";
}

TEST_F(Prepared, FitsNothingElse) {
    const std::function<void(shm::Submission&)> others[] = {
        [](shm::Submission& entry) { entry.pool = 1; },
        [](shm::Submission& entry) { entry.tag = 2; },
        [](shm::Submission& entry) { entry.units = 2; },
        [](shm::Submission& entry) { entry.units = 0; },
        [](shm::Submission& entry) { entry.key[0] = 1; },
        [](shm::Submission& entry) { entry.key[15] = 1; },
        [](shm::Submission& entry) { entry.payload_size = 8; },
        [](shm::Submission& entry) { entry.id = uint64_t{1} << 63; },
        [](shm::Submission& entry) { entry.fence = uint64_t{1} << 63; },
        [](shm::Submission& entry) { entry.op = shm::Op::kNop; },
        [](shm::Submission& entry) {
            entry.flags = shm::OpFlag::kByWord;
            entry.fence = 1'000'000'000;
        },
        [](shm::Submission& entry) { entry.flags = shm::OpFlag::kReject | shm::OpFlag::kCold; },
    };
    for (const auto& change : others) {
        claim_and_give_back();
        shm::Submission entry = claim(1);
        change(entry);
        EXPECT_FALSE(is_answered(entry)) << &change - others;
        while (const auto told = bench.next(*session)) {
            if (told->outcome != shm::Outcome::kGranted) continue;
            bench.push(*session, word(shm::Op::kRelease, told->id, told->fence));
            bench.turn();
        }
    }
}

TEST_F(Prepared, IsForgottenWithATurn) {
    claim_and_give_back();
    bench.prepared.prepare();
    EXPECT_FALSE(bench.answer());
    bench.finish();
    bench.push(*session, claim(1));
    EXPECT_FALSE(bench.answer());
    bench.finish();
    bench.turn();
    EXPECT_TRUE(bench.next(*session));
}

TEST_F(Prepared, IsNotWhileOthersSpeak) {
    Session& other = bench.open();
    claim_and_give_back();
    bench.push(other, word(shm::Op::kNop, 0, 0));
    EXPECT_FALSE(is_answered(claim(1)));
}

TEST_F(Prepared, IsNotForWhoeverSaysMuchAtATime) {
    claim_and_give_back();
    session->singly = false;
    EXPECT_FALSE(is_answered(claim(1)));
}

// Tag and pool of a claim that was refused may be any number.
TEST_F(Prepared, IsOfNoTagOrPoolThatWasRefused) {
    const auto tags = static_cast<uint16_t>(session->tags.size());
    for (const uint16_t tag : {uint16_t{65535}, tags, static_cast<uint16_t>(tags - 1)}) {
        bench.push(*session, claim(tag));
        bench.turn();
        bench.prepared.prepare();
        bench.prepared.forget();
        EXPECT_LT(session->claimed_tag, tags);
        EXPECT_EQ(bench.core.check_all(), std::vector<std::string>{});
    }
    bench.push(*session, claim(1, 65535));
    bench.turn();
    bench.prepared.prepare();
    EXPECT_FALSE(bench.answer());
    bench.finish();
}

struct PreparedBesideAccounts : Prepared {
    void SetUp() override {
        Prepared::SetUp();
        core::PoolConfig pool;
        pool.name = "shared";
        pool.slots = 3;
        pool.order = shm::PoolOrder::kAccount;
        shared = static_cast<uint16_t>(bench.pool(pool));
        other = &bench.open();
    }

    uint16_t shared = 0;
    Session* other = nullptr;
};

// An account above its cap that runs something has its balance stepped as a turn begins.
TEST_F(PreparedBesideAccounts, IsNotToldInATurnThatBeginsWithAChange) {
    const std::array<int64_t, 1> rate{1'000'000};
    const std::array<int64_t, 1> balance{500'000'000};
    std::string why;
    bench.core.begin_turn(bench.now);
    ASSERT_TRUE(bench.core.set_account({.name = "a", .rate = rate, .balance = balance}, &why));
    bench.core.decide();
    bench.core.commit();
    bench.core.clear();
    other->charged_to = "a";
    bench.push(*other, claim(0, shared));
    bench.now += 10'000;
    bench.turn();
    ASSERT_TRUE(bench.next(*other));
    bench.now += 10'000;
    claim_and_give_back();
    bench.now += 10'000;
    EXPECT_FALSE(is_answered(claim(1)));
}

// A recording plays a pledge in the same turn, and must be able to foresee it there.
TEST_F(PreparedBesideAccounts, IsToldOnlyInATurnInWhichItIsForeseen) {
    bench.push(*session, claim(1));
    bench.turn();
    const auto granted = bench.next(*session);
    bench.release_read(*session);
    bench.push(*session, word(shm::Op::kRelease, granted->id, granted->fence, shm::OpFlag::kQuiet));
    bench.push(*other, claim(0, shared));
    bench.now += 10'000;
    bench.turn();
    EXPECT_FALSE(is_answered(claim(1)));
}

TEST_F(Prepared, IsNotForASessionThatHasGone) {
    claim_and_give_back();
    bench.prepared.prepare();
    bench.push(*session, claim(1));
    bench.sessions.drain(session);
    EXPECT_FALSE(bench.answer());
    bench.finish();
}

TEST_F(Prepared, LeavesATimerThatIsDueToTheTurn) {
    bench.push(*session, claim(2));
    bench.turn();
    shm::Submission bound = claim(3);
    bound.fence = 1'000'000;
    bench.push(*session, bound);
    bench.turn();
    bench.prepared.prepare();
    bench.push(*session, claim(4));
    bench.now += 2'000'000;  // the lease of tag 3 is over
    EXPECT_FALSE(bench.answer());
    bench.finish();
}

TEST_F(Prepared, NeedsAnIdleSlot) {
    EXPECT_TRUE(is_answered(claim(0)));
    EXPECT_TRUE(is_answered(claim(1)));
    EXPECT_TRUE(is_answered(claim(2)));
    EXPECT_FALSE(is_answered(claim(3)));
    EXPECT_EQ(bench.core.pool(0).waiting, 1U);
}

TEST_F(Prepared, NeedsRoomForItsCompletion) {
    claim_and_give_back();
    session->completions_released = session->completion_tail - session->sizes.completion_entries;
    bench.prepared.prepare();
    bench.push(*session, claim(1));
    EXPECT_FALSE(bench.answer());
    bench.finish();
}

// The same words, once with what is prepared and once without: the same answers, byte by byte.
TEST(PreparedGrant, IsWhatTheTurnGrants) {
    struct Side {
        explicit Side(bool with) : prepares(with) {
            core::PoolConfig pool;
            pool.name = "tokens";
            pool.slots = 5;
            pool.attributes_max = 100;  // grants take more than a line
            bench.pool(pool);
            session = &bench.open();
            bench.prepared.expect(session);
        }
        // All that is told.
        std::vector<shm::Completion> say(const shm::Submission& entry) {
            if (prepares) bench.prepared.prepare();
            bench.push(*session, entry);
            const bool answers = bench.answer();
            if (answers) {
                ++answered;
                bench.apply_answered();
                bench.finish();
            } else {
                bench.finish();
                bench.turn();
            }
            std::vector<shm::Completion> told;
            while (const auto next = bench.next(*session))
                told.push_back(*next);
            bench.release_read(*session);
            return told;
        }
        Bench bench;
        Session* session = nullptr;
        bool prepares;
        uint32_t answered = 0;
    };
    std::mt19937 random(1);
    Side with(true);
    Side without(false);
    std::vector<shm::Completion> held;
    for (int i = 0; i < 5'000; ++i) {
        with.bench.now = without.bench.now += 1 + random() % 1000;
        shm::Submission entry;
        if (held.empty() || random() % 2 == 0) {
            entry = claim(static_cast<uint16_t>(random() % 3));
            if (random() % 4 == 0) entry.fence = 1 + random() % 2000;  // it expires
        } else {
            const shm::Completion lease = held[random() % held.size()];
            std::erase_if(held, [&](const shm::Completion& one) { return one.id == lease.id; });
            entry = word(shm::Op::kRelease, lease.id, lease.fence);
        }
        const auto told = with.say(entry);
        const auto expected = without.say(entry);
        ASSERT_EQ(told.size(), expected.size()) << "word " << i;
        for (size_t k = 0; k < told.size(); ++k) {
            ASSERT_EQ(std::memcmp(&told[k], &expected[k], sizeof(told[k])), 0) << "word " << i;
            if (told[k].outcome != shm::Outcome::kGranted) continue;
            held.push_back(told[k]);
            ASSERT_EQ(std::memcmp(with.session->payload + told[k].data,
                                  without.session->payload + told[k].data,
                                  sizeof(shm::GrantHead) + sizeof(shm::GrantSlot)),
                      0)
                << "word " << i;
        }
    }
    EXPECT_EQ(without.answered, 0U);
    EXPECT_GE(with.answered, 200U);
    EXPECT_EQ(with.bench.core.check_all(), std::vector<std::string>{});
}

}  // namespace
}  // namespace dibs::test
