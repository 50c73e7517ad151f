// tests/clientlib/adoption_test.cpp -- a lease of another session becomes this one's, and every tag
// stays in its place.
// SPDX-License-Identifier: Apache-2.0
#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

constexpr uint32_t kTags = 8;

// Refuses claims without a timeout, grants all others; what is adopted is there.
void answer(FakeSession& session, const Submission& entry) {
    if (entry.op == Op::kClaim && entry.id == 0) {
        return session.refuse(entry, Outcome::kRejected, Reason::kBusy);
    }
    const uint64_t lease = uint64_t{1} << 32 | entry.tag;
    if (entry.op == Op::kClaim) return session.grant(entry, lease, 7);
    if (entry.op != Op::kAdopt) return session.result(entry);
    shm::Completion adopted;
    adopted.kind = shm::CompletionKind::kResult;
    adopted.user_data = entry.user_data;
    adopted.tag = entry.tag;
    adopted.units = 1;
    adopted.id = entry.id;
    adopted.fence = entry.fence;
    adopted.claim = 7;
    session.complete(adopted);
}

dibs_connect_options small() {
    dibs_connect_options options = {};
    options.submission_entries = 8;
    options.completion_entries = 32;
    options.leases_max = kTags;
    return options;
}

// How many more leases the session can have.
uint32_t claim_all(const Client& client) {
    for (uint32_t count = 0;; ++count) {
        dibs_completion end = {};
        const int code = dibs_claim(client, 0, nullptr, &end);
        if (code == DIBS_ELIMIT) return count;
        EXPECT_EQ(code, DIBS_OK);
        if (code != DIBS_OK || count > kTags) return count;
    }
}

TEST(Adoption, LosesNoTagOfClaimsThatEndWhileRoomIsMadeForIt) {
    FakeBroker broker(answer);
    Client client(broker, small());
    dibs_claim_options now = {};
    now.size = sizeof now;
    const dibs_lease nobodys = {99, 1, 0, 0, 1};
    std::vector<dibs_op> ops(7, operation(DIBS_OP_CLAIM, 1));
    for (size_t i = 0; i < ops.size(); ++i) {
        ops[i].claim = &now;
        if (i < 4) continue;
        ops[i].kind = DIBS_OP_RELEASE;
        ops[i].flags = DIBS_QUIET;
        ops[i].lease = &nobodys;
    }
    ASSERT_EQ(dibs_submit(client, ops.data(), ops.size()), 7);  // as many as there are lines
    broker.wait_for(7);
    dibs_lease lease = {};
    ASSERT_EQ(dibs_adopt(client, uint64_t{3} << 32 | 5, 4, DIBS_FOREVER, &lease), DIBS_OK);
    EXPECT_EQ(claim_all(client), kTags - 1);
}

// An adopted lease that was given back may have been called what a later claim of its tag is.
TEST(Adoption, GivenBackTakesNoLaterClaimsGrant) {
    FakeBroker broker(answer);
    Client client(broker, small());
    dibs_completion end = client.claim();
    // Answers have been used more often than tags, which catch up.
    for (int i = 0; i < 4; ++i) {
        ASSERT_EQ(dibs_keepalive(client, &end.lease, 0, DIBS_FOREVER, nullptr), DIBS_OK);
    }
    ASSERT_EQ(dibs_release(client, &end.lease, DIBS_FOREVER), DIBS_OK);
    dibs_claim_options patient = {};
    patient.size = sizeof patient;
    patient.timeout_ns = 5 * DIBS_SECOND;
    patient.requeue = 1;  // its grant is looked at closely
    for (uint64_t i = 1; i < 8; ++i) {
        dibs_lease lease = {};
        ASSERT_EQ(dibs_adopt(client, i << 32 | 5, i, DIBS_FOREVER, &lease), DIBS_OK);
        ASSERT_EQ(dibs_release(client, &lease, DIBS_NOWAIT), DIBS_OK);
        ASSERT_EQ(dibs_claim(client, 0, &patient, &end), DIBS_OK);
        EXPECT_EQ(end.outcome, DIBS_GRANTED) << i;
        if (end.outcome != DIBS_GRANTED) return;
        ASSERT_EQ(dibs_release(client, &end.lease, DIBS_NOWAIT), DIBS_OK);
    }
}

TEST(Adoption, GivesItsTagBackWithTheLease) {
    FakeBroker broker(answer);
    Client client(broker, small());
    for (uint32_t i = 0; i < 3 * kTags; ++i) {
        dibs_lease lease = {};
        ASSERT_EQ(dibs_adopt(client, uint64_t{i + 1} << 32 | 5, i + 1, DIBS_FOREVER, &lease),
                  DIBS_OK);
        ASSERT_EQ(dibs_release(client, &lease, DIBS_FOREVER), DIBS_OK);
    }
    EXPECT_EQ(claim_all(client), kTags);
}

TEST(Adoption, ThatIsRefusedGivesItsTagBack) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        if (entry.op == Op::kAdopt) return session.result(entry, Reason::kEnded);
        answer(session, entry);
    });
    Client client(broker, small());
    for (uint32_t i = 0; i < 3 * kTags; ++i) {
        dibs_lease lease = {};
        ASSERT_EQ(dibs_adopt(client, 5, 1, DIBS_FOREVER, &lease), DIBS_EENDED);
    }
    EXPECT_EQ(claim_all(client), kTags);
}

}  // namespace
}  // namespace dibs::test
