// tests/broker/core/rules/delete_pool_test.cpp -- a pool that nobody uses goes, and what becomes of
// its row and its name.
// SPDX-License-Identifier: Apache-2.0
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

using shm::Reason;

class DeletePool : public CoreFixture {
  protected:
    static core::Limits few() {
        core::Limits limits;
        limits.pools = 2;
        return limits;
    }
    DeletePool() : CoreFixture(few()) {}

    Reason remove(uint32_t row, core::TimeNs now = 0) {
        Reason reason = Reason::kOk;
        turn(now, [&] { reason = core().delete_pool(row); });
        return reason;
    }
    std::vector<core::Decision> claims(uint32_t session, uint16_t tag, uint32_t pool) {
        return turn(0, [&] { claim(session, tag, pool); });
    }
};

TEST_F(DeletePool, GivesItsSlotsBack) {
    const uint32_t pool = counted_pool("build", 1000);
    EXPECT_EQ(core().counters().slots_free, 3096U);
    EXPECT_EQ(remove(pool), Reason::kOk);
    EXPECT_EQ(core().find_pool("build"), shm::kNoRow);
    EXPECT_FALSE(core().pool_lives(pool));
    EXPECT_FALSE(core().pools_go());
    EXPECT_EQ(core().counters().slots_free, 4096U);
    EXPECT_EQ(remove(pool), Reason::kUnknownPool);
}

TEST_F(DeletePool, IsRefusedWhileSomebodyUsesIt) {
    const uint32_t pool = counted_pool("build", 1);
    const uint32_t one = session();
    claims(one, 0, pool);
    EXPECT_EQ(remove(pool), Reason::kState);
    claims(one, 1, pool);  // waits
    turn(0, [&] {
        core().apply(core::Release{.session = one, .lease = uint64_t{1} << 32U, .fence = 1});
    });
    EXPECT_EQ(remove(pool), Reason::kState);
    turn(0, [&] { core().session_died(one); });
    EXPECT_EQ(remove(pool), Reason::kOk);
}

TEST_F(DeletePool, IsRefusedToAClaimOfTheSameTurn) {
    const uint32_t pool = counted_pool("build", 1);
    const uint32_t one = session();
    turn(0, [&] {
        claim(one, 0, pool);
        EXPECT_EQ(core().delete_pool(pool), Reason::kState);
    });
}

TEST_F(DeletePool, MakesClaimsOfItNameNoPool) {
    const uint32_t pool = counted_pool("build", 1);
    const uint32_t one = session();
    EXPECT_EQ(remove(pool), Reason::kOk);
    const auto decided = claims(one, 0, pool);
    ASSERT_EQ(decided.size(), 1U);
    EXPECT_EQ(decided[0].kind, core::DecisionKind::kEnd);
    EXPECT_EQ(decided[0].reason, Reason::kUnknownPool);
}

// However many turns they take to go.
TEST_F(DeletePool, HasNoSlotsFromThereOn) {
    const uint32_t pool = counted_pool("build", 1000);
    const uint32_t one = session();
    const uint32_t last = core().pool(pool).ready_tail;
    const uint64_t slot = core::row_id(core().slot(last).head.generation, last);
    const auto decided = turn(0, [&] {
        EXPECT_EQ(core().delete_pool(pool), Reason::kOk);
        EXPECT_EQ(core().slot(last).state, shm::SlotState::kIdle);
        core().apply(core::WorkerWord{
            .kind = core::WorkerWord::Kind::kProtect, .session = one, .slot = slot});
    });
    ASSERT_EQ(decided.size(), 1U);
    EXPECT_EQ(decided[0].reason, Reason::kNotFound);
}

TEST_F(DeletePool, GoesOnWithItsFencesWhenItComesBack) {
    const uint32_t pool = counted_pool("build", 4);
    const uint32_t one = session();
    claims(one, 0, pool);
    turn(0, [&] { core().session_died(one); });
    EXPECT_EQ(remove(pool), Reason::kOk);
    EXPECT_EQ(counted_pool("build", 2), pool);
    EXPECT_EQ(core().pool(pool).slots, 2U);
    EXPECT_EQ(core().pool(pool).granted_total, 0U);
    const auto decided = claims(session(), 0, pool);
    ASSERT_EQ(decided.size(), 1U);
    EXPECT_EQ(decided[0].fence, 2U);
    EXPECT_EQ(core().decided_slots(decided[0])[0].number, 0U);
}

// Who has learnt a row must not claim from another pool under it.
TEST_F(DeletePool, KeepsItsRowFromOtherNamesWhileASessionMayKnowIt) {
    counted_pool("stays", 1);
    const uint32_t old = session();
    const uint32_t pool = counted_pool("build", 1);
    EXPECT_EQ(remove(pool, 100), Reason::kOk);
    core::PoolConfig config;
    config.name = "other";
    config.slots = 1;
    std::string why;
    turn(200, [&] { EXPECT_EQ(core().set_pool(config, &why), shm::kNoRow); });
    EXPECT_EQ(why, "more pools than the 2 configured");
    turn(300, [&] {
        core().open_session({.uid = 1});
        core().session_died(old);
    });
    turn(400, [&] { EXPECT_EQ(core().set_pool(config, &why), pool); });
    EXPECT_EQ(core().find_pool("build"), shm::kNoRow);
}

TEST_F(DeletePool, IsRefusedToAPoolThatHasWorkers) {
    core::PoolConfig config;
    config.name = "web";
    config.kind = shm::PoolKind::kWorker;
    uint32_t pool = shm::kNoRow;
    turn(0, [&] { pool = core().set_pool(config, nullptr); });
    const uint32_t worker = session();
    turn(0, [&] { core().apply(core::Announce{.session = worker, .pool = pool, .ready = true}); });
    EXPECT_EQ(remove(pool), Reason::kState);
    turn(0, [&] { core().session_died(worker); });
    EXPECT_EQ(remove(pool), Reason::kOk);
    turn(0, [&] { core().apply(core::Announce{.session = worker, .pool = pool, .ready = true}); });
    EXPECT_EQ(core().pool(pool).slots, 0U);
}

// A core that attaches in between goes on.
TEST_F(DeletePool, GoesOnAfterARestart) {
    const uint32_t pool = counted_pool("build", 1000);
    core().begin_turn(0);
    EXPECT_EQ(core().delete_pool(pool), Reason::kOk);
    core().commit();
    core().clear();
    EXPECT_TRUE(core().pools_go());
    core::Core next(memory());
    EXPECT_EQ(next.check_all(), std::vector<std::string>{});
    std::string why;
    next.begin_turn(0);
    core::PoolConfig config;
    config.name = "build";
    config.slots = 1;
    EXPECT_EQ(next.set_pool(config, &why), shm::kNoRow);
    EXPECT_EQ(why, "pool 'build': it is being deleted");
    while (next.pools_go()) {
        next.decide();
        next.commit();
        next.clear();
        next.begin_turn(0);
    }
    EXPECT_EQ(next.counters().slots_free, 4096U);
    EXPECT_EQ(next.check_all(), std::vector<std::string>{});
}

}  // namespace

}  // namespace dibs::tests
