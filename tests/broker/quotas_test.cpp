// tests/broker/quotas_test.cpp -- what a uid may claim and offer, and whom it is told of.
// SPDX-License-Identifier: Apache-2.0
#include "broker/quotas.hpp"

#include <gtest/gtest.h>

#include <map>

#include "shm/operation.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::Outcome;
using shm::Reason;

class QuotasTest : public testing::Test {
  protected:
    void SetUp() override {
        bench_.pool({.name = "tokens", .kind = shm::PoolKind::kCounted, .slots = 3});
        bench_.pool({.name = "web", .kind = shm::PoolKind::kWorker, .payload_max = 64});
    }
    void allow(const Allowance& allowance) {
        auto policy = std::make_shared<Policy>();
        policy->users[1000] = allowance;
        bench_.quotas.set_policy(policy, bench_.sessions.all());
    }
    // Claims and says what became of each in that turn: granted, a refusal, or
    // kState: it waits.
    std::vector<Reason> claims(Session& session, std::vector<uint16_t> tags, uint16_t pool = 0) {
        for (const uint16_t tag : tags)
            bench_.push(session, claim(tag, pool));
        bench_.turn();
        std::map<uint16_t, Reason> ends;
        while (const auto end = bench_.next(session))
            ends[end->tag] = end->reason;
        std::vector<Reason> reasons;
        for (const uint16_t tag : tags)
            reasons.push_back(ends.count(tag) != 0 ? ends[tag] : Reason::kState);
        return reasons;
    }

    Bench bench_;
};

TEST_F(QuotasTest, LetAClaimWaitNoMoreThanTheBacklogOfItsUid) {
    Session& one = bench_.open();
    Session& two = bench_.open();
    Session& stranger = bench_.open({}, 2000);
    allow({.backlog = 2});
    // Three slots: the claims of one turn have not ended before its pass.
    EXPECT_EQ(claims(one, {1, 2, 3}),
              (std::vector<Reason>{Reason::kOk, Reason::kOk, Reason::kLimit}));
    EXPECT_EQ(claims(stranger, {1}), (std::vector<Reason>{Reason::kOk}));
    EXPECT_EQ(claims(one, {3}), (std::vector<Reason>{Reason::kState}));
    EXPECT_EQ(claims(two, {1}), (std::vector<Reason>{Reason::kState}));
    EXPECT_EQ(claims(two, {2}), (std::vector<Reason>{Reason::kLimit}));
    EXPECT_EQ(claims(stranger, {2, 3, 4}), (std::vector<Reason>(3, Reason::kState)));
    EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
}

TEST_F(QuotasTest, CountLeasesAndClaimsThatMayBecomeOne) {
    Session& one = bench_.open();
    Session& two = bench_.open();
    allow({.leases = 4});
    EXPECT_EQ(claims(one, {1, 2, 3}), (std::vector<Reason>(3, Reason::kOk)));
    EXPECT_EQ(claims(two, {1}), (std::vector<Reason>{Reason::kState}));
    EXPECT_EQ(claims(two, {2}), (std::vector<Reason>{Reason::kLimit}));
    bench_.sessions.end(&one, Reason::kOk);
    bench_.turn();
    EXPECT_EQ(bench_.next(two)->outcome, Outcome::kGranted);  // what waited
    EXPECT_EQ(claims(two, {2, 3}), (std::vector<Reason>{Reason::kOk, Reason::kOk}));
    EXPECT_EQ(claims(two, {4, 5}), (std::vector<Reason>{Reason::kState, Reason::kLimit}));
}

TEST_F(QuotasTest, CountAReleaseOfTheSameBatch) {
    Session& session = bench_.open();
    allow({.leases = 1});
    bench_.push(session, claim(1));
    bench_.turn();
    const auto granted = bench_.next(session);
    ASSERT_TRUE(granted);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    bench_.push(session, word(shm::Op::kRelease, granted->id, granted->fence));
    bench_.push(session, claim(1));
    bench_.turn();
    EXPECT_EQ(bench_.next(session)->reason, Reason::kOk);
    EXPECT_EQ(bench_.next(session)->outcome, Outcome::kGranted);
}

TEST_F(QuotasTest, LetAUidClaimFromItsPoolsOnly) {
    Session& session = bench_.open();
    Session& stranger = bench_.open({}, 2000);
    allow({.pools = {{"web"}}});
    EXPECT_EQ(claims(session, {1}, 0), (std::vector<Reason>{Reason::kNotAllowed}));
    EXPECT_EQ(claims(session, {1}, 1), (std::vector<Reason>{Reason::kState}));
    EXPECT_EQ(claims(session, {2}, 7), (std::vector<Reason>{Reason::kUnknownPool}));
    EXPECT_EQ(claims(stranger, {1}, 0), (std::vector<Reason>{Reason::kOk}));
}

TEST_F(QuotasTest, LetAUidAnnounceInItsOffersOnly) {
    Session& session = bench_.open();
    allow({.offers = {{}}});
    shm::Submission announce = word(shm::Op::kAnnounce, 77, 0);
    announce.pool = 1;
    bench_.push(session, announce);
    bench_.turn();
    EXPECT_EQ(bench_.next(session)->reason, Reason::kNotAllowed);
    allow({});
    bench_.push(session, announce);
    bench_.turn();
    EXPECT_EQ(bench_.next(session)->reason, Reason::kOk);
}

TEST_F(QuotasTest, TakeANewPolicyAtOnce) {
    Session& session = bench_.open();
    allow({.leases = 1});
    EXPECT_EQ(claims(session, {1, 2}), (std::vector<Reason>{Reason::kOk, Reason::kLimit}));
    allow({.leases = 2});
    EXPECT_EQ(claims(session, {2, 3}), (std::vector<Reason>{Reason::kOk, Reason::kLimit}));
    allow({.leases = 0});
    EXPECT_EQ(claims(session, {3}), (std::vector<Reason>{Reason::kLimit}));
    allow({});
    EXPECT_EQ(claims(session, {3}), (std::vector<Reason>{Reason::kOk}));
}

// The holder of the three tokens that `asking` is told of.
shm::Holder told(Bench& bench, Session& asking) {
    shm::Submission entry = claim(9);
    entry.flags = shm::OpFlag::kReject;
    bench.push(asking, entry);
    bench.turn();
    const auto end = bench.next(asking);
    EXPECT_EQ(end->reason, Reason::kBusy);
    return shm::holder_of(*end);
}

TEST_F(QuotasTest, TellAnotherUserAccountAndAgeOfAHolderAndNoMore) {
    Session& holder = bench_.open();
    Session& same = bench_.open();
    Session& stranger = bench_.open({}, 2000);
    Session& root = bench_.open({}, 0);
    ASSERT_EQ(claims(holder, {1, 2, 3}), (std::vector<Reason>(3, Reason::kOk)));
    bench_.now += 500;
    for (Session* session : {&same, &root}) {
        EXPECT_EQ(told(bench_, *session).uid, 1000U);
        EXPECT_EQ(told(bench_, *session).pid, 42U);
        EXPECT_EQ(told(bench_, *session).claim, 1U);
    }
    const shm::Holder seen = told(bench_, stranger);
    EXPECT_EQ(seen.uid, 1000U);  // its account is its uid's own
    EXPECT_EQ(seen.pid, 0U);
    EXPECT_EQ(seen.claim, shm::kHiddenClaim);
    EXPECT_GE(seen.age_ns, 500U);
    allow({.account = "research"});
    EXPECT_EQ(told(bench_, stranger).uid, shm::kHiddenUid);
}

}  // namespace
}  // namespace dibs::test
