// tests/broker/core/store/cut_turn_test.cpp -- work that does not fit the log of one turn goes on
// in the next, at its own time, and decides the same.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

core::Limits large() {
    core::Limits limits;
    limits.slots = 8192;
    limits.sessions = 16;
    return limits;
}

class CutTurn : public CoreFixture {
  protected:
    CutTurn() : CoreFixture(large()) {}

    // `count` claims of four sessions wait behind one that holds the only slot.
    uint32_t pool_with_backlog(uint32_t count, std::vector<uint32_t>* sessions) {
        const uint32_t pool = counted_pool("one", 1);
        const uint32_t holder = session();
        turn(1, [&] { claim(holder, 0, pool); });
        for (uint32_t at = 0; at < 4; ++at)
            sessions->push_back(session(2000 + at));
        for (uint32_t at = 0; at < count; at += 256) {
            turn(2, [&] {
                for (uint32_t more = at; more < std::min(at + 256, count); ++more) {
                    claim((*sessions)[more % 4], static_cast<uint16_t>(more / 4), pool);
                }
            });
        }
        EXPECT_EQ(core().pool(pool).waiting, count);
        return pool;
    }
};

TEST_F(CutTurn, GrowsALargePoolToItsLastSlot) {
    const uint32_t pool = counted_pool("large", 5000);
    EXPECT_GT(cuts(), 0);
    EXPECT_EQ(core().pool(pool).idle, 5000U);
    EXPECT_EQ(core().slot(core().pool(pool).ready_head).number, 0U);
    EXPECT_EQ(core().slot(core().pool(pool).ready_tail).number, 4999U);
}

TEST_F(CutTurn, DrainsALongBacklogInOrderAndTellsItsEndOnce) {
    std::vector<uint32_t> sessions;
    const uint32_t pool = pool_with_backlog(4000, &sessions);
    const auto decided = turn(3, [&] { core().apply(core::Drain{.pool = pool, .on = true}); });
    EXPECT_GE(cuts(), 2);
    uint64_t last = 0;
    int ends = 0;
    int drained = 0;
    for (const core::Decision& decision : decided) {
        if (decision.kind == core::DecisionKind::kDrained) ++drained;
        if (decision.kind != core::DecisionKind::kEnd) continue;
        EXPECT_EQ(decision.reason, shm::Reason::kDraining);
        EXPECT_GT(decision.claim, last);
        last = decision.claim;
        ++ends;
    }
    EXPECT_EQ(ends, 4000);
    EXPECT_EQ(drained, 1);
}

TEST_F(CutTurn, KeepsItsTimeSoThatNothingElseFallsDueInIt) {
    std::vector<uint32_t> sessions;
    const uint32_t pool = pool_with_backlog(4000, &sessions);
    // Due after the drain's own time, before the time that the continuing turns are given.
    const uint32_t other = counted_pool("other", 1);
    turn(3, [&] {
        core::Claim command;
        command.session = sessions[0];
        command.tag = 1023;
        command.pool = other;
        command.interval_ns = 500;
        core().apply(command);
    });
    const auto decided = turn(4, [&] { core().apply(core::Drain{.pool = pool, .on = true}); });
    ASSERT_GE(cuts(), 2);
    EXPECT_EQ(core().now(), 4U);
    for (const core::Decision& decision : decided) {
        EXPECT_NE(decision.kind, core::DecisionKind::kLeaseEnd);
    }
    const auto later = turn(504, [] {});
    ASSERT_EQ(later.size(), 1U);
    EXPECT_EQ(later[0].reason, shm::Reason::kExpiredLease);
}

TEST_F(CutTurn, ReturnsEverythingOfASessionThatHeldMuch) {
    const uint32_t pool = counted_pool("large", 6000);
    const uint32_t rich = session();
    for (uint16_t tag = 0; tag < 1000; tag += 100) {
        turn(1, [&] {
            for (uint16_t more = tag; more < tag + 100; ++more)
                claim(rich, more, pool, 6);
        });
    }
    const uint32_t poor = session();
    turn(2, [&] { claim(poor, 0, pool, 1); });
    ASSERT_EQ(core().pool(pool).waiting, 1U);
    const auto decided = turn(3, [&] { core().session_died(rich); });
    EXPECT_GE(cuts(), 1);
    EXPECT_EQ(core().session(rich).state, shm::SessionState::kFree);
    EXPECT_EQ(core().pool(pool).leased, 1U);
    EXPECT_EQ(core().pool(pool).released_total, 1000U);
    int grants = 0;
    for (const core::Decision& decision : decided) {
        if (decision.kind == core::DecisionKind::kGrant) ++grants;
    }
    EXPECT_EQ(grants, 1);
}

// The first of them holds a slot back until they end; the log is full before all of them have.
TEST_F(CutTurn, GivesWhatImpatientClaimsKeptToWhoWaits) {
    core::PoolConfig config;
    config.name = "two";
    config.slots = 2;
    config.order = shm::PoolOrder::kAccount;
    uint32_t pool = shm::kNoRow;
    turn(0, [&] { pool = core().set_pool(config, nullptr); });
    const uint32_t own = session();
    const uint32_t other = session();
    turn(1, [&] { claim(own, 0, pool); });
    const std::vector<core::Decision> decided = turn(2, [&] {
        for (uint16_t at = 0; at < 1600; ++at) {
            core().apply(core::Claim{.session = at < 800 ? own : other,
                                     .tag = static_cast<uint16_t>(at % 800 + 1),
                                     .units = 2,
                                     .pool = pool,
                                     .when_busy_given = true,
                                     .when_busy = shm::WhenBusy::kReject});
        }
        claim(own, 801, pool);
    });
    EXPECT_GE(cuts(), 2);
    ASSERT_EQ(core().pool(pool).leased, 2U);
    EXPECT_EQ(core().pool(pool).rejected_total, 1600U);
    EXPECT_EQ(std::count_if(decided.begin(),
                            decided.end(),
                            [](const core::Decision& decision) {
                                return decision.kind == core::DecisionKind::kGrant;
                            }),
              1);
}

TEST_F(CutTurn, GoesOnAfterABrokerDiedBetweenItsParts) {
    std::vector<uint32_t> sessions;
    const uint32_t pool = pool_with_backlog(4000, &sessions);
    core().begin_turn(3);
    core().apply(core::Drain{.pool = pool, .on = true});
    core().decide();
    core().commit();
    const size_t first_part = core().decisions().size();
    ASSERT_TRUE(core().work_left());
    // The broker dies here; its successor finds the rows.
    core::Core successor{memory()};
    ASSERT_EQ(successor.check_all(), std::vector<std::string>{});
    size_t rest = 0;
    do {
        successor.begin_turn(4);
        successor.decide();
        for (const core::Decision& decision : successor.decisions()) {
            rest += decision.kind == core::DecisionKind::kEnd ? 1U : 0U;
        }
        successor.commit();
        successor.clear();
    } while (successor.work_left());
    EXPECT_EQ(first_part + rest, 4000U);
    EXPECT_EQ(successor.pool(pool).waiting, 0U);
    EXPECT_EQ(successor.check_all(), std::vector<std::string>{});
}

}  // namespace

}  // namespace dibs::tests
