// tests/broker/core/match/account_due_test.cpp -- the instants at which time alone changes what may
// be granted: named exactly, and not one that changes nothing.
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

// a has -9 at P1, which makes up for what b's lease has cost after nine microseconds, if a still
// has at P0 what it has cost there: nothing.
class EqualAtFirst : public AccountDue {
  protected:
    void waits(int64_t rate) {
        turn(0, [&] {
            core().set_pool({.name = "p", .slots = 2, .order = shm::PoolOrder::kAccount}, nullptr);
        });
        session_ = session();
        turn(0, [&] {
            account({.name = "a",
                     .rate = std::array<int64_t, 2>{rate, 1'000'000},
                     .charge_max_ns = 100'000'000'000,
                     .balance = std::array<int64_t, 3>{1, -10, 100}});
            account({.name = "b"});
            claim_of("a", 1);
            claim_of("b", 2);
        });
        turn(1'000, [&] { claim_of("a", 3); });
        EXPECT_EQ(core().pool(0).waiting, 1U);
    }
};

TEST_F(EqualAtFirst, WhatComesBehindTurnsItWhileTheFirstStaysEqual) {
    waits(999'999);  // less than it runs for by one micro-unit in a second
    EXPECT_EQ(core().next_crossing(), 10'000U);
    EXPECT_FALSE(decided(turn(9'999, [] {}), DecisionKind::kPreempt));
    EXPECT_TRUE(decided(turn(10'000, [] {}), DecisionKind::kPreempt));
}

TEST_F(EqualAtFirst, WhatComesBehindTurnsNothingOnceTheFirstHasFallen) {
    waits(500'000);
    EXPECT_EQ(core().next_crossing(), 11'000U);  // P1 becomes its best class
    EXPECT_FALSE(decided(turn(10'999, [] {}), DecisionKind::kPreempt));
    EXPECT_EQ(core().next_crossing(), 11'000U);
}

// b's lease has cost 6 at P0, and from 6 us on one more at P1 with each; a has 10 there, and saves
// no more, so that what it has at P2 from 21 us on comes too late.
TEST_F(AccountDue, WhatComesBehindABalanceAtItsCapTurnsNothingOnceTheLeaseHasCostMore) {
    begin(0);
    turn(0, [&] {
        account({.name = "b", .balance = std::array<int64_t, 2>{5, 1000}});
        claim_of("b", 1);
    });
    EXPECT_TRUE(decided(turn(6'000, [] {}), DecisionKind::kDemote));
    turn(16'000, [&] {
        account({.name = "a",
                 .rate = std::array<int64_t, 3>{0, 1'000'000, 1'000'000},
                 .charge_max_ns = 10'000,  // saves up ten
                 .balance = std::array<int64_t, 3>{6, 10, -5}});
        claim_of("a", 2);
    });
    EXPECT_EQ(core().pool(0).waiting, 1U);
    EXPECT_EQ(core().next_crossing(), 1'007'000U);  // b's next demotion
    EXPECT_FALSE(decided(turn(21'000, [] {}), DecisionKind::kPreempt));
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

size_t count(const std::vector<Decision>& all, DecisionKind kind) {
    return static_cast<size_t>(std::count_if(
        all.begin(), all.end(), [&](const Decision& one) { return one.kind == kind; }));
}

// Whoever drives the core asks between turns when to come back, or does not.
class AskedOrNot : public AccountDue, public testing::WithParamInterface<bool> {
  protected:
    void ask() {
        if (GetParam()) (void)core().next_crossing();
    }
};
INSTANTIATE_TEST_SUITE_P(Asks, AskedOrNot, testing::Bool());

TEST_P(AskedOrNot, ALeaseThatMovesInALaterPassIsWatched) {
    turn(0, [&] {
        core().set_pool({.name = "p",
                         .slots = 3,
                         .order = shm::PoolOrder::kAccount,
                         .promote_threshold = 0,
                         .demote_threshold = -5},
                        nullptr);
    });
    session_ = session();
    turn(0, [&] {
        account({.name = "b",
                 .rate = std::array<int64_t, 2>{1'500'000, 2'000'000},
                 .charge_max_ns = 100'000'000'000,
                 .balance = std::array<int64_t, 2>{3, 0}});
        account({.name = "a", .balance = std::array<int64_t, 1>{100}});
        claim_of("b", 1);
        claim_of("b", 2);
        claim_of("b", 3);
    });
    ask();
    turn(6'000, [] {});
    ask();
    turn(10'000, [&] { claim_of("a", 4); });
    ask();
    turn(12'000, [] {});
    EXPECT_EQ(core().next_crossing(), 29'000U);
    EXPECT_EQ(count(turn(40'000, [] {}), DecisionKind::kDemote), 1U);
}

TEST_P(AskedOrNot, AGrantThatFollowsAGraceIsCharged) {
    turn(0, [&] {
        core().set_pool(
            {.name = "p", .slots = 1, .order = shm::PoolOrder::kAccount, .demote_threshold = -10},
            nullptr);
    });
    session_ = session();
    turn(0, [&] {
        account({.name = "a", .balance = std::array<int64_t, 1>{5}});
        account({.name = "b"});
        const core::ClaimTerms terms{.account = "b",
                                     .preempt_mode = shm::PreemptMode::kWithGrace,
                                     .preempt_grace_ns = 20'000};
        core().apply(core::Claim{.session = session_, .tag = 1, .terms = &terms});
    });
    ask();
    turn(1'000, [&] { claim_of("a", 2); });
    ask();
    turn(2'000, [] {});
    ask();
    EXPECT_EQ(count(turn(21'000, [] {}), DecisionKind::kGrant), 1U);
    // 5 micro-units last until 26 us, and 11 more below 0 until 37.
    EXPECT_EQ(core().next_crossing(), 37'000U);
    EXPECT_EQ(count(turn(37'000, [] {}), DecisionKind::kDemote), 1U);
}

// It runs free from 16 us on, and what is free counts for no fan-out.
TEST_F(AccountDue, AClaimThatADemotionMakesRoomForIsGranted) {
    turn(0, [&] {
        core().set_pool(
            {.name = "p", .slots = 2, .order = shm::PoolOrder::kAccount, .demote_threshold = -10},
            nullptr);
    });
    session_ = session();
    turn(0, [&] {
        account({.name = "a",
                 .rate = std::array<int64_t, 4>{0, 0, 0, 1'000'000},
                 .charge_max_ns = 100'000'000'000,
                 .fanout_max = 1,
                 .free_tasks_disabled = true,
                 .balance = std::array<int64_t, 5>{0, 0, 0, -5, 5}});
        claim_of("a", 1);
        claim_of("a", 2);
    });
    size_t demoted = 0;
    size_t granted = 0;
    for (const uint64_t us : {1U, 6U, 7U, 16U, 17U, 18U}) {
        const auto all = turn(us * 1000, [] {});
        demoted += count(all, DecisionKind::kDemote);
        granted += count(all, DecisionKind::kGrant);
    }
    EXPECT_GE(demoted, 1U);
    EXPECT_EQ(granted, 1U);
    EXPECT_EQ(core().pool(0).waiting, 0U);
}

// x gets back what a lease in the second pool has cost, and may be served in the first, which has
// been passed by then: the next turn is asked for, and no news is waited for.
TEST_F(AccountDue, IsAtOnceWhereAPassGivesBackWhatSomebodyHasPaid) {
    std::array<uint32_t, 2> pools{};
    turn(0, [&] {
        for (const char* name : {"A", "B"}) {
            const auto row = core().set_pool(
                {.name = name, .slots = 1, .order = shm::PoolOrder::kAccount}, nullptr);
            pools[name[0] == 'B'] = row;
        }
        account({.name = "x", .balance = std::array<int64_t, 2>{0, 10'000'000}});
        account({.name = "y", .balance = std::array<int64_t, 1>{1'000'000'000'000}});
    });
    session_ = session();
    const auto ask = [&](uint32_t in, const char* of, uint16_t tag) {
        const core::ClaimTerms terms{.account = of};
        core().apply(
            core::Claim{.session = session_, .tag = tag, .pool = pools[in], .terms = &terms});
    };
    turn(0, [&] {
        ask(1, "x", 1);
        ask(0, "", 2);
    });
    turn(20 * kSecond, [&] { ask(0, "x", 3); });  // it has nothing left: no better than the other
    EXPECT_EQ(core().pool(pools[0]).waiting, 1U);
    const auto decisions = turn(20 * kSecond + 1000, [&] { ask(1, "y", 4); });
    const auto granted = std::count_if(decisions.begin(), decisions.end(), [](const Decision& one) {
        return one.kind == DecisionKind::kGrant;
    });
    EXPECT_EQ(granted, 2);  // y the second pool's slot, x the first one's
    EXPECT_EQ(core().pool(pools[0]).waiting, 0U);
}

}  // namespace
}  // namespace dibs::tests
