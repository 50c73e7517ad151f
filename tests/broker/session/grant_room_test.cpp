// tests/broker/session/grant_room_test.cpp -- what a grant says of slots that no worker is asked
// of.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/grant_room.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

// The room held another grant before, with answers in it.
TEST(GrantRoom, ShowsNoAnswerWhereNobodyIsAsked) {
    Bench bench;
    const uint32_t pool = bench.pool({.name = "reported",
                                      .kind = shm::PoolKind::kWorker,
                                      .answer_max = 20,
                                      .order = shm::PoolOrder::kAccount});
    Session& client = bench.open();
    std::fill_n(client.payload, client.sizes.down_payload, std::byte{2});
    core::Report report;
    report.pool = pool;
    report.worker = "w";
    bench.core.begin_turn(bench.now);
    bench.core.apply(report);
    bench.core.decide();
    bench.core.commit();
    bench.core.clear();
    bench.push(client, claim(5));
    bench.turn();
    const auto granted = bench.next(client);
    ASSERT_TRUE(granted);
    ASSERT_EQ(granted->outcome, shm::Outcome::kGranted);
    const std::byte* room = client.payload + granted->data;
    const auto* slot = reinterpret_cast<const shm::GrantSlot*>(room + sizeof(shm::GrantHead));
    EXPECT_EQ(slot->answer_size, 0U);
    EXPECT_EQ(slot->done_size, 0U);
}

}  // namespace
}  // namespace dibs::test
