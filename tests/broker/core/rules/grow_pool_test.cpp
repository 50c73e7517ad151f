// tests/broker/core/rules/grow_pool_test.cpp -- a counted pool that takes more than one step to
// grow has its rows, whatever else is made in the same turn; one that takes more than a turn to
// shrink loses all that is to go.
// SPDX-License-Identifier: Apache-2.0
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

class GrowPool : public CoreFixture {
  protected:
    static core::Limits few() {
        core::Limits limits;
        limits.slots = 500;
        return limits;
    }
    GrowPool() : CoreFixture(few()) {}

    // In an open turn.
    uint32_t set(const char* name, uint32_t slots, std::string* why) {
        core::PoolConfig config;
        config.name = name;
        config.slots = slots;
        return core().set_pool(config, why);
    }
};

TEST_F(GrowPool, RefusesWhatDoesNotFitBesideTheSlotsToCome) {
    uint32_t pool = shm::kNoRow;
    std::string why;
    turn(1, [&] {
        pool = set("p", 400, &why);
        EXPECT_EQ(set("q", 101, &why), shm::kNoRow);
        EXPECT_EQ(why, "pool 'q': 101 more slots do not fit the slot table (100 rows are free)");
    });
    EXPECT_EQ(core().pool(pool).slots, 400U);
    EXPECT_EQ(core().counters().slots_free, 100U);
}

TEST_F(GrowPool, TakesWhatFitsThoughItsOwnSlotsAreStillToCome) {
    uint32_t one = shm::kNoRow;
    uint32_t other = shm::kNoRow;
    std::string why;
    turn(1, [&] {
        one = set("p", 300, &why);
        other = set("q", 100, &why);
        // Again: its slots to come are its own, and are counted once.
        EXPECT_EQ(set("p", 401, &why), shm::kNoRow);
        EXPECT_EQ(set("p", 400, &why), one) << why;
        EXPECT_EQ(set("r", 1, &why), shm::kNoRow);
        EXPECT_EQ(why, "pool 'r': 1 more slots do not fit the slot table (0 rows are free)");
    });
    EXPECT_EQ(core().pool(one).slots, 400U);
    EXPECT_EQ(core().pool(other).slots, 100U);
    EXPECT_EQ(core().counters().slots_free, 0U);
}

TEST_F(GrowPool, GivesBackWhatWasToComeWhenItGoes) {
    uint32_t other = shm::kNoRow;
    std::string why;
    turn(1, [&] {
        const uint32_t pool = set("p", 450, &why);
        EXPECT_EQ(core().delete_pool(pool), shm::Reason::kOk);
        other = set("q", 500, &why);
        EXPECT_NE(other, shm::kNoRow) << why;
    });
    EXPECT_EQ(core().pool(other).slots, 500U);
}

class ShrinkPool : public CoreFixture {
  protected:
    static constexpr uint32_t kSlots = 12;
    static constexpr uint32_t kParts = 256;
    static core::Limits wide() {
        core::Limits limits;
        limits.pools = 1;
        limits.sessions = 1;
        limits.slots = kSlots * (kParts + 1);
        limits.claims = 64;
        limits.leases = 16;
        limits.applications = 8 * kSlots;  // few are left otherwise, and gangs end to make room
        limits.groups = 8 * kSlots;
        return limits;
    }
    ShrinkPool() : CoreFixture(wide()) {}

    uint32_t set(uint32_t slots) {
        const core::Amount capacity{"cpu", kParts};
        core::PoolConfig config;
        config.name = "gpu";
        config.slots = slots;
        config.gang_max = kParts;
        config.vector = std::span(&capacity, 1);
        return core().set_pool(config, nullptr);
    }
};

// A gang on each slot: more parts than the log holds in a turn.
TEST_F(ShrinkPool, TakesEveryPartOfAGangWithItsSlot) {
    uint32_t pool = shm::kNoRow;
    turn(1, [&] { pool = set(kSlots); });
    const uint32_t manager = session();
    const core::Amount part{"cpu", 1};
    const core::GroupSpec group{.name = "u", .members = kParts, .resource = std::span(&part, 1)};
    for (uint32_t each = 0; each < kSlots; ++each) {
        turn(2, [&] {
            const std::string name = "a" + std::to_string(each);
            ASSERT_EQ(core().apply(core::AddApplication{.session = manager,
                                                        .application = name,
                                                        .pool = pool,
                                                        .groups = std::span(&group, 1)}),
                      shm::Reason::kOk);
        });
    }
    ASSERT_EQ(core().pool(pool).parts, kSlots * kParts);
    turn(3, [&] { set(1); });
    EXPECT_GT(cuts(), 0);
    EXPECT_EQ(core().pool(pool).parts, kParts);
    EXPECT_EQ(core().pool(pool).slots, kParts + 1);
}

}  // namespace

}  // namespace dibs::tests
