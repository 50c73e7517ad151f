// tests/broker/core/rules/refusal_test.cpp -- what a pool's configuration may not say, and what a
// STATE may not look like.
// SPDX-License-Identifier: Apache-2.0
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

class PoolConfiguration : public CoreFixture {
  protected:
    std::string why_not(const core::PoolConfig& config) {
        std::string why;
        turn(1, [&] { EXPECT_EQ(core().set_pool(config, &why), shm::kNoRow); });
        return why;
    }
    core::PoolConfig good() {
        core::PoolConfig config;
        config.name = "gpu";
        config.slots = 8;
        return config;
    }
};

TEST_F(PoolConfiguration, SaysWhatIsWrongWithIt) {
    core::PoolConfig config = good();
    const std::string rule =
        "': a pool's name has 1 to 63 letters, digits, \".\", \"_\" and \"-\", a letter first";
    const std::string long_name(64, 'x');
    for (const std::string& name : {std::string(),
                                    long_name,
                                    std::string("a b"),
                                    std::string("a/b"),
                                    std::string("a:1"),
                                    std::string("7"),
                                    std::string("-a"),
                                    std::string("a=b"),
                                    std::string("gr\xc3\xbcn")}) {
        config.name = name;
        EXPECT_EQ(why_not(config), "'" + name + rule);
    }
    config = good();
    config.slots = 0;
    EXPECT_EQ(why_not(config), "pool 'gpu': a counted pool needs at least one slot");
    config = good();
    config.kind = shm::PoolKind::kWorker;
    EXPECT_EQ(why_not(config),
              "pool 'gpu': a worker pool has the slots that its workers announce, not a number of "
              "them");
    config = good();
    config.units_max = 257;
    EXPECT_EQ(why_not(config), "pool 'gpu': units_max must be from 1 to 256");
    config = good();
    config.order = shm::PoolOrder::kAccount;
    config.promote_threshold = config.demote_threshold - 1;
    EXPECT_EQ(why_not(config), "pool 'gpu': promote_threshold is below demote_threshold");
    config = good();
    config.slots = 1'000'000;
    EXPECT_EQ(why_not(config),
              "pool 'gpu': 1000000 more slots do not fit the slot table (4096 rows are free)");
    EXPECT_EQ(core().pools(), 0U);
}

TEST_F(PoolConfiguration, IsRefusedWhenTheArenaHasNoRoomForItsAttributes) {
    const std::string attributes(16384, 'a');
    const std::vector<std::string_view> of_each(200, attributes);
    core::PoolConfig config = good();
    config.slots = 200;
    config.attributes_max = 16384;
    config.slot_attributes = of_each;
    turn(1, [&] { EXPECT_EQ(core().set_pool(config, nullptr), 0U); });
    config.name = "other";
    EXPECT_EQ(why_not(config),
              "pool 'other': the attributes of its slots take 6600 blocks of the arena, 1592 are "
              "free");
    EXPECT_EQ(core().pools(), 1U);
}

TEST_F(PoolConfiguration, GrowsAndShrinksButDoesNotChangeItsKind) {
    turn(1, [&] { core().set_pool(good(), nullptr); });
    core::PoolConfig config = good();
    config.slots = 12;
    turn(2, [&] { EXPECT_EQ(core().set_pool(config, nullptr), 0U); });
    EXPECT_EQ(core().pool(0).idle, 12U);
    turn(3, [&] { EXPECT_EQ(core().set_pool(good(), nullptr), 0U); });
    EXPECT_EQ(core().pool(0).idle, good().slots);
    config.kind = shm::PoolKind::kWorker;
    config.slots = 0;
    EXPECT_EQ(why_not(config), "pool 'gpu': its kind cannot change while it runs");
}

// Nobody would look at them again.
TEST_F(PoolConfiguration, RequiresAnotherLabelOnlyWhileItHasNoSlots) {
    core::PoolConfig config{.name = "web", .kind = shm::PoolKind::kWorker};
    const uint32_t worker = session();
    turn(1, [&] { ASSERT_EQ(core().set_pool(config, nullptr), 0U); });
    config.required_label = "gpu";
    turn(2, [&] { EXPECT_EQ(core().set_pool(config, nullptr), 0U); });
    const auto told =
        turn(3, [&] { core().apply(core::Announce{.session = worker, .pool = 0, .ready = true}); });
    config.required_label = "";
    EXPECT_EQ(why_not(config), "pool 'web': required_label cannot change while it has slots");
    config.required_label = "gpus";
    EXPECT_EQ(why_not(config), "pool 'web': required_label cannot change while it has slots");
    turn(4, [&] {
        core().apply(core::WorkerWord{
            .kind = core::WorkerWord::Kind::kWithdraw, .session = worker, .slot = told.front().id});
    });
    EXPECT_EQ(core().pool(0).slots, 0U);
    turn(5, [&] { EXPECT_EQ(core().set_pool(config, nullptr), 0U); });
}

TEST(State, IsRefusedWhenItsHeadDoesNotHold) {
    const core::Limits limits;
    std::vector<std::byte> bytes(core::state_size(limits) + 64);
    auto* aligned = bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
    const std::span state{aligned, core::state_size(limits)};
    EXPECT_EQ(core::state_refusal(state), "state does not begin with DIBSTATE");
    core::format_state(state, limits);
    EXPECT_EQ(core::state_refusal(state), "");
    EXPECT_EQ(core::state_refusal(state.first(100)), "state is smaller than its head");
    EXPECT_EQ(core::state_refusal(state.first(5000)),
              "state is cut short: 5000 of " + std::to_string(state.size()) + " bytes");
    auto* head = reinterpret_cast<shm::StateHead*>(state.data());
    head->version.store(9);
    EXPECT_EQ(core::state_refusal(state), "state has layout version 9, this broker reads 1");
    head->version.store(shm::kLayoutVersion);
    head->table[3].rows = 0x7fffffff;
    EXPECT_EQ(core::state_refusal(state), "table 3 of the state lies outside of it");
}

class SessionAccount : public CoreFixture {};

TEST_F(SessionAccount, IsRefusedWhereNoAccountMayHaveTheName) {
    const std::string long_name(64, 'x');
    const std::string odd_name("a\0b", 3);
    std::string why;
    turn(1, [&] { EXPECT_EQ(core().open_session({.account = long_name}, &why), shm::kNoRow); });
    EXPECT_EQ(why, "account '" + long_name + "': its name is longer than 63 bytes");
    turn(2, [&] { EXPECT_EQ(core().open_session({.account = odd_name}, &why), shm::kNoRow); });
    EXPECT_EQ(why, "account '" + odd_name + "': a zero byte in its name");
    EXPECT_EQ(core().counters().sessions_free, core().sessions_max());
    const std::string longest(63, 'x');
    turn(3, [&] { EXPECT_EQ(core().open_session({.account = longest}, &why), 0U); });
    EXPECT_NE(core().find_account(longest), shm::kNoRow);
}

TEST(State, KeepsTheTimeItHasReached) {
    core::Limits limits;
    std::vector<std::byte> bytes(core::state_size(limits) + 64);
    auto* aligned = bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
    const std::span state{aligned, core::state_size(limits)};
    core::format_state(state, limits);
    {
        core::Core first{state};
        first.begin_turn(5000);
        first.open_session({});
        first.decide();
        first.commit();
        first.clear();
    }
    core::Core second{state};
    EXPECT_EQ(second.now(), 5000U);
    second.begin_turn(4000);
    EXPECT_EQ(second.now(), 5000U);
}

}  // namespace

}  // namespace dibs::tests
