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

}  // namespace

}  // namespace dibs::tests
