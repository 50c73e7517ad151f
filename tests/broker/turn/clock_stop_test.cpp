// tests/broker/turn/clock_stop_test.cpp -- for whom time stands still, and for whom no longer.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/clock_stop.hpp"

#include <gtest/gtest.h>

#include "broker/turn/clock.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

struct ClockStopTest : testing::Test {
    void say(Session& session) {
        shm::Submission entry;
        entry.op = shm::Op::kCancel;
        entry.id = 7;  // there is none
        bench.push(session, entry);
    }
    // The turn's part: what it would take for now, where something has been due for `late`.
    core::TimeNs at(core::TimeNs late) {
        const core::TimeNs now = clock.now();
        return clock_stop.at(now, now - late);
    }

    Bench bench;
    Session& one = bench.open();
    Session& other = bench.open();
    Clock clock{1'000'000'000'000};
    ClockStop clock_stop{bench.core, bench.sessions, clock};
};

constexpr core::TimeNs kLate = ClockStop::kLateNs + 1'000'000'000;

TEST_F(ClockStopTest, IsNoneForWhatIsALittleLate) {
    say(one);
    (void)at(ClockStop::kLateNs / 2);
    EXPECT_FALSE(clock_stop.stands());
}

TEST_F(ClockStopTest, LastsUntilWhatWasThereHasBeenRead) {
    bench.sessions.unpoll(&one);
    say(one);
    say(one);
    const core::TimeNs instant = at(kLate);
    EXPECT_TRUE(clock_stop.stands());
    EXPECT_TRUE(one.polled);  // though it has rung for nobody
    EXPECT_EQ(at(0), instant);
    bench.turn();
    EXPECT_LT(at(0) - instant, kLate);
    EXPECT_FALSE(clock_stop.stands());
    EXPECT_EQ(clock.offset(), bench.core.head().clock_offset);
}

TEST_F(ClockStopTest, IsNotLongerForWhatIsAddedMeanwhile) {
    say(one);
    (void)at(kLate);
    const uint64_t until = one.unread_until;
    for (uint32_t more = 0; more < 2 * one.sizes.submission_entries && clock_stop.stands();
         ++more) {
        bench.turn();
        say(one);
        (void)at(0);
    }
    EXPECT_FALSE(clock_stop.stands());
    EXPECT_LE(one.up.head(), until);
}

TEST_F(ClockStopTest, WaitsForNobodyWhoIsNotReadAnyMore) {
    const auto leaves = [&](auto&& leave) {
        say(one);
        (void)at(kLate);
        ASSERT_TRUE(clock_stop.stands());
        leave();
        (void)at(0);
        EXPECT_FALSE(clock_stop.stands());
        bench.turn();
    };
    // Its line was not there when it was looked at with its word set, and now it is again.
    leaves([&] { bench.sessions.unpoll(&one); });
    bench.sessions.poll(&one);
    leaves([&] { one.sits_out = true; });
    one.sits_out = false;
    // Its line was not there when the turn came to it.
    leaves([&] { clock_stop.found_nothing(one); });
    leaves([&] { bench.sessions.drain(&one); });
}

TEST_F(ClockStopTest, GoesOnOnceNobodyIsLeft) {
    say(one);
    say(other);
    (void)at(kLate);
    bench.sessions.end(&one, shm::Reason::kMalformed);
    (void)at(0);
    EXPECT_TRUE(clock_stop.stands());
    bench.sessions.end(&other, shm::Reason::kMalformed);
    clock_stop.look();
    EXPECT_FALSE(clock_stop.stands());
}

TEST_F(ClockStopTest, BeginsNoEarlierThanTheCoreHasBeen) {
    bench.now = clock.now();
    bench.pool({.name = "later", .slots = 1});
    EXPECT_EQ(clock_stop.latest(bench.now + 5, bench.now - 1'000), bench.core.now());
    EXPECT_EQ(clock_stop.latest(bench.now + 5, shm::kNever), bench.now + 5);
}

TEST_F(ClockStopTest, LeavesWhoeverIsDueFirstAsMuchTimeAsWasLostButOnce) {
    constexpr core::TimeNs kSecond = 1'000'000'000;
    const core::TimeNs due = clock.now() + 60 * kSecond;
    EXPECT_EQ(clock_stop.latest(due + 3 * kSecond, due), due - 3 * kSecond);
    EXPECT_EQ(clock_stop.latest(due + 4 * kSecond, due), due - 1);
    EXPECT_EQ(clock_stop.latest(due + 20'000'000, due - 7), due - 7 - ClockStop::kSlackNs);
    // Not more than it had.
    (void)clock_stop.at(due - kSecond, due);
    EXPECT_EQ(clock_stop.latest(due + 3 * kSecond, due), due - kSecond);
}

}  // namespace
}  // namespace dibs::test
