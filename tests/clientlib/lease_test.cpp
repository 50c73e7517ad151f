// tests/clientlib/lease_test.cpp -- a lease: given back, kept alive, in its grace, ended.
// SPDX-License-Identifier: Apache-2.0
#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

TEST(Lease, IsGivenBackOnce) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        if (entry.op == Op::kClaim) return session.grant(entry, uint64_t{1} << 32 | 1, 1);
        const bool second = session.seen.size() > 2;
        session.result(entry, second ? Reason::kAlreadyEnded : Reason::kOk);
    });
    Client client(broker);
    const dibs_completion held = client.claim();
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_NOWAIT), DIBS_ALREADY_ENDED);
    int code = 0;
    EXPECT_EQ(dibs_lease_state(client, &held.lease, &code), DIBS_ENDED);
    EXPECT_EQ(code, DIBS_ALREADY_ENDED);
    int64_t left = 0;
    EXPECT_EQ(dibs_lease_remaining(client, &held.lease, &left), DIBS_ALREADY_ENDED);
}

TEST(Lease, ThatHasExpiredStaysEndedWhenItsTagIsGrantedAgain) {
    uint32_t grants = 0;
    FakeBroker broker([&](FakeSession& session, const Submission& entry) {
        if (entry.op != Op::kClaim) return session.result(entry);
        ++grants;
        session.grant(entry, uint64_t{grants} << 32 | 1, grants);
    });
    Client client(broker);
    const dibs_completion first = client.claim(DIBS_FOREVER, DIBS_SECOND);
    broker.call([&](FakeSession& session) {
        session.event(static_cast<uint16_t>(first.lease.tag),
                      shm::event_word(shm::LeaseEvent::kEnded, Reason::kExpiredLease, 1));
    });
    dibs_completion told = {};
    ASSERT_EQ(dibs_reap(client, &told, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(told.kind, DIBS_LEASE_ENDED);
    int code = 0;
    EXPECT_EQ(dibs_lease_state(client, &first.lease, &code), DIBS_ENDED);
    EXPECT_EQ(code, DIBS_EEXPIRED);
    const dibs_completion second = client.claim();
    ASSERT_EQ(second.lease.tag, first.lease.tag);
    EXPECT_EQ(dibs_lease_state(client, &first.lease, &code), DIBS_ENDED);
    EXPECT_EQ(code, DIBS_ALREADY_ENDED);
    EXPECT_EQ(dibs_lease_state(client, &second.lease, &code), DIBS_LIVE);
    const dibs_lease nobodys = {};
    EXPECT_EQ(dibs_lease_state(client, &nobodys, &code), DIBS_ENOTFOUND);
}

// Until then the broker keeps its answers in their place.
TEST(Lease, ThatHasEndedIsSaidToBeReadNoMoreOnceItsTagIsFree) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        if (entry.op == Op::kClaim) session.grant(entry, uint64_t{7} << 32 | entry.tag, 1);
    });
    Client client(broker);
    const dibs_completion kept = client.claim();
    const dibs_completion given_back = client.claim();
    broker.call([&](FakeSession& session) {
        for (const dibs_completion& held : {kept, given_back}) {
            session.event(static_cast<uint16_t>(held.lease.tag),
                          shm::event_word(shm::LeaseEvent::kEnded, Reason::kDone, 7));
        }
    });
    EXPECT_EQ(dibs_release(client, &given_back.lease, DIBS_NOWAIT), DIBS_ALREADY_ENDED);
    dibs_completion told = {};
    ASSERT_EQ(dibs_reap(client, &told, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(told.lease.id, kept.lease.id);
    const dibs_completion next = client.claim();
    EXPECT_EQ(next.outcome, DIBS_GRANTED);
    const std::vector<Submission> seen = broker.seen();
    ASSERT_EQ(seen.size(), 5U);
    for (const Submission& word : {seen[2], seen[3]}) {
        EXPECT_EQ(word.op, Op::kNop);
        EXPECT_EQ(word.id, 1U);
        EXPECT_EQ(word.flags, shm::OpFlag::kQuiet);
    }
    EXPECT_EQ(seen[2].tag + seen[3].tag, kept.lease.tag + given_back.lease.tag);
    EXPECT_NE(seen[2].tag, seen[3].tag);
    EXPECT_EQ(seen[4].op, Op::kClaim);
}

TEST(Lease, OfAnEarlierFenceIsStaleAndOfNobodyNotFound) {
    FakeBroker broker;
    Client client(broker);
    const dibs_completion held = client.claim();
    dibs_lease lease = held.lease;
    lease.fence -= 1;
    EXPECT_EQ(dibs_release(client, &lease, DIBS_NOWAIT), DIBS_ESTALE);
    EXPECT_EQ(dibs_keepalive(client, &lease, 0, DIBS_NOWAIT, nullptr), DIBS_ESTALE);
    int64_t left = 0;
    EXPECT_EQ(dibs_lease_remaining(client, &lease, &left), DIBS_ESTALE);
    const dibs_lease none = {};
    EXPECT_EQ(dibs_lease_remaining(client, &none, &left), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_release(client, nullptr, 0), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_release(client, &held.lease, -1), DIBS_ENEGATIVE);
    EXPECT_EQ(broker.seen().size(), 1U);
}

TEST(Lease, OfAnotherSessionIsTheBrokersToJudge) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        shm::Completion completion;
        completion.user_data = entry.user_data;
        completion.reason = Reason::kNotHolder;
        shm::set_holder(completion, {1001, 99, 7, 3});
        session.complete(completion);
    });
    Client client(broker);
    const dibs_lease theirs = {5, 6, 0x900000000ULL, 0, 1};
    EXPECT_EQ(dibs_release(client, &theirs, DIBS_NOWAIT), DIBS_ENOTHOLDER);
    dibs_holder holder = {};
    EXPECT_EQ(dibs_last_holder(client, &holder), DIBS_OK);
    EXPECT_EQ(holder.uid, 1001U);
    EXPECT_EQ(holder.pid, 99U);
    EXPECT_EQ(holder.claim, 3U);
    int64_t left = 0;
    EXPECT_EQ(dibs_lease_remaining(client, &theirs, &left), DIBS_ENOTFOUND);
}

TEST(Lease, LivesOnWhenKeptAlive) {
    FakeBroker broker;
    Client client(broker);
    const dibs_completion held = client.claim(DIBS_FOREVER, DIBS_SECOND);
    int64_t granted = 0;
    EXPECT_EQ(dibs_keepalive(client, &held.lease, 100 * DIBS_SECOND, DIBS_FOREVER, &granted),
              DIBS_OK);
    EXPECT_EQ(granted, 100 * DIBS_SECOND);
    int64_t left = 0;
    EXPECT_EQ(dibs_lease_remaining(client, &held.lease, &left), DIBS_OK);
    EXPECT_GT(left, DIBS_SECOND);
    EXPECT_LE(left, 100 * DIBS_SECOND);
    EXPECT_EQ(dibs_keepalive(client, &held.lease, -1, 0, nullptr), DIBS_ENEGATIVE);
    EXPECT_EQ(dibs_keepalive(client, &held.lease, 0, DIBS_NOWAIT, nullptr), DIBS_OK);
}

TEST(Lease, BoundToTheProcessHasNoEnd) {
    FakeBroker broker;
    Client client(broker);
    const dibs_completion held = client.claim();
    int64_t left = 0;
    EXPECT_EQ(dibs_lease_remaining(client, &held.lease, &left), DIBS_OK);
    EXPECT_EQ(left, DIBS_FOREVER);
}

constexpr uint64_t kInGrace = shm::event_word(shm::LeaseEvent::kGrace, Reason::kOk, 1);
constexpr uint64_t kLivesAgain = shm::event_word(shm::LeaseEvent::kNone, Reason::kOk, 1);

// Of the first tag, whose lease a keepalive brings back; `expires`: and which expires once more by
// the time that it is told of that.
FakeBroker::Script reviving(bool expires = false) {
    return [expires](FakeSession& session, const Submission& entry) {
        if (entry.op == Op::kClaim) {
            const uint64_t lease = uint64_t{1} << 32 | entry.tag;
            return session.grant(entry, lease, entry.tag + 1U, entry.fence);
        }
        if (entry.op == Op::kKeepalive) session.event(0, kLivesAgain);
        if (entry.op == Op::kKeepalive && expires) session.event(0, kInGrace);
        session.result(entry);
    };
}

// What there is to reap of leases, and nothing else.
std::vector<int> events_of(dibs_session* session) {
    std::vector<int> kinds;
    dibs_completion out = {};
    while (dibs_reap(session, &out, 1, DIBS_NOWAIT) == 1)
        kinds.push_back(out.kind);
    return kinds;
}

const std::vector<int> kOneGrace = {DIBS_LEASE_GRACE};

TEST(Lease, LivesAgainWhateverIsToldOfOthers) {
    FakeBroker broker(reviving());
    Client client(broker);
    const dibs_completion held = client.claim(DIBS_FOREVER, DIBS_SECOND);
    const dibs_completion other = client.claim();
    broker.call([](FakeSession& session) { session.event(0, kInGrace); });
    EXPECT_EQ(events_of(client), kOneGrace);
    EXPECT_EQ(dibs_keepalive(client, &held.lease, 0, DIBS_FOREVER, nullptr), DIBS_OK);
    broker.call([&](FakeSession& session) {
        session.event(static_cast<uint16_t>(other.lease.tag),
                      shm::event_word(shm::LeaseEvent::kEnded, Reason::kDone, 1));
    });
    EXPECT_EQ(events_of(client), std::vector<int>{DIBS_LEASE_ENDED});
    EXPECT_EQ(dibs_lease_state(client, &held.lease, nullptr), DIBS_LIVE);
}

TEST(Lease, LivesAgainByAKeepaliveThatNobodyWaitsFor) {
    FakeBroker broker(reviving());
    Client client(broker);
    const dibs_completion held = client.claim(DIBS_FOREVER, DIBS_SECOND);
    for (size_t time = 1; time <= 2; ++time) {
        SCOPED_TRACE(time);
        broker.call([](FakeSession& session) { session.event(0, kInGrace); });
        EXPECT_EQ(events_of(client), kOneGrace);
        EXPECT_EQ(dibs_keepalive(client, &held.lease, 0, DIBS_NOWAIT, nullptr), DIBS_OK);
        EXPECT_EQ(events_of(client), std::vector<int>{});
        broker.wait_for(1 + time);
        EXPECT_EQ(dibs_lease_state(client, &held.lease, nullptr), DIBS_LIVE);
    }
}

TEST(Lease, SaysThatItsSecondGraceHasBegunBeforeItHeardOfTheFirstOnesEnd) {
    FakeBroker broker(reviving(true));
    Client client(broker);
    const dibs_completion held = client.claim(DIBS_FOREVER, DIBS_SECOND);
    broker.call([](FakeSession& session) { session.event(0, kInGrace); });
    EXPECT_EQ(events_of(client), kOneGrace);
    EXPECT_EQ(dibs_keepalive(client, &held.lease, 0, DIBS_FOREVER, nullptr), DIBS_OK);
    EXPECT_EQ(dibs_lease_state(client, &held.lease, nullptr), DIBS_IN_GRACE);
    EXPECT_EQ(events_of(client), kOneGrace);
}

TEST(Lease, SaysThatItIsInItsGraceThenThatItHasEnded) {
    FakeBroker broker(reviving());
    Client client(broker);
    const dibs_completion held = client.claim(DIBS_FOREVER, DIBS_SECOND);
    const auto tag = static_cast<uint16_t>(held.lease.tag);
    int code = 0;
    EXPECT_EQ(dibs_lease_state(client, &held.lease, &code), DIBS_LIVE);
    broker.call([&](FakeSession& session) {
        session.event(tag, shm::event_word(shm::LeaseEvent::kGrace, Reason::kOk, 1));
    });
    EXPECT_EQ(dibs_lease_state(client, &held.lease, &code), DIBS_IN_GRACE);
    EXPECT_EQ(dibs_keepalive(client, &held.lease, 0, DIBS_FOREVER, nullptr), DIBS_OK);
    EXPECT_EQ(dibs_lease_state(client, &held.lease, &code), DIBS_LIVE);
    broker.call([&](FakeSession& session) {
        session.event(tag, shm::event_word(shm::LeaseEvent::kEnded, Reason::kExpiredLease, 1));
    });
    EXPECT_EQ(dibs_lease_state(client, &held.lease, &code), DIBS_ENDED);
    EXPECT_EQ(code, DIBS_EEXPIRED);
    EXPECT_EQ(dibs_keepalive(client, &held.lease, 0, DIBS_NOWAIT, nullptr), DIBS_ALREADY_ENDED);
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_NOWAIT), DIBS_ALREADY_ENDED);
}

TEST(Lease, EventOfAnEarlierGenerationIsNotItsOwn) {
    FakeBroker broker;
    Client client(broker);
    const dibs_completion held = client.claim();
    broker.call([&](FakeSession& session) {
        session.event(static_cast<uint16_t>(held.lease.tag),
                      shm::event_word(shm::LeaseEvent::kEnded, Reason::kExpiredLease, 9));
    });
    EXPECT_EQ(dibs_lease_state(client, &held.lease, nullptr), DIBS_LIVE);
}

}  // namespace
}  // namespace dibs::test
