// tests/broker/core/rules/decided_slots_test.cpp -- the slots of a decision are those of its
// instant, whatever their rows are by the end of the turn.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

using core::DecisionKind;

class DecidedSlots : public CoreFixture {
  protected:
    void announce(uint32_t session, const char* name) {
        core::Announce announce;
        announce.session = session;
        announce.pool = 0;
        announce.name = name;
        announce.ready = true;
        core().apply(announce);
    }
};

TEST_F(DecidedSlots, AreThoseThatTheLeaseHeldWhereTheRowIsAnotherSlotsAtOnce) {
    core::PoolConfig config;
    config.name = "box";
    config.kind = shm::PoolKind::kWorker;
    turn(0, [&] { ASSERT_EQ(core().set_pool(config, nullptr), 0U); });
    const uint32_t holder = session();
    const uint32_t worker = session();
    const uint32_t next = session();
    turn(1, [&] { announce(worker, "first"); });
    turn(2, [&] { claim(holder, 0, 0); });
    const uint32_t row = core().find_slot(0, "first");
    const uint64_t slot = core::row_id(core().slot(row).head.generation, row);
    turn(3, [&] {
        core::WorkerWord confirm;
        confirm.kind = core::WorkerWord::Kind::kConfirm;
        confirm.session = worker;
        confirm.slot = slot;
        confirm.round = 1;
        core().apply(confirm);
    });
    core().begin_turn(4);
    core().session_died(worker);
    announce(next, "second");
    ASSERT_EQ(core().find_slot(0, "second"), row);
    EXPECT_EQ(core().slot(row).number, 1U);
    const core::Decision ended = core().decisions()[0];
    ASSERT_EQ(ended.kind, DecisionKind::kLeaseEnd);
    ASSERT_EQ(ended.slots_count, 1U);
    EXPECT_EQ(core().decided_slots(ended)[0].number, 0U);
    core().decide();
    core().commit();
    core().clear();
}

}  // namespace
}  // namespace dibs::tests
