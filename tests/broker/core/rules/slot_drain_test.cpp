// tests/broker/core/rules/slot_drain_test.cpp -- slots that are drained, or leave a smaller pool.
// SPDX-License-Identifier: Apache-2.0
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

using shm::SlotState;

class SlotDrain : public CoreFixture {
  protected:
    void drain(uint32_t pool, uint32_t number, bool on) {
        turn(0, [&] { core().apply(core::Drain{.pool = pool, .on = on, .number = number}); });
    }
    std::string resize(const char* name, uint32_t slots) {
        core::PoolConfig config;
        config.name = name;
        config.slots = slots;
        std::string why;
        turn(0, [&] { core().set_pool(config, &why); });
        return why;
    }
    const shm::SlotRow& slot(uint32_t pool, uint32_t number) {
        return core().slot(core().find_number(pool, number));
    }
    void release(uint32_t session, uint64_t lease, uint64_t fence) {
        turn(0, [&] {
            core().apply(core::Release{.session = session, .lease = lease, .fence = fence});
        });
    }
    static std::vector<core::Decision> grants(std::vector<core::Decision> decisions) {
        std::erase_if(decisions,
                      [](const auto& one) { return one.kind != core::DecisionKind::kGrant; });
        return decisions;
    }
    std::vector<core::Decision> grant(uint32_t session, uint16_t tag, uint32_t pool) {
        return grants(turn(0, [&] { claim(session, tag, pool); }));
    }
    core::WaitReason why_waiting() {
        for (uint32_t row = 0; row < core().claims_max(); ++row) {
            if (core().claim(row).state == shm::ClaimState::kWaiting)
                return core().explain(row).reason;
        }
        return core::WaitReason::kNone;
    }
};

TEST_F(SlotDrain, KeepsAnIdleSlotFromClaimsUntilItEnds) {
    const uint32_t pool = counted_pool("gpu", 2);
    drain(pool, 0, true);
    EXPECT_EQ(core().pool(pool).idle, 1U);
    EXPECT_EQ(core().pool(pool).drained, 1U);
    const uint32_t one = session();
    const auto decided = grant(one, 0, pool);
    ASSERT_EQ(decided.size(), 1U);
    EXPECT_EQ(core().decided_slots(decided[0])[0].number, 1U);
    EXPECT_TRUE(grant(one, 1, pool).empty());
    EXPECT_EQ(why_waiting(), core::WaitReason::kHeld);
    EXPECT_EQ(
        grants(turn(0, [&] { core().apply(core::Drain{.pool = pool, .on = false, .number = 0}); }))
            .size(),
        1U);
    EXPECT_EQ(core().pool(pool).drained, 0U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

TEST_F(SlotDrain, LetsALeaseRunOnAndTakesItsSlotWhenItEnds) {
    const uint32_t pool = counted_pool("gpu", 1);
    const uint32_t one = session();
    const auto decided = grant(one, 0, pool);
    ASSERT_EQ(decided.size(), 1U);
    drain(pool, 0, true);
    EXPECT_EQ(slot(pool, 0).state, SlotState::kLeased);
    release(one, decided[0].id, decided[0].fence);
    EXPECT_EQ(slot(pool, 0).state, SlotState::kRecovering);
    EXPECT_TRUE(grant(one, 1, pool).empty());
    EXPECT_EQ(why_waiting(), core::WaitReason::kDrained);
    drain(pool, 0, true);  // once more is no more
    drain(pool, 7, true);  // there is none
    EXPECT_EQ(core().pool(pool).drained, 1U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

// What its worker says takes back what the worker has said, not what an administrator has.
TEST_F(SlotDrain, OutlivesWhatTheWorkerSays) {
    core::PoolConfig config;
    config.name = "web";
    config.kind = shm::PoolKind::kWorker;
    uint32_t pool = shm::kNoRow;
    turn(0, [&] { pool = core().set_pool(config, nullptr); });
    const uint32_t worker = session();
    const core::Announce announce{.session = worker, .pool = pool, .name = "w", .ready = true};
    turn(0, [&] { core().apply(announce); });
    drain(pool, 0, true);
    turn(0, [&] { core().apply(announce); });
    EXPECT_EQ(slot(pool, 0).state, SlotState::kRecovering);
    const uint32_t row = core().find_number(pool, 0);
    const uint64_t id = core::row_id(core().slot(row).head.generation, row);
    using Kind = core::WorkerWord::Kind;
    for (const Kind kind : {Kind::kUnprotect, Kind::kReady}) {
        turn(0,
             [&] { core().apply(core::WorkerWord{.kind = kind, .session = worker, .slot = id}); });
        EXPECT_EQ(slot(pool, 0).state, SlotState::kRecovering);
    }
    drain(pool, 0, false);
    EXPECT_EQ(slot(pool, 0).state, SlotState::kIdle);
    turn(0, [&] { core().session_died(worker); });
    EXPECT_EQ(core().pool(pool).drained, 0U);
}

TEST_F(SlotDrain, OutlivesARestart) {
    const uint32_t pool = counted_pool("gpu", 2);
    drain(pool, 1, true);
    core::Core next(memory());
    EXPECT_EQ(next.check_all(), std::vector<std::string>{});
    EXPECT_EQ(next.pool(pool).drained, 1U);
}

TEST_F(SlotDrain, ASmallerPoolLosesItsLastSlotsAsTheyAreFree) {
    const uint32_t pool = counted_pool("gpu", 4);
    const uint32_t one = session();
    std::vector<core::Decision> held;
    for (uint16_t tag = 0; tag < 4; ++tag)
        held.push_back(grant(one, tag, pool)[0]);
    release(one, held[2].id, held[2].fence);
    drain(pool, 2, true);
    EXPECT_EQ(resize("gpu", 2), "");
    EXPECT_EQ(core().pool(pool).slots, 3U);  // number 3 is held
    EXPECT_EQ(core().pool(pool).drained, 0U);
    EXPECT_EQ(resize("gpu", 1), "");
    EXPECT_EQ(resize("gpu", 3),
              "");  // number 1 stays, and one is new, though number 3 still leaves
    EXPECT_EQ(core().pool(pool).slots, 4U);
    EXPECT_EQ(core().pool(pool).idle, 1U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
    EXPECT_TRUE(turn(0, [&] {
                    core().apply(
                        core::Release{.session = one, .lease = held[3].id, .fence = held[3].fence});
                }).size() <= 1);
    EXPECT_EQ(core().pool(pool).slots, 3U);
    EXPECT_EQ(resize("gpu", 4), "");
    EXPECT_EQ(core().pool(pool).idle, 2U);
    EXPECT_NE(core().find_number(pool, 3), shm::kNoRow);
    EXPECT_EQ(core().find_number(pool, 4), shm::kNoRow);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

TEST_F(SlotDrain, ClaimsOfMoreThanASmallerPoolHasEnd) {
    const uint32_t pool = counted_pool("gpu", 3);
    const uint32_t one = session();
    EXPECT_EQ(grant(one, 0, pool).size(), 1U);
    turn(0, [&] {
        claim(one, 1, pool, 3);
        claim(one, 2, pool, 2);
    });
    const auto decided = turn(0, [&] {
        core::PoolConfig config;
        config.name = "gpu";
        config.slots = 2;
        core().set_pool(config, nullptr);
    });
    ASSERT_GE(decided.size(), 1U);
    EXPECT_EQ(decided[0].kind, core::DecisionKind::kEnd);
    EXPECT_EQ(decided[0].tag, 1U);
    EXPECT_EQ(decided[0].reason, shm::Reason::kTooManyUnits);
    EXPECT_EQ(core().pool(pool).waiting, 1U);
}

TEST_F(SlotDrain, APoolThatLeavesTakesNoClaimsAndStaysIfItIsWantedAgain) {
    const uint32_t pool = counted_pool("gpu", 3);
    const uint32_t one = session();
    const auto held = grant(one, 0, pool);
    turn(0, [&] {
        claim(one, 1, pool, 3);
        EXPECT_EQ(core().delete_pool(pool, true), shm::Reason::kOk);
    });
    EXPECT_EQ(core().pool(pool).slots, 1U);
    EXPECT_EQ(core().pool(pool).waiting, 0U);
    const auto decided = turn(0, [&] { claim(one, 2, pool); });
    ASSERT_EQ(decided.size(), 1U);
    EXPECT_EQ(decided[0].reason, shm::Reason::kDraining);
    turn(0, [&] { EXPECT_EQ(core().delete_pool(pool), shm::Reason::kState); });
    EXPECT_EQ(resize("gpu", 3), "");
    EXPECT_EQ(core().pool(pool).idle, 2U);
    turn(0, [&] { core().delete_pool(pool, true); });
    release(one, held[0].id, held[0].fence);
    EXPECT_EQ(core().pool(pool).slots, 0U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
    turn(0, [&] { EXPECT_EQ(core().delete_pool(pool), shm::Reason::kOk); });
    EXPECT_FALSE(core().pool_lives(pool));
}

// However many turns that takes, and though a core that attaches in between goes on.
class MuchSmallerPool : public CoreFixture {
  protected:
    static core::Limits many() {
        core::Limits limits;
        limits.slots = 40'000;
        return limits;
    }
    MuchSmallerPool() : CoreFixture(many()) {}
};

TEST_F(MuchSmallerPool, ShrinksOverTurnsAndRestarts) {
    const uint32_t pool = counted_pool("build", 40'000);
    core::PoolConfig config;
    config.name = "build";
    config.slots = 1;
    core().begin_turn(0);
    EXPECT_EQ(core().set_pool(config, nullptr), pool);
    core().decide();
    core().commit();
    core().clear();
    EXPECT_GT(core().pool(pool).slots, 1U);
    EXPECT_TRUE(core().work_left());
    core::Core next(memory());
    while (next.work_left()) {
        next.begin_turn(0);
        next.decide();
        next.commit();
        next.clear();
    }
    EXPECT_EQ(next.pool(pool).slots, 1U);
    EXPECT_EQ(next.counters().slots_free, 39'999U);
    EXPECT_EQ(next.check_all(), std::vector<std::string>{});
}

}  // namespace

}  // namespace dibs::tests
