// tests/broker/core/rules/touch_test.cpp -- leases that are kept by their word: which are about to
// expire, and what no other way of a grant may forget. What a look does is in tests/scenarios.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

// More than one turn's log holds touches of.
constexpr core::Limits many_leases() {
    core::Limits limits = kFewRows;
    limits.leases = 4096;
    return limits;
}

class TouchTest : public CoreFixture {
  protected:
    TouchTest() : CoreFixture(many_leases()) {}
    core::Claim by_word(uint16_t tag, core::TimeNs interval_ns) {
        core::Claim command;
        command.session = session_;
        command.tag = tag;
        command.pool = pool_;
        command.interval_ns = interval_ns;
        command.by_word = true;
        return command;
    }
    // The row of the lease.
    uint32_t keep(core::TimeNs now, uint16_t tag, core::TimeNs interval_ns) {
        const auto decided = turn(now, [&] { core().apply(by_word(tag, interval_ns)); });
        EXPECT_EQ(decided.at(0).kind, core::DecisionKind::kGrant);
        return core::row_of(decided.at(0).id);
    }
    shm::LeaseRow& lease(uint32_t row) { return const_cast<shm::LeaseRow&>(core().lease(row)); }
    core::Touch touch(uint32_t row, uint64_t value) {
        return {core::row_id(core().lease(row).head.generation, row), value};
    }
    std::vector<uint32_t> lapsing_at(core::TimeNs now) {
        core().begin_turn(now);
        const auto rows = core().lapsing();
        std::vector<uint32_t> sorted(rows.begin(), rows.end());
        std::sort(sorted.begin(), sorted.end());
        core().commit();
        core().clear();
        return sorted;
    }

    uint32_t pool_ = counted_pool("gpu", 2200);
    uint32_t session_ = session();
};

TEST_F(TouchTest, IsAskedForByLeasesThatAreDueAndNoOthers) {
    const uint32_t first = keep(100, 0, 50);
    const uint32_t later = keep(100, 1, 90);
    const uint32_t second = keep(100, 2, 50);
    turn(100, [&] {
        core::Claim calls = by_word(3, 50);
        calls.by_word = false;
        core().apply(calls);
        core::Claim waits = by_word(4, 50);
        waits.units = 1;
        waits.timeout_ns = 50;
        core().apply(waits);
    });
    EXPECT_EQ(lapsing_at(150), std::vector<uint32_t>{});
    const std::vector<uint32_t> due = lapsing_at(151);
    EXPECT_EQ(due.size(), 3U);
    EXPECT_TRUE(std::count(due.begin(), due.end(), first) == 1);
    EXPECT_TRUE(std::count(due.begin(), due.end(), second) == 1);
    EXPECT_FALSE(std::count(due.begin(), due.end(), later) == 1);
}

TEST_F(TouchTest, IsAskedForByNoLeaseInItsGrace) {
    core::PoolConfig config;
    config.name = "graced";
    config.slots = 1;
    config.grace_ns = 1000;
    turn(1, [&] { pool_ = core().set_pool(config, nullptr); });
    const uint32_t row = keep(100, 0, 50);
    turn(151, [] {});
    ASSERT_EQ(core().lease(row).state, shm::LeaseState::kGrace);
    EXPECT_EQ(lapsing_at(5000), std::vector<uint32_t>{});
}

// A pledge is kept from what the log says, and that knows of no word.
TEST_F(TouchTest, IsOfNoLeaseThatIsGrantedEarly) {
    core().begin_turn(100);
    core::Core::Foreseen seen;
    core::Claim command = by_word(0, 50);
    EXPECT_FALSE(core().foresee(command, &seen));
    command.by_word = false;
    EXPECT_TRUE(core().foresee(command, &seen));
    core().commit();
    core().clear();
}

TEST_F(TouchTest, IsRememberedByWhoeverAttaches) {
    const uint32_t row = keep(100, 0, 50);
    turn(151, [&] { core().apply(touch(row, 7)); });
    EXPECT_EQ(core().lease(row).expires_ns, 200U);
    attach();
    EXPECT_EQ(core().lease(row).touched, 7U);
    EXPECT_EQ(lapsing_at(201), std::vector<uint32_t>{row});
    turn(201, [&] { core().apply(touch(row, 7)); });
    EXPECT_EQ(core().lease(row).state, shm::LeaseState::kFree);
}

// More leases are due than one turn's log holds touches of. Whoever reads the words stops where the
// turn is full, and goes on in the next one: not one of them expires unread.
TEST_F(TouchTest, IsReadOverAsManyTurnsAsItTakes) {
    constexpr size_t kLeases = 2100;
    std::vector<uint32_t> rows;
    for (const uint32_t holder : {session_, session(), session()}) {
        for (uint16_t tag = 0; tag < 700; tag += 100) {
            const auto decided = turn(100, [&] {
                for (uint16_t i = 0; i < 100; ++i) {
                    core::Claim command = by_word(static_cast<uint16_t>(tag + i), 50);
                    command.session = holder;
                    core().apply(command);
                }
            });
            for (const core::Decision& decision : decided) {
                if (decision.kind != core::DecisionKind::kGrant) continue;
                rows.push_back(core::row_of(decision.id));
            }
        }
    }
    ASSERT_EQ(rows.size(), kLeases);
    uint32_t turns = 0;
    do {
        core().begin_turn(151);
        const auto due = core().lapsing();
        for (const uint32_t row : std::vector<uint32_t>(due.begin(), due.end())) {
            if (core().turn_full()) break;
            core().apply(touch(row, 1));
        }
        core().decide();
        for (const core::Decision& decision : core().decisions())
            EXPECT_NE(decision.kind, core::DecisionKind::kLeaseEnd);
        core().commit();
        core().clear();
        ++turns;
    } while (core().work_left());
    EXPECT_EQ(turns, 2U);
    for (const uint32_t row : rows)
        ASSERT_EQ(core().lease(row).expires_ns, 200U);
}

TEST_F(TouchTest, IsOfALeaseWithAnIntervalThatIsNotParked) {
    const uint32_t row = keep(100, 0, 50);
    EXPECT_EQ(core::rows_refusal(memory()), "");
    lease(row).interval_ns = 0;
    EXPECT_NE(core::rows_refusal(memory()), "");
    lease(row).interval_ns = 50;
    lease(row).flags |= shm::LeaseFlag::kMayPark;
    EXPECT_NE(core::rows_refusal(memory()), "");
    lease(row).flags = shm::LeaseFlag::kByWord;
    EXPECT_EQ(core::rows_refusal(memory()), "");
}

}  // namespace
}  // namespace dibs::tests
