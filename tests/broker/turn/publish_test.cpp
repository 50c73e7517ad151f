// tests/broker/turn/publish_test.cpp -- the BOARD's histograms: how long grants took, as the broker
// saw it for each pool, and as the clients say of themselves.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/publish.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "shm/histogram.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using Counts = std::map<uint32_t, uint64_t>;  // by bucket, those that are not 0

Counts counts_of(const shm::BoardHistogram& histogram) {
    Counts counts;
    for (uint32_t i = 0; i < shm::kHistogramBuckets; ++i) {
        const uint64_t count = histogram.bucket[i].load(std::memory_order_relaxed);
        if (count != 0) counts[i] = count;
    }
    return counts;
}

class Board : public testing::Test {
  protected:
    // As the client: what its histogram in UP counts.
    static void says(Session& session, uint32_t bucket, uint32_t count) {
        session.up_mapping.at<shm::UpHistogram>(shm::plan_up(session.sizes).histogram)
            ->bucket[bucket]
            .store(count, std::memory_order_relaxed);
    }
    // Takes `count` completions: each a claim that is refused, the pool being busy.
    void complete(Session& session, uint16_t count) {
        for (uint16_t i = 0; i < count; ++i) {
            shm::Submission entry = claim(static_cast<uint16_t>(i));
            entry.id = 0;  // now or not at all
            bench_.push(session, entry);
        }
        const uint64_t before = session.completion_tail;
        bench_.turn();
        ASSERT_EQ(session.completion_tail, before + count);
        while (bench_.next(session)) {
        }
        bench_.release_read(session);
    }
    [[nodiscard]] Counts self_reported() const {
        return counts_of(bench_.board.head().self_reported);
    }
    Bench bench_;
};

TEST_F(Board, CountsAGrantWhereItsWaitBelongs) {
    bench_.pool({.name = "a", .slots = 1});
    bench_.pool({.name = "b", .slots = 1});
    Session& session = bench_.open();
    bench_.push(session, claim(0, 1));
    bench_.push(session, claim(1, 1));
    bench_.turn();
    EXPECT_EQ(counts_of(bench_.board.histograms()[0]), Counts{});
    EXPECT_EQ(counts_of(bench_.board.histograms()[1]), (Counts{{0, 1}}));
    const auto held = bench_.next(session);
    ASSERT_TRUE(held);
    bench_.now += 1000;
    bench_.push(session, word(shm::Op::kRelease, held->id, held->fence));
    bench_.turn();
    // 1000 = 2^9 * (16 + 15.25) / 16: of the octave that begins with 512 the sixteenth part.
    EXPECT_EQ(counts_of(bench_.board.histograms()[1]), (Counts{{0, 1}, {111, 1}}));
    EXPECT_EQ(self_reported(), Counts{});  // what the broker saw is no client's word
}

TEST_F(Board, SumsWhatClientsSayOfThemselves) {
    bench_.pool({.name = "a", .slots = 1});
    Session& holder = bench_.open();
    bench_.push(holder, claim(0));
    bench_.turn();
    const Counts seen = counts_of(bench_.board.histograms()[0]);
    Session& other = bench_.open();
    complete(holder, 4);
    complete(other, 5);
    says(holder, 7, 3);
    says(holder, 639, 1);
    says(other, 7, 5);
    bench_.publisher.harvest(holder);
    EXPECT_EQ(self_reported(), (Counts{{7, 3}, {639, 1}}));
    bench_.publisher.harvest(other);
    EXPECT_EQ(self_reported(), (Counts{{7, 8}, {639, 1}}));
    bench_.publisher.harvest(holder);  // nothing new
    EXPECT_EQ(self_reported(), (Counts{{7, 8}, {639, 1}}));
    // It stands by itself: the pool's is the broker's own.
    EXPECT_EQ(counts_of(bench_.board.histograms()[0]), seen);
}

TEST_F(Board, BelievesNoMoreThanTheCompletionsThatThereWere) {
    bench_.pool({.name = "a", .slots = 1});
    Session& session = bench_.open();
    bench_.push(session, claim(0));
    bench_.turn();  // one
    complete(session, 3);
    says(session, 2, 3);
    says(session, 9, 4'000'000'000);
    says(session, 10, 7);
    bench_.publisher.harvest(session);
    EXPECT_EQ(self_reported(), (Counts{{2, 3}, {9, 1}}));
    // What was not believed is not made up for later.
    complete(session, 5);
    bench_.publisher.harvest(session);
    EXPECT_EQ(self_reported(), (Counts{{2, 3}, {9, 1}}));
    // Nor do completions add up that nothing was said of.
    complete(session, 2);
    says(session, 10, 107);
    bench_.publisher.harvest(session);
    EXPECT_EQ(self_reported(), (Counts{{2, 3}, {9, 1}, {10, 2}}));
}

TEST_F(Board, AddsNothingForACountThatGoesBackwards) {
    bench_.pool({.name = "a", .slots = 1});
    Session& session = bench_.open();
    bench_.push(session, claim(0));
    bench_.turn();
    complete(session, 7);
    says(session, 4, 6);
    bench_.publisher.harvest(session);
    ASSERT_EQ(self_reported(), (Counts{{4, 6}}));
    complete(session, 8);
    says(session, 4, 2);
    says(session, 5, 1);
    bench_.publisher.harvest(session);
    EXPECT_EQ(self_reported(), (Counts{{4, 6}, {5, 1}}));
    // From there it counts on.
    complete(session, 8);
    says(session, 4, 5);
    bench_.publisher.harvest(session);
    EXPECT_EQ(self_reported(), (Counts{{4, 9}, {5, 1}}));
}

}  // namespace
}  // namespace dibs::test
