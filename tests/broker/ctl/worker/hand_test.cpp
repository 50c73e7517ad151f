// tests/broker/ctl/worker/hand_test.cpp -- when a process that ends is started again, under a clock
// of the test's own: the back-off doubles, and begins anew behind a life that was long enough.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/hand.hpp"

#include <gtest/gtest.h>

namespace dibs::ctl::worker {
namespace {

constexpr int64_t kBegin = 1000 * DIBS_SECOND;

Options options_of(const std::string& ready_line) {
    Options options;
    options.pool = {"web", 1};
    options.socket = "/no/such/folder/dibs.sock";  // its slot is never taken: it waits, unposted
    options.lines = Lines::kNone;
    options.ready_line = ready_line;
    options.ready_timeout_ns = 3600 * DIBS_SECOND;
    options.name = "w";
    options.command = {"sh", "-c", "exit 3"};
    options.program = "/bin/sh";
    return options;
}

// A hand whose process has ended by itself whenever it is looked at.
class Lives {
  public:
    explicit Lives(const std::string& ready_line = "") : options_(options_of(ready_line)) {}

    // Starts the process, and sees it ended so long after: how long it is not started again.
    int64_t back_off_after(int64_t life_ns) {
        std::vector<pollfd> watched;
        hand_.look(now_ns_);
        EXPECT_NE(hand_.state(), Hand::State::kResting);
        now_ns_ += life_ns;
        while (hand_.state() != Hand::State::kResting) {
            watched.clear();
            hand_.watch(&watched);
            EXPECT_GT(poll(watched.data(), watched.size(), -1), 0);
            hand_.look(now_ns_);
        }
        watched.clear();
        hand_.watch(&watched);
        const int64_t wait_ns = hand_.due_ns() - now_ns_;
        now_ns_ += wait_ns;
        return wait_ns / DIBS_MILLISECOND;
    }
    [[nodiscard]] uint64_t failures() const { return hand_.failures(); }

  private:
    Options options_;
    Ground ground_{false};
    Hand hand_{options_, ground_, 0};
    int64_t now_ns_ = kBegin;
};

TEST(HandBackOff, DoublesAndBeginsAnewBehindTenSecondsOfGoodBehaviour) {
    Lives lives;
    EXPECT_EQ(lives.back_off_after(0), 100);
    EXPECT_EQ(lives.back_off_after(DIBS_SECOND), 200);
    EXPECT_EQ(lives.back_off_after(10 * DIBS_SECOND - 1), 400);
    EXPECT_EQ(lives.failures(), 3U);
    EXPECT_EQ(lives.back_off_after(10 * DIBS_SECOND), 100);
    EXPECT_EQ(lives.failures(), 1U);
    EXPECT_EQ(lives.back_off_after(DIBS_SECOND), 200);
}

TEST(HandBackOff, IsAtMostAsLongAsItMayBe) {
    Lives lives;
    for (int64_t wait = 100; wait < 30'000; wait *= 2)
        EXPECT_EQ(lives.back_off_after(0), wait);
    EXPECT_EQ(lives.back_off_after(0), 30'000);
    EXPECT_EQ(lives.back_off_after(0), 30'000);
}

TEST(HandBackOff, ForgetsNothingOfWhoWasNeverReady) {
    Lives lives("never written");
    EXPECT_EQ(lives.back_off_after(0), 100);
    EXPECT_EQ(lives.back_off_after(60 * DIBS_SECOND), 200);
    EXPECT_EQ(lives.back_off_after(60 * DIBS_SECOND), 400);
}

}  // namespace
}  // namespace dibs::ctl::worker
