// tests/broker/core/store/arena_room_test.cpp -- an arena that is nearly full: what a claim or an
// announcement brings is stored whole, or it is refused.
//
// New labels take room in the same arena, after the first look at what is left of it.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

using shm::Reason;

class ArenaRoom : public CoreFixture {
  protected:
    static core::Limits one_block() {
        core::Limits limits;
        limits.arena_blocks = 1;
        return limits;
    }
    ArenaRoom() : CoreFixture(one_block()) {
        core::PoolConfig config;
        config.name = "box";
        config.kind = shm::PoolKind::kWorker;
        config.order = shm::PoolOrder::kAccount;
        config.attributes_max = 16;
        turn(0, [&] { pool_ = core().set_pool(config, nullptr); });
        session_ = session();
    }

    // Labels that nothing uses any more fill the arena.
    void leave_labels() {
        core::ClaimTerms terms;
        terms.labels = kLabels;
        const auto decided = turn(1000, [&] {
            core().apply(
                core::Claim{.session = session_, .pool = pool_, .timeout_ns = 0, .terms = &terms});
        });
        ASSERT_EQ(decided.size(), 1U);  // it would not wait
        EXPECT_EQ(decided[0].reason, Reason::kBusy);
        ASSERT_EQ(core().counters().arena_free, 0U);
    }

    uint32_t pool_ = shm::kNoRow;
    uint32_t session_ = shm::kNoRow;
    static constexpr std::array<std::string_view, 1> kLabels = {"gpu:a"};
};

TEST_F(ArenaRoom, RefusesAClaimWhoseNewLabelsLeaveNoneForItsPayload) {
    const std::array<uint8_t, 3> payload = {1, 2, 3};
    core::ClaimTerms terms;
    terms.account = "research";
    terms.labels = kLabels;
    const auto decided = turn(1000, [&] {
        core::Claim command;
        command.session = session_;
        command.pool = pool_;
        command.units = 1;
        command.timeout_ns = shm::kNever;
        command.payload = payload;
        command.terms = &terms;
        core().apply(command);
    });
    ASSERT_FALSE(decided.empty());
    EXPECT_EQ(decided[0].kind, core::DecisionKind::kEnd);
    EXPECT_EQ(decided[0].reason, Reason::kArenaFull);
    EXPECT_EQ(core().find_account("research"), shm::kNoRow);  // nobody names it
    EXPECT_EQ(core().pool(pool_).waiting, 0U);
}

TEST_F(ArenaRoom, RefusesASlotWhoseNewLabelsLeaveNoneForItsAttributes) {
    const auto decided = turn(1000, [&] {
        core::Announce command;
        command.session = session_;
        command.pool = pool_;
        command.name = "b1";
        command.attributes = std::string_view{"a=1\0", 4};
        command.labels = kLabels;
        core().apply(command);
    });
    ASSERT_EQ(decided.size(), 1U);
    EXPECT_EQ(decided[0].kind, core::DecisionKind::kResult);
    EXPECT_EQ(decided[0].reason, Reason::kArenaFull);
    EXPECT_EQ(core().pool(pool_).slots, 0U);
}

TEST_F(ArenaRoom, TakesItFromUnusedLabelsForTheNextClaim) {
    leave_labels();
    const std::array<uint8_t, 3> payload = {1, 2, 3};
    const auto claim = [&] {
        return turn(2000, [&] {
            core().apply(core::Claim{
                .session = session_, .pool = pool_, .timeout_ns = shm::kNever, .payload = payload});
        });
    };
    const auto refused = claim();
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_EQ(refused[0].reason, Reason::kArenaFull);
    claim();
    EXPECT_EQ(core().pool(pool_).waiting, 1U);
}

TEST_F(ArenaRoom, TakesItFromUnusedLabelsForTheLimitsOfAnAccount) {
    leave_labels();
    const std::array<core::AccountConfig::Limit, 1> limits = {{{"gpu", 2}}};
    bool set = true;
    const auto set_limits = [&] {
        turn(2000, [&] {
            set = core().set_account({.name = "research", .label_limits = limits}, nullptr);
        });
    };
    set_limits();
    EXPECT_FALSE(set);
    set_limits();
    EXPECT_TRUE(set);
}

}  // namespace

}  // namespace dibs::tests
