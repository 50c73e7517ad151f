// tests/clientlib/tick_test.cpp -- how long a tick is, however long the handshake took by which it
// was measured.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "clientlib/clock.hpp"

namespace dibs::client {
namespace {

TEST(Tick, IsAsLongAfterASlowHandshakeAsAfterAFastOne) {
    // 2.5 ticks a nanosecond; from 4.3 s on, nanoseconds do not fit 32 bits.
    for (const uint64_t ns : {uint64_t{100'000},
                              uint64_t{4'294'967'295},
                              uint64_t{4'294'967'296},
                              uint64_t{4'300'000'000},
                              uint64_t{5'000'000'000},
                              uint64_t{3'600'000'000'000}}) {
        const TickLength tick(ns / 2 * 5, ns);
        EXPECT_NEAR(static_cast<double>(tick.to_ns(2'500)), 1'000.0, 1.0) << ns;
        EXPECT_NEAR(static_cast<double>(tick.to_ns(250'000'000)), 100e6, 100.0) << ns;
    }
}

TEST(Tick, OfACounterSlowerThanNanosecondsIsMeasuredLikewise) {
    const TickLength tick(125'000'000, 5'000'000'000);  // 25 MHz
    EXPECT_EQ(tick.to_ns(1), 40U);
    EXPECT_EQ(tick.to_ns(25'000'000 * uint64_t{3'600}), 3'600'000'000'000U);
}

TEST(Tick, OfACounterThatStandsStillIsANanosecond) {
    EXPECT_EQ(TickLength(0, 1'000).to_ns(7), 7U);
}

}  // namespace
}  // namespace dibs::client
