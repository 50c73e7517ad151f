// tests/broker/core/account_due_test.cpp -- the instants at which time alone changes what may be
// granted: named exactly, and not one that changes nothing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

using core::Decision;
using core::DecisionKind;

class AccountDue : public CoreFixture {
  protected:
    uint32_t pool(int64_t demote_threshold = -600'000'000) {
        uint32_t row = shm::kNoRow;
        turn(0, [&] {
            row = core().set_pool({.name = "p",
                                   .slots = 1,
                                   .order = shm::PoolOrder::kAccount,
                                   .demote_threshold = demote_threshold},
                                  nullptr);
        });
        return row;
    }
    void account(const core::AccountConfig& config) {
        std::string why;
        EXPECT_TRUE(core().set_account(config, &why)) << why;
    }
    void claim_of(const char* account,
                  uint16_t tag,
                  shm::PreemptMode mode = shm::PreemptMode::kAtOnce) {
        const core::ClaimTerms terms{.account = account, .preempt_mode = mode};
        core().apply(core::Claim{.session = session_, .tag = tag, .terms = &terms});
    }
    void begin(int64_t demote_threshold = -600'000'000) {
        pool(demote_threshold);
        session_ = session();
    }

    uint32_t session_ = shm::kNoRow;
};

bool decided(const std::vector<Decision>& decisions, DecisionKind kind) {
    return std::any_of(
        decisions.begin(), decisions.end(), [&](const Decision& one) { return one.kind == kind; });
}

TEST_F(AccountDue, IsTheMicrosecondInWhichABalanceBecomesPositive) {
    begin();
    turn(0, [&] {
        // One micro-unit a microsecond: from -50 to 1 in 51 of them.
        account({.name = "a",
                 .rate = std::array<int64_t, 1>{1'000'000},
                 .charge_max_ns = 100'000'000'000,
                 .free_tasks_disabled = true,
                 .balance = std::array<int64_t, 1>{-50}});
        claim_of("a", 1);
    });
    EXPECT_EQ(core().next_crossing(), 51'000U);
    EXPECT_FALSE(decided(turn(50'999, [] {}), DecisionKind::kGrant));
    EXPECT_EQ(core().next_crossing(), 51'000U);
    EXPECT_TRUE(decided(turn(51'000, [] {}), DecisionKind::kGrant));
}

TEST_F(AccountDue, CountsWholeMicroUnitsOfARateThatIsNone) {
    begin();
    turn(0, [&] {
        // floor(0.333333 · 6) = 1 lifts -1 to 0, which is not above it; floor(0.333333 · 7) = 2
        // does.
        account({.name = "a",
                 .rate = std::array<int64_t, 1>{333'333},
                 .charge_max_ns = 100'000'000'000,
                 .free_tasks_disabled = true,
                 .balance = std::array<int64_t, 1>{-1}});
        claim_of("a", 1);
    });
    EXPECT_EQ(core().next_crossing(), 7'000U);
    EXPECT_FALSE(decided(turn(6'999, [] {}), DecisionKind::kGrant));
    EXPECT_TRUE(decided(turn(7'000, [] {}), DecisionKind::kGrant));
}

TEST_F(AccountDue, IsTheMicrosecondInWhichALeaseIsToBeDemoted) {
    begin(-10);
    turn(0, [&] {
        account({.name = "a", .balance = std::array<int64_t, 1>{5}});
        claim_of("a", 1);
    });
    // 5 - 16 = -11 is below -10.
    EXPECT_EQ(core().next_crossing(), 16'000U);
    EXPECT_FALSE(decided(turn(15'999, [] {}), DecisionKind::kDemote));
    EXPECT_TRUE(decided(turn(16'000, [] {}), DecisionKind::kDemote));
    // At P1 likewise: 0 - 11 is below -10.
    EXPECT_EQ(core().next_crossing(), 27'000U);
    EXPECT_TRUE(decided(turn(27'000, [] {}), DecisionKind::kDemote));
}

// What a turn cuts off of a balance above its cap it does not earn: where that goes depends on
// turns.
TEST_F(AccountDue, IsWorkedOutAnewByTheTurnThatLeavesABalanceAtItsCap) {
    begin(0);
    turn(0, [&] {
        account({.name = "a",
                 .rate = std::array<int64_t, 1>{900'000},
                 .balance = std::array<int64_t, 1>{12}});
        claim_of("a", 1);
    });
    EXPECT_FALSE(decided(turn(10'000, [] {}), DecisionKind::kDemote));  // 12 - 10 = 2
    // 2 - 10 + 9 = 1, but no more than 0; then 0 - 1 + 0 is below 0. Uncut, 2 would last till 31
    // µs.
    EXPECT_FALSE(decided(turn(20'000, [] {}), DecisionKind::kDemote));
    EXPECT_EQ(core().next_crossing(), 21'000U);
    EXPECT_TRUE(decided(turn(21'000, [] {}), DecisionKind::kDemote));
}

TEST_F(AccountDue, IsTheMicrosecondInWhichABalanceExceedsWhatALeaseHasCost) {
    begin(-5);
    turn(0, [&] {
        account({.name = "b", .balance = std::array<int64_t, 2>{10, 1'000'000}});
        claim_of("b", 1);
    });
    EXPECT_EQ(core().next_crossing(), 16'000U);
    EXPECT_TRUE(decided(turn(16'000, [] {}), DecisionKind::kDemote));  // has cost 16 at P0
    turn(20'000, [&] {
        // Two a microsecond, from 1: 15 after seven, 17 after eight.
        account({.name = "a",
                 .rate = std::array<int64_t, 1>{2'000'000},
                 .charge_max_ns = 100'000'000'000,
                 .balance = std::array<int64_t, 1>{1}});
        claim_of("a", 2);
    });
    EXPECT_EQ(core().next_crossing(), 28'000U);
    EXPECT_FALSE(decided(turn(27'999, [] {}), DecisionKind::kPreempt));
    EXPECT_TRUE(decided(turn(28'000, [] {}), DecisionKind::kPreempt));
}

TEST_F(AccountDue, IsNeverWhereNobodyWaitsOrNothingCanChange) {
    begin();
    turn(0, [&] {
        account({.name = "a",
                 .rate = std::array<int64_t, 1>{1'000'000},
                 .charge_max_ns = 10'000,  // saves up ten
                 .balance = std::array<int64_t, 1>{-50}});
        account({.name = "b", .balance = std::array<int64_t, 2>{0, 100}});
    });
    EXPECT_EQ(core().next_crossing(), shm::kNever);
    turn(100'000, [&] {
        claim_of("a", 1);
        claim_of("b", 2);
    });
    // a pays what it earns and has all that it may save; b is at its best class, and a's is better.
    EXPECT_EQ(core().pool(0).waiting, 1U);
    EXPECT_EQ(core().next_crossing(), shm::kNever);
}

}  // namespace
}  // namespace dibs::tests
