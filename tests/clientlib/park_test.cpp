// tests/clientlib/park_test.cpp -- a lease that is put aside and taken again, against a broker that
// reads and changes its word by hand.
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

namespace LeaseWordBit = shm::LeaseWordBit;

constexpr uint64_t kFence = 10;

uint64_t id_of(uint64_t number) {
    return number << 32U | 1;
}

shm::LeaseWord& word_of(FakeSession& session, uint32_t tag) {
    auto* bytes = reinterpret_cast<std::byte*>(&session.up());
    return reinterpret_cast<shm::LeaseWord*>(bytes + shm::plan_up(session.sizes).lease_word)[tag];
}

// Grants each claim, the n-th as claim n; it may be parked.
struct Grants {
    uint64_t number = 0;
    Reason reason = Reason::kMayPark;
    void operator()(FakeSession& session, const Submission& entry) {
        if (entry.op != Op::kClaim) return session.result(entry);
        ++number;
        shm::Completion completion;
        completion.user_data = entry.user_data;
        completion.kind = shm::CompletionKind::kClaim;
        completion.outcome = Outcome::kGranted;
        completion.reason = reason;
        completion.units = entry.units;
        completion.tag = entry.tag;
        completion.id = id_of(number);
        completion.fence = kFence * number;
        completion.claim = number;
        completion.data = shm::kNoRow;
        session.complete(completion);
    }
};

struct Park : testing::Test {
    dibs_lease take() const {
        dibs_completion end = {};
        EXPECT_EQ(dibs_claim(client, 0, nullptr, &end), DIBS_OK);
        EXPECT_EQ(end.kind, DIBS_CLAIM_ENDED);
        EXPECT_EQ(end.outcome, DIBS_GRANTED);
        EXPECT_EQ(end.code, DIBS_OK);
        return end.lease;
    }
    void put(const dibs_lease& lease) const {
        EXPECT_EQ(dibs_release(client, &lease, DIBS_NOWAIT), DIBS_OK);
    }
    // What was submitted so far.
    std::vector<Op> said() {
        std::vector<Op> ops;
        for (const Submission& entry : broker.seen())
            ops.push_back(entry.op);
        return ops;
    }
    // As the turn asks for a lease: what the word was.
    uint64_t want(uint32_t tag) {
        uint64_t before = 0;
        broker.call([&](FakeSession& session) {
            before = word_of(session, tag).word.fetch_or(LeaseWordBit::kWanted);
        });
        return before;
    }
    shm::LeaseWord& word(uint32_t tag) {
        shm::LeaseWord* at = nullptr;
        broker.call([&](FakeSession& session) { at = &word_of(session, tag); });
        return *at;
    }
    FakeBroker broker{Grants()};
    Client client{broker};
};

TEST_F(Park, PutsALeaseAsideAndTakesItWithoutTheBroker) {
    const dibs_lease first = take();
    shm::LeaseWord& at = word(first.tag);
    EXPECT_EQ(at.word, 0U);
    put(first);
    EXPECT_EQ(at.word, 1U << 2U | LeaseWordBit::kFree);
    EXPECT_EQ(at.fence, kFence);
    for (uint64_t i = 1; i < 5000; ++i) {
        const dibs_lease again = take();
        ASSERT_EQ(again.id, first.id);
        ASSERT_EQ(again.fence, first.fence + i);
        ASSERT_EQ(at.word, 1U << 2U);
        ASSERT_EQ(at.fence, again.fence);
        ASSERT_EQ(dibs_lease_state(client, &again, nullptr), DIBS_LIVE);
        put(again);
    }
    EXPECT_EQ(said(), std::vector<Op>{Op::kClaim});
}

TEST_F(Park, LeavesARecalledLeaseAloneAndClaimsAnew) {
    const dibs_lease first = take();
    put(first);
    EXPECT_EQ(want(first.tag), 1U << 2U | LeaseWordBit::kFree);
    const dibs_lease second = take();
    EXPECT_EQ(second.id, id_of(2));
    put(second);
    EXPECT_EQ(take().id, second.id);
    EXPECT_EQ(said(), (std::vector<Op>{Op::kClaim, Op::kClaim}));
}

TEST_F(Park, GivesAWantedLeaseBackThroughTheRing) {
    for (const uint64_t uses : {0U, 3U}) {
        dibs_lease held = take();
        for (uint64_t i = 0; i < uses; ++i) {
            put(held);
            held = take();
        }
        const size_t before = broker.seen().size();
        EXPECT_EQ(want(held.tag) & LeaseWordBit::kFree, 0U);
        put(held);
        broker.wait_for(before + 1);
        const Submission release = broker.seen().back();
        EXPECT_EQ(release.op, Op::kRelease);
        EXPECT_EQ(release.id, held.id);
        EXPECT_EQ(release.fence, held.fence);
        EXPECT_EQ(dibs_release(client, &held, DIBS_FOREVER), DIBS_OK);  // as this broker says
        EXPECT_NE(take().id, held.id);
    }
}

// What the last lease of its tag has left, or a turn that was late for that one, is not about it.
TEST_F(Park, IsNotMisledByTheLeaseBeforeOfItsTag) {
    const dibs_lease first = take();
    put(first);
    EXPECT_NE(want(first.tag), 0U);
    const dibs_lease second = take();
    ASSERT_EQ(second.tag, first.tag);
    shm::LeaseWord& at = word(second.tag);
    EXPECT_EQ(at.word, 1U << 2U);
    put(second);
    EXPECT_EQ(at.word, 2U << 2U | LeaseWordBit::kFree);
    EXPECT_EQ(at.fence, 2 * kFence);
}

TEST_F(Park, IsForOnePlainClaimAtATime) {
    const dibs_lease first = take();
    const dibs_lease second = take();
    put(first);
    put(second);
    // The one that was used last, then the other.
    EXPECT_EQ(take().id, second.id);
    EXPECT_EQ(take().id, first.id);
    EXPECT_EQ(take().id, id_of(3));
    EXPECT_EQ(broker.seen().size(), 3U);
}

TEST_F(Park, IsNotForClaimsOfOtherPoolsOrWithTerms) {
    broker.publish_pool(1, "other", {});
    const dibs_lease first = take();
    put(first);
    dibs_completion end = {};
    ASSERT_EQ(dibs_claim(client, 1, nullptr, &end), DIBS_OK);
    EXPECT_NE(end.lease.id, first.id);
    EXPECT_NE(client.claim(DIBS_FOREVER, DIBS_SECOND).lease.id, first.id);
    dibs_claim_options options = {};
    options.size = sizeof options;
    options.timeout_ns = DIBS_NOWAIT;
    options.key[15] = 1;
    ASSERT_EQ(dibs_claim(client, 0, &options, &end), DIBS_OK);
    EXPECT_NE(end.lease.id, first.id);
    options.key[15] = 0;
    ASSERT_EQ(dibs_claim(client, 0, &options, &end), DIBS_OK);
    EXPECT_EQ(end.lease.id, first.id);
}

// Nor for those that the caller reaps.
TEST_F(Park, IsNotForSubmittedClaims) {
    dibs_op op = operation(DIBS_OP_CLAIM, 5);
    ASSERT_EQ(dibs_submit(client, &op, 1), 1);
    dibs_completion end = {};
    ASSERT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    const size_t before = broker.seen().size();
    put(end.lease);
    broker.wait_for(before + 1);
    EXPECT_EQ(broker.seen().back().op, Op::kRelease);
}

TEST_F(Park, TakesNothingOnceItsSessionIsOver) {
    const dibs_lease first = take();
    put(first);
    broker.call([](FakeSession& session) { session.end(Reason::kMalformed); });
    dibs_completion end = {};
    EXPECT_EQ(dibs_claim(client, 0, nullptr, &end), DIBS_ESESSION);
    EXPECT_NE(dibs_end_code(client), DIBS_OK);
}

TEST(ParkWithoutLeave, IsARelease) {
    Grants plain;
    plain.reason = Reason::kOk;
    FakeBroker broker(plain);
    Client client(broker);
    const dibs_lease lease = client.claim().lease;
    EXPECT_EQ(dibs_release(client, &lease, DIBS_NOWAIT), DIBS_OK);
    broker.wait_for(2);
    EXPECT_EQ(broker.seen().back().op, Op::kRelease);
}

// With every tag of a parked lease the last one of them goes back for another pool's claim.
TEST(ParkedTags, AreFreedForClaims) {
    FakeBroker broker{Grants()};
    for (uint32_t pool = 0; pool < 2; ++pool)
        broker.publish_pool(pool, "p" + std::to_string(pool), {});
    dibs_connect_options sizes = {};
    sizes.leases_max = 8;
    Client client(broker, sizes);
    std::vector<dibs_lease> held;
    dibs_completion end = {};
    for (int i = 0; i < 8; ++i) {
        ASSERT_EQ(dibs_claim(client, 0, nullptr, &end), DIBS_OK);
        held.push_back(end.lease);
    }
    for (const dibs_lease& lease : held)
        EXPECT_EQ(dibs_release(client, &lease, DIBS_NOWAIT), DIBS_OK);
    ASSERT_EQ(dibs_claim(client, 1, nullptr, &end), DIBS_OK);
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
    const std::vector<Submission> seen = broker.seen();
    ASSERT_EQ(seen.size(), 10U);
    EXPECT_EQ(seen[8].op, Op::kRelease);
    EXPECT_EQ(seen[8].id, held.back().id);
    EXPECT_EQ(seen[8].fence, held.back().fence + 1);
    EXPECT_EQ(seen[9].op, Op::kClaim);
}

}  // namespace
}  // namespace dibs::test
