// tests/broker/core/log_room_test.cpp -- what a turn decides, and all that has to be stored about
// it, fits the turn's log, whoever makes it large.
//
// The core alone cannot overflow: the broker behind it edits the row of every session that it has
// read from or tells something, and stages a store for each completion and event word. These tests
// do as much after decide() as the broker can.
// SPDX-License-Identifier: Apache-2.0
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

core::Limits many_sessions() {
    core::Limits limits;
    limits.pools = 2048;
    limits.sessions = 4096;
    return limits;
}

class LogRoom : public CoreFixture {
  protected:
    LogRoom() : CoreFixture(many_sessions()) {}

    // As the broker after decide(): 64 results of its own, two stores for a grant, one for any
    // other decision, and the line of each session that is told, or that one of 256 entries came
    // from.
    void tell() {
        shm::LogStore store = {};
        for (int i = 0; i < 64; ++i)
            core().stage_store(store);
        for (const core::Decision& decision : core().decisions()) {
            if (decision.session == shm::kNoRow) continue;
            core().stage_store(store);
            if (decision.kind == core::DecisionKind::kGrant) core().stage_store(store);
            core().set_cursors(decision.session, 0, 1);
        }
        for (uint32_t row = 0; row < 256; ++row)
            core().set_cursors(4095 - row, 1, 0);
    }
    // A turn and what it is continued in; returns how many decisions of this kind there were.
    template <class Commands>
    uint32_t told(core::TimeNs now, core::DecisionKind kind, const Commands& commands) {
        uint32_t count = 0;
        core().begin_turn(now);
        commands();
        for (;;) {
            core().decide();
            for (const core::Decision& decision : core().decisions()) {
                if (decision.kind == kind) ++count;
            }
            tell();
            core().commit();
            core().clear();
            if (!core().work_left()) return count;
            core().begin_turn(now);
        }
    }
    uint32_t open() {
        uint32_t row = shm::kNoRow;
        told(0, core::DecisionKind::kDrained, [&] { row = core().open_session({.uid = 1000}); });
        return row;
    }
    void pool(const core::PoolConfig& config) {
        told(0, core::DecisionKind::kDrained, [&] {
            ASSERT_NE(core().set_pool(config, nullptr), shm::kNoRow);
        });
    }
};

TEST_F(LogRoom, HoldsTheGrantsThatAWideClaimHasHeldUp) {
    const uint32_t wide = open();
    const uint32_t narrow[] = {open(), open()};
    const std::string names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    for (uint16_t row = 0; row < 8; ++row) {
        pool({.name = names[row], .slots = 256});
        told(1, core::DecisionKind::kGrant, [&] {
            claim(wide, static_cast<uint16_t>(2 * row), row);
            claim(wide, static_cast<uint16_t>(2 * row + 1), row, 256);  // one slot short
        });
        told(2, core::DecisionKind::kGrant, [&] {
            for (uint16_t unit = 0; unit < 255; ++unit) {
                claim(narrow[row / 4], static_cast<uint16_t>(row % 4 * 255 + unit), row);
            }
        });
    }
    EXPECT_EQ(told(3,
                   core::DecisionKind::kGrant,
                   [&] {
                       for (uint16_t row = 0; row < 8; ++row) {
                           core().apply(core::Cancel{wide, static_cast<uint16_t>(2 * row + 1), 0});
                       }
                   }),
              8U * 255U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

TEST_F(LogRoom, HoldsTheGraceOfLeasesThatAllExpireAtOnce) {
    pool({.name = "tokens", .slots = 3000, .grace_ns = 5000});
    uint32_t granted = 0;
    for (int batch = 0; batch < 12; ++batch) {
        granted += told(1, core::DecisionKind::kGrant, [&] {
            for (int i = 0; i < 250; ++i) {
                core::Claim command;
                command.session = core().open_session({.uid = 1000});
                command.interval_ns = 1000;
                core().apply(command);
            }
        });
    }
    ASSERT_EQ(granted, 3000U);
    EXPECT_EQ(told(2000, core::DecisionKind::kLeaseGrace, [] {}), 3000U);
    EXPECT_EQ(told(9000, core::DecisionKind::kLeaseEnd, [] {}), 3000U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

TEST_F(LogRoom, HoldsTheNewsOfEveryPoolWhoseDemandEndsAtOnce) {
    const uint32_t waiting[] = {open(), open()};
    for (uint16_t row = 0; row < 2048; ++row) {
        const std::string name = "pool" + std::to_string(row);
        pool({.name = name, .kind = shm::PoolKind::kWorker});
    }
    for (uint16_t from = 0; from < 1024; from = static_cast<uint16_t>(from + 128)) {
        told(1, core::DecisionKind::kDemand, [&] {
            for (uint16_t tag = from; tag < from + 128; ++tag) {
                claim(waiting[0], tag, tag);
                claim(waiting[1], tag, 1024U + tag);
            }
        });
    }
    EXPECT_EQ(told(2,
                   core::DecisionKind::kDemand,
                   [&] {
                       core().session_died(waiting[0]);
                       core().session_died(waiting[1]);
                   }),
              2048U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

}  // namespace

}  // namespace dibs::tests
