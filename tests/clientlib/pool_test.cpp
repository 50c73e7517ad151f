// tests/clientlib/pool_test.cpp -- pools as the BOARD shows them, and the words for codes.
// SPDX-License-Identifier: Apache-2.0
#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

TEST(Pool, IsFoundByItsName) {
    FakeBroker broker;
    broker.publish_pool(1, std::string(63, 'n'), {});
    Client client(broker);
    uint32_t pool = 9;
    EXPECT_EQ(dibs_pool(client, "gpu", &pool), DIBS_OK);
    EXPECT_EQ(pool, 0U);
    EXPECT_EQ(dibs_pool(client, std::string(63, 'n').c_str(), &pool), DIBS_OK);
    EXPECT_EQ(pool, 1U);
    EXPECT_EQ(dibs_pool(client, "gp", &pool), DIBS_EPOOL);
    EXPECT_EQ(dibs_pool(client, "", &pool), DIBS_ENAME);
    EXPECT_EQ(dibs_pool(client, std::string(64, 'n').c_str(), &pool), DIBS_ENAME);
    EXPECT_EQ(dibs_pool(client, nullptr, &pool), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_pool(client, "gpu", nullptr), DIBS_EARGUMENT);
}

TEST(Pool, SaysItsLimits) {
    FakeBroker broker;
    Client client(broker);
    dibs_pool_limits limits = {};
    EXPECT_EQ(dibs_describe(client, 0, &limits), DIBS_ESIZE);
    limits.size = sizeof limits;
    ASSERT_EQ(dibs_describe(client, 0, &limits), DIBS_OK);
    EXPECT_STREQ(limits.name, "gpu");
    EXPECT_EQ(limits.units_max, 4U);
    EXPECT_EQ(limits.payload_max, 16384U);
    EXPECT_EQ(limits.answer_max, 32U);
    EXPECT_EQ(limits.attributes_max, 64U);
    EXPECT_EQ(limits.has_workers, 1);
    EXPECT_EQ(limits.draining, 0);
    EXPECT_EQ(dibs_describe(client, 1, &limits), DIBS_EPOOL);
}

TEST(Snapshot, ShowsAPoolsCounters) {
    FakeBroker broker;
    shm::PoolPicture picture;
    picture.slots = 8;
    picture.idle = 3;
    picture.leased = 4;
    picture.recovering = 1;
    picture.queued = 5;
    picture.hits = 6;
    picture.last_dispatch_ns = 1'000'000'007;
    broker.publish_pool(0, "gpu", picture);
    Client client(broker);
    dibs_counters counters = {};
    EXPECT_EQ(dibs_snapshot(client, 0, &counters), DIBS_ESIZE);
    counters.size = sizeof counters;
    ASSERT_EQ(dibs_snapshot(client, 0, &counters), DIBS_OK);
    EXPECT_EQ(counters.slots, 8U);
    EXPECT_EQ(counters.idle, 3U);
    EXPECT_EQ(counters.leased, 4U);
    EXPECT_EQ(counters.recovering, 1U);
    EXPECT_EQ(counters.queued, 5U);
    EXPECT_EQ(counters.hits, 6U);
    EXPECT_EQ(counters.last_grant_ns, 1'000'000'007);
    EXPECT_EQ(dibs_snapshot(client, 3, &counters), DIBS_EPOOL);
    EXPECT_EQ(dibs_snapshot(client, 4096, &counters), DIBS_EPOOL);
}

TEST(Snapshot, SaysThatItsWriterDiedWithinIt) {
    FakeBroker broker;
    Client client(broker);
    const uint64_t place = shm::plan_board(8).pools;
    reinterpret_cast<shm::BoardPool*>(broker.board() + place)->sequence.fetch_add(1);
    dibs_counters counters = {};
    counters.size = sizeof counters;
    EXPECT_EQ(dibs_snapshot(client, 0, &counters), DIBS_ETORN);
}

TEST(Totals, CountWhatBecameOfAPoolsClaims) {
    FakeBroker broker;
    shm::PoolTotalsPicture picture;
    picture.accepted = 10;
    picture.granted = 7;
    picture.released = 6;
    shm::board_write(
        reinterpret_cast<shm::BoardPoolTotals*>(broker.board() + shm::plan_board(8).totals)[0],
        picture);
    Client client(broker);
    dibs_totals totals = {};
    EXPECT_EQ(dibs_pool_totals(client, 0, &totals), DIBS_ESIZE);
    totals.size = sizeof totals;
    ASSERT_EQ(dibs_pool_totals(client, 0, &totals), DIBS_OK);
    EXPECT_EQ(totals.accepted, 10U);
    EXPECT_EQ(totals.granted, 7U);
    EXPECT_EQ(totals.released, 6U);
    EXPECT_EQ(totals.net_found_work, 0U);
    EXPECT_EQ(dibs_pool_totals(client, 2, &totals), DIBS_EPOOL);
}

TEST(Names, ExistForEveryCode) {
    EXPECT_STREQ(dibs_reason_name(DIBS_EBUSY), "busy");
    EXPECT_STREQ(dibs_outcome_name(DIBS_BROKER_LOST), "broker-lost");
    EXPECT_STREQ(dibs_outcome_name(17), "unknown");
    for (int code = DIBS_EMANAGERGONE; code <= DIBS_ALREADY_ENDED; ++code) {
        EXPECT_STRNE(dibs_reason_name(code), "unknown") << code;
    }
    for (int code = DIBS_ENOVALUE; code <= DIBS_EARGUMENT; ++code) {
        EXPECT_STRNE(dibs_reason_name(code), "unknown") << code;
    }
    EXPECT_STREQ(dibs_reason_name(-1000), "unknown");
    EXPECT_STRNE(dibs_strerror(-1000), "");
    EXPECT_EQ(dibs_version(), 0x000100U);
}

}  // namespace
}  // namespace dibs::test
