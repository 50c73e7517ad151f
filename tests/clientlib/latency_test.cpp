// tests/clientlib/latency_test.cpp -- which claims are counted, and what is read of the counts.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include "clientlib/clock.hpp"
#include "clientlib/session.hpp"
#include "shm/histogram.hpp"
#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

dibs_latency sized() {
    dibs_latency latency = {};
    latency.size = sizeof latency;
    return latency;
}

uint64_t counted(const Client& client) {
    dibs_latency latency = sized();
    EXPECT_EQ(dibs_session_latency(client, &latency), DIBS_OK);
    EXPECT_LE(latency.p50_ns, latency.p99_ns);
    EXPECT_LE(latency.p99_ns, latency.longest_ns);
    EXPECT_EQ(latency.longest_ns != 0, latency.count != 0);
    return latency.count;
}

// Every claim of units 2 is rejected.
void refuse_pairs(FakeSession& session, const Submission& entry) {
    if (entry.op != Op::kClaim) return session.result(entry);
    if (entry.units == 2) return session.refuse(entry, Outcome::kRejected, Reason::kBusy);
    session.grant(entry, uint64_t{1} << 32 | entry.tag, entry.tag + 1U);
}

TEST(Latency, IsOfGrantedClaimsAloneOneByOneAndInBatches) {
    FakeBroker broker(refuse_pairs);
    Client client(broker);
    EXPECT_EQ(counted(client), 0U);
    (void)client.claim();
    EXPECT_EQ(counted(client), 1U);
    dibs_claim_options two = {};
    two.size = sizeof two;
    two.units = 2;
    std::vector<dibs_op> ops(6, operation(DIBS_OP_CLAIM, 4));
    ops[2].claim = &two;
    ops[5].claim = &two;
    ASSERT_EQ(dibs_submit(client, ops.data(), ops.size()), 6);
    for (size_t told = 0; told < ops.size();) {
        dibs_completion out[6] = {};
        const int count = dibs_reap(client, out, 6, DIBS_FOREVER);
        ASSERT_GT(count, 0);
        told += static_cast<size_t>(count);
    }
    EXPECT_EQ(counted(client), 5U);
}

TEST(Latency, OfAClaimInABatchIsFromItsSubmissionUntilItsGrantIsTakenIn) {
    FakeBroker broker(refuse_pairs);
    Client client(broker);
    broker.hold();
    dibs_op op = operation(DIBS_OP_CLAIM, 4);
    ASSERT_EQ(dibs_submit(client, &op, 1), 1);
    const uint64_t submitted = client::monotonic_ns();
    while (client::monotonic_ns() < submitted + 3'000'000)
        sched_yield();
    broker.go_on();
    dibs_completion out = {};
    ASSERT_EQ(dibs_reap(client, &out, 1, DIBS_FOREVER), 1);
    dibs_latency latency = sized();
    ASSERT_EQ(dibs_session_latency(client, &latency), DIBS_OK);
    EXPECT_EQ(latency.count, 1U);
    EXPECT_GE(latency.p50_ns, 2'900'000);  // how long a tick is has been measured
}

TEST(Latency, DoesNotCountAClaimThatWaitedAgain) {
    FakeBroker broker(refuse_pairs);
    Client client(broker);
    dibs_claim_options again = {};
    again.size = sizeof again;
    again.requeue = 1;
    dibs_op op = operation(DIBS_OP_CLAIM, 4);
    op.claim = &again;
    dibs_completion out = {};
    ASSERT_EQ(dibs_submit(client, &op, 1), 1);
    ASSERT_EQ(dibs_reap(client, &out, 1, DIBS_FOREVER), 1);
    broker.call([](FakeSession& session) {
        session.grant(session.seen.front(), uint64_t{2} << 32 | 1, 9);
    });
    ASSERT_EQ(dibs_reap(client, &out, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(counted(client), 1U);
}

TEST(Latency, IsReadOfTheBoardByPoolAndAsClientsReport) {
    FakeBroker broker;
    Client client(broker);
    auto* of_pools =
        reinterpret_cast<shm::BoardHistogram*>(broker.board() + shm::plan_board(8).histograms);
    auto* head = reinterpret_cast<shm::BoardHead*>(broker.board());
    dibs_latency latency = sized();
    EXPECT_EQ(dibs_pool_latency(client, 0, &latency), DIBS_OK);
    EXPECT_EQ(latency.count, 0U);
    EXPECT_EQ(latency.p50_ns, 0);
    EXPECT_EQ(latency.longest_ns, 0);
    of_pools[0].bucket[shm::histogram_bucket(1'000)].store(98);
    of_pools[0].bucket[shm::histogram_bucket(50'000)].store(1);
    of_pools[0].bucket[shm::histogram_bucket(7'000'000)].store(1);
    head->self_reported.bucket[shm::histogram_bucket(300)].store(5'000'000'000);
    ASSERT_EQ(dibs_pool_latency(client, 0, &latency), DIBS_OK);
    EXPECT_EQ(latency.count, 100U);
    EXPECT_EQ(latency.p50_ns, 1'023);
    EXPECT_EQ(latency.p90_ns, 1'023);
    EXPECT_EQ(latency.p99_ns, 51'199);
    EXPECT_EQ(latency.p999_ns, 7'077'887);
    EXPECT_EQ(latency.longest_ns, 7'077'887);
    ASSERT_EQ(dibs_reported_latency(client, &latency), DIBS_OK);
    EXPECT_EQ(latency.count, 5'000'000'000U);
    EXPECT_EQ(latency.longest_ns, 303);
}

TEST(Latency, HasACodeForEachMistake) {
    FakeBroker broker;
    Client client(broker);
    dibs_latency latency = {};
    EXPECT_EQ(dibs_pool_latency(client, 0, &latency), DIBS_ESIZE);
    EXPECT_EQ(dibs_reported_latency(client, &latency), DIBS_ESIZE);
    EXPECT_EQ(dibs_session_latency(client, nullptr), DIBS_EARGUMENT);
    latency = sized();
    EXPECT_EQ(dibs_pool_latency(client, 1, &latency), DIBS_EPOOL);
    EXPECT_EQ(dibs_pool_latency(client, 4'000'000'000, &latency), DIBS_EPOOL);
    EXPECT_EQ(dibs_pool_latency(nullptr, 0, &latency), DIBS_EARGUMENT);
}

TEST(Wakeups, CountWhomASessionWokeAndWhenItSlept) {
    FakeBroker broker(refuse_pairs);
    Client client(broker);
    dibs_wakeups wakeups = {};
    EXPECT_EQ(dibs_session_wakeups(client, nullptr), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_session_wakeups(client, &wakeups), DIBS_ESIZE);
    wakeups.size = sizeof wakeups;
    ASSERT_EQ(dibs_session_wakeups(client, &wakeups), DIBS_OK);
    EXPECT_EQ(wakeups.bells + wakeups.sleeps, 0U);
    broker.hold();
    while (client.get()->down->need_wakeup.load() == 0)
        sched_yield();
    dibs_op op = operation(DIBS_OP_CLAIM, 4);
    ASSERT_EQ(dibs_submit(client, &op, 1), 1);
    dibs_completion out = {};
    EXPECT_EQ(dibs_reap(client, &out, 1, DIBS_MILLISECOND), 0);  // a spin is shorter
    ASSERT_EQ(dibs_session_wakeups(client, &wakeups), DIBS_OK);
    EXPECT_EQ(wakeups.bells, 1U);
    EXPECT_EQ(wakeups.claim_bells, 1U);
    EXPECT_EQ(wakeups.release_bells, 0U);
    EXPECT_GE(wakeups.sleeps, 1U);
    EXPECT_EQ(wakeups.claim_sleeps, 0U);  // it waited for whatever comes
    broker.go_on();
}

}  // namespace
}  // namespace dibs::test
