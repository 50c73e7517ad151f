// tests/broker/admin/measured_test.cpp -- what the broker measures, as who asks is told it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/measured.hpp"

#include <gtest/gtest.h>

#include "broker/admin/desk.hpp"
#include "broker/turn/pool_sets.hpp"
#include "broker/turn/waits.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using Counts = std::vector<uint64_t>;

class Measured : public testing::Test {
  protected:
    AdminJob ask(admin::Ask what, bool measured = true) {
        AdminJob job;
        job.request.ask = what;
        job.request.measured = measured;
        desk_.serve(job);
        tell_measured(bench_.core, bench_.publisher, &job);
        return job;
    }
    // Of one path of the first pool: counts up to the last one that is not 0.
    Counts waits(size_t path) {
        Counts counts = ask(admin::Ask::pools).answer.pools.at(0)->waits.at(path)->counts;
        while (!counts.empty() && counts.back() == 0)
            counts.pop_back();
        return counts;
    }
    Bench bench_;
    PoolSets sets_{bench_.core, bench_.board};
    Desk desk_{bench_.core, bench_.quotas, bench_.words, bench_.sessions, sets_};
};

TEST(Waits, CountAWaitAtTheFirstBoundThatHoldsIt) {
    EXPECT_EQ(Waits::bound_ns(0), 1'024U);
    EXPECT_EQ(Waits::bound_ns(1), 4'096U);
    EXPECT_EQ(Waits::bound_ns(15), 1'099'511'627'776U);  // 18 minutes
    EXPECT_EQ(Waits::index_of(0), 0U);
    EXPECT_EQ(Waits::index_of(1'024), 0U);
    EXPECT_EQ(Waits::index_of(1'025), 1U);
    EXPECT_EQ(Waits::index_of(4'096), 1U);
    EXPECT_EQ(Waits::index_of(4'097), 2U);
    EXPECT_EQ(Waits::index_of(1'099'511'627'776), 15U);
    EXPECT_EQ(Waits::index_of(1'099'511'627'777), 16U);
    EXPECT_EQ(Waits::index_of(~uint64_t{0}), 16U);
}

TEST_F(Measured, TellsWaitsByThePathToTheGrant) {
    bench_.pool({.name = "gpu", .slots = 2});
    Session& session = bench_.open();
    session.singly = true;
    bench_.push(session, claim(0));
    bench_.read(true);  // answered here
    bench_.finish();
    EXPECT_EQ(waits(0), Counts{1});
    EXPECT_EQ(waits(1), Counts{});
    session.singly = false;
    bench_.push(session, claim(1));
    bench_.turn();
    EXPECT_EQ(waits(1), Counts{1});
    const auto held = bench_.next(session);
    ASSERT_TRUE(held);
    bench_.push(session, claim(2));
    bench_.turn();
    bench_.now += 5'000;
    bench_.push(session, word(shm::Op::kRelease, held->id, held->fence));
    bench_.turn();
    EXPECT_EQ(waits(0), Counts{1});
    EXPECT_EQ(waits(1), Counts{1});
    EXPECT_EQ(waits(2), (Counts{0, 0, 1}));
    const AdminJob job = ask(admin::Ask::pools);
    EXPECT_EQ(job.answer.pools[0]->waits.at(0)->path, "fast");
    EXPECT_EQ(job.answer.pools[0]->waits.at(1)->path, "at_once");
    EXPECT_EQ(job.answer.pools[0]->waits.at(2)->path, "queued");
    EXPECT_EQ(job.answer.pools[0]->waits.at(2)->sum_ns, 5'000U);
}

TEST_F(Measured, TellsOnlyWhoAsksForIt) {
    bench_.pool({.name = "gpu", .slots = 2});
    EXPECT_TRUE(ask(admin::Ask::pools, false).answer.pools[0]->waits.empty());
    EXPECT_TRUE(ask(admin::Ask::status, false).answer.status->wait_bounds_ns.empty());
    const AdminJob job = ask(admin::Ask::status);
    EXPECT_EQ(job.answer.status->wait_bounds_ns.size(), 16U);
    EXPECT_EQ(job.answer.status->reported->counts.size(), 17U);
}

// The bucket of the BOARD that begins with 4,096 and ends before 4,352 stands for its middle.
TEST_F(Measured, SumsUpWhatClientsSayFromTheMiddleOfItsBucket) {
    bench_.board.head().self_reported.bucket[144].store(3);
    const AdminJob job = ask(admin::Ask::status);
    EXPECT_EQ(job.answer.status->reported->counts[2], 3U);
    EXPECT_EQ(job.answer.status->reported->sum_ns, 3 * 4'223U);
}

}  // namespace
}  // namespace dibs::test
