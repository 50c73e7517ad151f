// tests/broker/turn/event_word_test.cpp -- what a tag's event word says of its lease, and when no
// more.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "shm/operation.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::Op;
using shm::Outcome;
using shm::Reason;

TEST(EventWord, IsClearedBeforeTheNextGrantOfItsTag) {
    Bench bench;
    bench.pool({.name = "tokens", .slots = 1, .interval_max_ns = 1'000'000});
    Session& session = bench.open();
    shm::Submission entry = claim(1);
    entry.fence = 100;  // interval
    bench.push(session, entry);
    bench.turn();
    const auto granted = bench.next(session);
    bench.now += 101;
    bench.turn();
    EXPECT_EQ(session.events[1].load(),
              shm::event_word(shm::LeaseEvent::kEnded,
                              Reason::kExpiredLease,
                              static_cast<uint32_t>(granted->id >> 32)));
    EXPECT_EQ(session.down->events.load(), 1U);
    bench.push(session, claim(1));
    bench.turn();
    ASSERT_EQ(bench.next(session)->outcome, Outcome::kGranted);
    EXPECT_EQ(session.events[1].load(), 0U);
}

// By a keepalive that is answered, one that is quiet, and an administrator; lazily as well, where
// the lease is not in a grace that ends.
TEST(EventWord, SaysThatALeaseLivesAgain) {
    for (const shm::ExpiryMode expiry : {shm::ExpiryMode::kCooperative, shm::ExpiryMode::kLazy}) {
        const bool lazy = expiry == shm::ExpiryMode::kLazy;
        Bench bench;
        bench.pool({.name = "tokens",
                    .slots = 1,
                    .interval_max_ns = 1'000'000,
                    .grace_ns = lazy ? 0U : 1'000'000U,
                    .expiry = expiry});
        Session& session = bench.open();
        shm::Submission entry = claim(1);
        entry.fence = 100;  // interval
        bench.push(session, entry);
        bench.turn();
        const auto granted = bench.next(session);
        ASSERT_EQ(granted->outcome, Outcome::kGranted);
        const auto generation = static_cast<uint32_t>(granted->id >> 32);
        const auto is = [&](uint8_t event) {
            EXPECT_EQ(session.events[1].load(), shm::event_word(event, Reason::kOk, generation));
        };
        const auto expires = [&] {
            bench.now += 1'000'000;
            bench.turn();
            is(shm::LeaseEvent::kGrace);
        };
        EXPECT_EQ(session.events[1].load(), 0U);
        expires();
        bench.push(session, word(Op::kKeepalive, granted->id, granted->fence));
        bench.turn();
        EXPECT_EQ(bench.next(session)->reason, Reason::kOk);
        is(shm::LeaseEvent::kNone);
        EXPECT_EQ(session.down->events.load(), 2U);

        bench.push(session, word(Op::kKeepalive, granted->id, granted->fence));
        bench.turn();  // it lives: there is nothing to say but the result
        EXPECT_EQ(bench.next(session)->reason, Reason::kOk);
        EXPECT_EQ(session.down->events.load(), 2U);

        expires();
        bench.push(session, word(Op::kKeepalive, granted->id, granted->fence, shm::OpFlag::kQuiet));
        bench.turn();
        EXPECT_FALSE(bench.next(session));
        is(shm::LeaseEvent::kNone);

        expires();
        bench.read();
        core::Steer renew;
        renew.kind = core::Steer::Kind::kRenew;
        renew.lease = granted->id;
        core::TimeNs left = 0;
        EXPECT_EQ(bench.core.apply(renew, &left), Reason::kOk);
        bench.finish();
        is(shm::LeaseEvent::kNone);

        bench.push(session, word(Op::kRelease, granted->id, granted->fence));
        bench.push(session, claim(1));
        bench.turn();
        EXPECT_EQ(bench.next(session)->reason, Reason::kOk);
        EXPECT_EQ(bench.next(session)->outcome, Outcome::kGranted);
        EXPECT_EQ(session.events[1].load(), 0U);
    }
}

}  // namespace
}  // namespace dibs::test
