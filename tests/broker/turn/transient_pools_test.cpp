// tests/broker/turn/transient_pools_test.cpp -- pools made on the spot, in turns with and without
// room.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/transient_pools.hpp"

#include <string>

#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

constexpr core::TimeNs kIdle = 1000;

core::Limits room() {
    core::Limits limits;
    limits.pools = 4;
    limits.slots = 8192;
    limits.claims = 16;
    return limits;
}

class TransientPoolsTest : public CoreFixture {
  protected:
    TransientPoolsTest() : CoreFixture(room()) {
        pools_.set_idle(kIdle);
        worker_ = session();
        turn(0, [&] {
            core::PoolConfig config;
            config.name = "box";
            config.kind = shm::PoolKind::kWorker;
            box_ = core().set_pool(config, nullptr);
            config.kind = shm::PoolKind::kCounted;
            config.is_transient = true;
            config.slots = 1;
            for (const char* name : {"first", "second"}) {
                config.name = name;
                pools_.asked_for(core().set_pool(config, nullptr));
            }
        });
        pools_.note();
    }
    // As many announcements as a turn takes.
    void fill() {
        while (!core().turn_full())
            core().apply(core::Announce{.session = worker_, .pool = box_, .ready = true});
    }
    [[nodiscard]] bool there(const std::string& name) {
        return core().find_pool(name) != shm::kNoRow;
    }

    TransientPools pools_{core()};
    uint32_t worker_ = 0;
    uint32_t box_ = 0;
};

TEST_F(TransientPoolsTest, GoWhenNobodyHasUsedThemForSoLong) {
    turn(kIdle - 1, [&] { EXPECT_FALSE(pools_.end_unused()); });
    EXPECT_EQ(pools_.next_due(), kIdle);
    turn(kIdle, [&] { EXPECT_TRUE(pools_.end_unused()); });
    EXPECT_FALSE(there("first"));
    EXPECT_FALSE(there("second"));
    EXPECT_EQ(pools_.next_due(), shm::kNever);
}

// What is over as a turn opens, a death for example, may have taken its room.
TEST_F(TransientPoolsTest, StayForTheNextTurnWhereThisOneIsFull) {
    turn(kIdle, [&] {
        fill();
        EXPECT_TRUE(pools_.end_unused());
    });
    EXPECT_TRUE(there("first"));
    EXPECT_TRUE(there("second"));
    EXPECT_EQ(pools_.next_due(), kIdle) << "the next turn is wanted at once";
    turn(kIdle + 1, [&] { EXPECT_TRUE(pools_.end_unused()); });
    EXPECT_FALSE(there("first"));
    EXPECT_FALSE(there("second"));
}

}  // namespace
}  // namespace dibs::tests
