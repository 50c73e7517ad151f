// tests/clientlib/touch_test.cpp -- leases that are kept by their word, against a broker that reads
// it by hand.
// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

constexpr uint64_t kTouchFence = 10;

uint64_t touches_of(FakeSession& session, uint32_t tag) {
    auto* bytes = reinterpret_cast<std::byte*>(&session.up());
    return reinterpret_cast<shm::TouchWord*>(bytes + shm::plan_up(session.sizes).touch_word)[tag]
        .touches;
}

// Grants what is asked for; what is adopted is kept by its word.
void keep_by_word(FakeSession& session, const Submission& entry) {
    const uint64_t lease = uint64_t{kTouchFence} << 32U | entry.tag;
    if (entry.op == Op::kClaim) return session.grant(entry, lease, kTouchFence, entry.fence);
    if (entry.op != Op::kAdopt) return session.result(entry);
    shm::Completion adopted;
    adopted.kind = shm::CompletionKind::kResult;
    adopted.reason = Reason::kByWord;
    adopted.user_data = entry.user_data;
    adopted.tag = entry.tag;
    adopted.units = 1;
    adopted.id = entry.id;
    adopted.fence = entry.fence;
    adopted.value = static_cast<uint64_t>(DIBS_SECOND);
    adopted.claim = 7;
    session.complete(adopted);
}

struct Touch : testing::Test {
    dibs_lease claim(int32_t keep = DIBS_KEEP_BY_WORD, int64_t interval_ns = 100 * DIBS_SECOND) {
        dibs_claim_options options = {};
        options.size = sizeof options;
        options.timeout_ns = DIBS_FOREVER;
        options.interval_ns = interval_ns;
        options.keep = keep;
        dibs_completion end = {};
        EXPECT_EQ(dibs_claim(client, 0, &options, &end), DIBS_OK);
        EXPECT_EQ(end.outcome, DIBS_GRANTED);
        return end.lease;
    }
    uint64_t touches(const dibs_lease& lease) {
        uint64_t found = 0;
        broker.call([&](FakeSession& session) { found = touches_of(session, lease.tag); });
        return found;
    }
    void tell(const dibs_lease& lease, uint8_t event, Reason reason) {
        broker.call([&](FakeSession& session) {
            session.event(static_cast<uint16_t>(lease.tag),
                          shm::event_word(event, reason, static_cast<uint32_t>(lease.id >> 32U)));
        });
    }
    FakeBroker broker{keep_by_word};
    Client client{broker};
};

TEST_F(Touch, AddsOneToTheWordAndAsksNobody) {
    const dibs_lease lease = claim();
    EXPECT_EQ(broker.seen().at(0).flags, shm::OpFlag::kByWord);
    EXPECT_EQ(touches(lease), 0U);
    for (int i = 0; i < 5000; ++i)
        ASSERT_EQ(dibs_touch(client, &lease), DIBS_OK);
    EXPECT_EQ(touches(lease), 5000U);
    EXPECT_EQ(broker.seen().size(), 1U);
    dibs_wakeups woken = {};
    woken.size = sizeof woken;
    ASSERT_EQ(dibs_session_wakeups(client, &woken), DIBS_OK);
    EXPECT_LE(woken.bells, 1U);
}

TEST_F(Touch, BeginsAnewWithEachClaimOfTheTag) {
    const dibs_lease first = claim();
    EXPECT_EQ(dibs_touch(client, &first), DIBS_OK);
    EXPECT_EQ(dibs_touch(client, &first), DIBS_OK);
    EXPECT_EQ(dibs_release(client, &first, DIBS_FOREVER), DIBS_OK);
    const dibs_lease second = claim();
    ASSERT_EQ(second.tag, first.tag);
    EXPECT_EQ(touches(second), 0U);
    EXPECT_EQ(dibs_touch(client, &second), DIBS_OK);
    EXPECT_EQ(touches(second), 1U);
}

// As adoption is what a tag is used for next.
TEST_F(Touch, KeepsAnAdoptedLeaseWhoseHolderKeptItSo) {
    const dibs_lease first = claim();
    EXPECT_EQ(dibs_touch(client, &first), DIBS_OK);
    EXPECT_EQ(dibs_release(client, &first, DIBS_FOREVER), DIBS_OK);
    dibs_lease adopted = {};
    ASSERT_EQ(dibs_adopt(client, uint64_t{3} << 32U | 5, 4, DIBS_FOREVER, &adopted), DIBS_OK);
    ASSERT_EQ(adopted.tag, first.tag);
    EXPECT_EQ(touches(adopted), 0U);
    EXPECT_EQ(dibs_touch(client, &adopted), DIBS_OK);
    EXPECT_EQ(touches(adopted), 1U);
}

TEST_F(Touch, SaysWhatIsWrong) {
    const dibs_lease lease = claim();
    const dibs_lease by_calls = claim(DIBS_KEEP_BY_CALLS);
    const dibs_lease for_life = claim(DIBS_KEEP_BY_CALLS, 0);
    dibs_lease other = lease;
    other.session += 1;
    dibs_lease stale = lease;
    stale.fence += 1;
    const dibs_lease none = {};
    EXPECT_EQ(dibs_touch(nullptr, &lease), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_touch(client, nullptr), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_touch(client, &by_calls), DIBS_ESTATE);
    EXPECT_EQ(dibs_touch(client, &for_life), DIBS_ESTATE);
    EXPECT_EQ(dibs_touch(client, &other), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_touch(client, &none), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_touch(client, &stale), DIBS_ESTALE);
    EXPECT_EQ(touches(lease), 0U);
    EXPECT_EQ(dibs_release(client, &lease, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(dibs_touch(client, &lease), DIBS_ALREADY_ENDED);
}

TEST_F(Touch, OfAClaimWithoutAnIntervalIsNoWish) {
    dibs_claim_options options = {};
    options.size = sizeof options;
    dibs_completion end = {};
    for (const auto& [keep, interval_ns] :
         std::vector<std::pair<int32_t, int64_t>>{{DIBS_KEEP_BY_WORD, 0}, {2, 1}, {-1, 1}}) {
        options.keep = keep;
        options.interval_ns = interval_ns;
        EXPECT_EQ(dibs_claim(client, 0, &options, &end), DIBS_EARGUMENT);
    }
    EXPECT_TRUE(broker.seen().empty());
}

// A caller of the first version has a smaller struct, and no such field.
TEST_F(Touch, IsNotWhatOlderCallersAskedFor) {
    dibs_claim_options options = {};
    options.timeout_ns = DIBS_FOREVER;
    options.interval_ns = DIBS_SECOND;
    options.size = offsetof(dibs_claim_options, prefer);
    options.keep = DIBS_KEEP_BY_WORD;
    dibs_completion end = {};
    ASSERT_EQ(dibs_claim(client, 0, &options, &end), DIBS_OK);
    EXPECT_EQ(broker.seen().at(0).flags, 0U);
    EXPECT_EQ(dibs_touch(client, &end.lease), DIBS_ESTATE);
}

TEST_F(Touch, ComesTooLateForALeaseThatHasExpired) {
    const dibs_lease lease = claim();
    EXPECT_EQ(dibs_touch(client, &lease), DIBS_OK);
    tell(lease, shm::LeaseEvent::kGrace, Reason::kOk);
    EXPECT_EQ(dibs_touch(client, &lease), DIBS_EEXPIRED);
    EXPECT_EQ(touches(lease), 1U);
    tell(lease, shm::LeaseEvent::kNone, Reason::kOk);  // as a broker does before its result
    ASSERT_EQ(dibs_keepalive(client, &lease, 0, DIBS_FOREVER, nullptr), DIBS_OK);
    EXPECT_EQ(dibs_touch(client, &lease), DIBS_OK);
    EXPECT_EQ(touches(lease), 2U);
    tell(lease, shm::LeaseEvent::kRevoking, Reason::kRevoked);
    EXPECT_EQ(dibs_touch(client, &lease), DIBS_EREVOKED);
    tell(lease, shm::LeaseEvent::kEnded, Reason::kExpiredLease);
    EXPECT_EQ(dibs_touch(client, &lease), DIBS_ALREADY_ENDED);
    EXPECT_EQ(touches(lease), 2U);
}

TEST_F(Touch, LearnsThatTheSessionHasEnded) {
    const dibs_lease lease = claim();
    EXPECT_EQ(dibs_touch(client, &lease), DIBS_OK);
    broker.call([](FakeSession& session) { session.end(Reason::kStateLost); });
    EXPECT_EQ(dibs_touch(client, &lease), DIBS_ESTATELOST);
}

// It asks nothing, so only a look at the socket can tell.
TEST_F(Touch, LearnsThatNobodyIsThere) {
    const dibs_lease lease = claim();
    broker.die();
    int code = DIBS_OK;
    while (code == DIBS_OK)
        code = dibs_touch(client, &lease);
    EXPECT_EQ(code, DIBS_EBROKERLOST);
}

TEST_F(Touch, OfAForkedChildDoesNothing) {
    const dibs_lease lease = claim();
    const pid_t child = fork();
    if (child == 0) _exit(dibs_touch(client, &lease) == DIBS_EFORK ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(touches(lease), 0U);
}

TEST_F(Touch, MovesWhatIsLeft) {
    const dibs_lease lease = claim();
    int64_t before = 0;
    ASSERT_EQ(dibs_lease_remaining(client, &lease, &before), DIBS_OK);
    int64_t left = before;
    while (left > before - 10'000'000) {  // some of it passes
        ASSERT_EQ(dibs_lease_remaining(client, &lease, &left), DIBS_OK);
    }
    ASSERT_EQ(dibs_touch(client, &lease), DIBS_OK);
    int64_t after = 0;
    ASSERT_EQ(dibs_lease_remaining(client, &lease, &after), DIBS_OK);
    EXPECT_GT(after, left);
    EXPECT_LE(after, 100 * DIBS_SECOND);
}

}  // namespace
}  // namespace dibs::test
