// tests/broker/core/match/account_explain_test.cpp -- why a claim waits in a pool ordered by
// account.
// SPDX-License-Identifier: Apache-2.0
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

using core::ClassReason;
using core::Explanation;
using core::PreemptReason;
using core::WaitReason;

class AccountExplainTest : public CoreFixture {
  protected:
    uint32_t account_pool(uint32_t slots, bool preemption = true) {
        core::PoolConfig config;
        config.name = "gpu";
        config.order = shm::PoolOrder::kAccount;
        config.slots = slots;
        config.kind = slots != 0 ? shm::PoolKind::kCounted : shm::PoolKind::kWorker;
        config.preemption_disabled = !preemption;
        uint32_t row = shm::kNoRow;
        turn(0, [&] { row = core().set_pool(config, nullptr); });
        return row;
    }
    // At this balance of one class, and nothing of the others.
    void account(const char* name,
                 uint32_t at_class,
                 int64_t balance,
                 core::AccountConfig more = {}) {
        std::array<int64_t, shm::kClasses> all = {};
        if (at_class < shm::kClasses) all[at_class] = balance;
        more.name = name;
        more.balance = all;
        turn(0, [&] { ASSERT_TRUE(core().set_account(more, nullptr)); });
    }
    void account_claim(uint32_t session,
                       uint16_t tag,
                       uint32_t pool,
                       const char* account,
                       std::vector<std::string_view> labels = {},
                       uint16_t units = 1) {
        core::ClaimTerms terms = terms_;
        terms.account = account;
        terms.labels = labels;
        core::Claim command;
        command.session = session;
        command.tag = tag;
        command.pool = pool;
        command.units = units;
        command.terms = &terms;
        core().apply(command);
    }
    void worker(uint32_t pool, const char* name, std::vector<std::string_view> labels) {
        core::Report report;
        report.pool = pool;
        report.worker = name;
        report.labels = labels;
        core().apply(report);
    }
    Explanation why(uint32_t session, uint16_t tag) {
        return core().explain(core().claim_of_tag(session, tag));
    }

    core::ClaimTerms terms_;
};

TEST_F(AccountExplainTest, CountsPlacesByClassThenLabelsThenArrival) {
    const uint32_t pool = account_pool(1);
    account("rich", 0, 1'000'000'000'000);
    account("fair", 2, 1'000'000'000'000);
    const uint32_t one = session();
    turn(1, [&] { account_claim(one, 1, pool, "rich"); });  // holds the slot, at P0
    turn(2, [&] {
        account_claim(one, 2, pool, "");
        account_claim(one, 3, pool, "fair");
        account_claim(one, 4, pool, "rich");
        account_claim(one, 5, pool, "rich");
        account_claim(one, 6, pool, "fair");
    });
    const Explanation first = why(one, 4);
    EXPECT_EQ(first.reason, WaitReason::kHeld);
    EXPECT_EQ(first.position, 1U);
    EXPECT_EQ(first.waiting, 5U);
    EXPECT_EQ(first.at_class, 0);
    EXPECT_EQ(first.class_reason, ClassReason::kBalance);
    EXPECT_EQ(first.better, 0U);
    EXPECT_EQ(first.fitting, 1U);
    EXPECT_EQ(first.preempt, PreemptReason::kNoCandidate);  // what runs, runs at P0
    EXPECT_EQ(core().lease(first.holder).arrival, 1U);
    EXPECT_EQ(why(one, 5).position, 2U);
    const Explanation third = why(one, 3);
    EXPECT_EQ(third.position, 3U);
    EXPECT_EQ(third.reason, WaitReason::kBehind);
    EXPECT_EQ(third.obstacle, WaitReason::kHeld);
    EXPECT_EQ(third.at_class, 2);
    EXPECT_EQ(third.better, 2U);
    EXPECT_EQ(why(one, 6).position, 4U);
    const Explanation last = why(one, 2);
    EXPECT_EQ(last.position, 5U);
    EXPECT_EQ(last.at_class, 5);
    EXPECT_EQ(last.class_reason, ClassReason::kNoAccount);
    EXPECT_EQ(last.better, 4U);
    EXPECT_EQ(last.preempt, PreemptReason::kForFree);
    // One that leaves from the middle counts no more.
    turn(3, [&] { core().apply(core::Cancel{one, 3, 0}); });
    EXPECT_EQ(why(one, 6).position, 3U);
    EXPECT_EQ(why(one, 2).position, 4U);
}

TEST_F(AccountExplainTest, SaysThatAnAccountHasUsedUpAllOrItsFanout) {
    const uint32_t pool = account_pool(1);
    account("empty", 5, 0);
    core::AccountConfig few;
    few.fanout_max = 1;
    account("few", 1, 1'000'000'000'000, few);
    const uint32_t one = session();
    turn(1, [&] { account_claim(one, 1, pool, "few"); });
    turn(2, [&] {
        account_claim(one, 2, pool, "few");
        account_claim(one, 3, pool, "empty");
    });
    const Explanation throttled = why(one, 2);
    EXPECT_EQ(throttled.at_class, 5);
    EXPECT_EQ(throttled.class_reason, ClassReason::kFanout);
    EXPECT_EQ(throttled.fanout_max, 1U);
    EXPECT_EQ(throttled.fanout_held, 1U);
    EXPECT_EQ(throttled.reason, WaitReason::kHeld);
    EXPECT_EQ(throttled.position, 1U);
    const Explanation poor = why(one, 3);
    EXPECT_EQ(poor.at_class, 5);
    EXPECT_EQ(poor.class_reason, ClassReason::kNoBalance);
    EXPECT_EQ(poor.position, 2U);
    // The same without free tasks: they are left out, and come last.
    few.free_tasks_disabled = true;
    account("few", 1, 1'000'000'000'000, few);
    const Explanation out = why(one, 2);
    EXPECT_EQ(out.reason, WaitReason::kLeftOut);
    EXPECT_EQ(out.class_reason, ClassReason::kFanout);
    EXPECT_EQ(out.position, 2U);
    EXPECT_EQ(why(one, 3).position, 1U);
}

TEST_F(AccountExplainTest, NamesTheLabelThatNoSlotHasAndTheOneThatIsLimited) {
    const uint32_t pool = account_pool(0);
    const core::AccountConfig::Limit limit{.key = "model", .limit = 1};
    core::AccountConfig limited;
    limited.label_limits = {&limit, 1};
    account("a", 0, 1'000'000'000'000, limited);
    const uint32_t one = session();
    turn(1, [&] {
        account_claim(one, 1, pool, "a", {"model:large"});
        account_claim(one, 2, pool, "a", {"model:large"});
        account_claim(one, 3, pool, "a", {"arm", "model:large"});
    });
    EXPECT_EQ(why(one, 1).reason, WaitReason::kNoSlots);
    turn(2, [&] {
        worker(pool, "w1", {"model:large"});
        worker(pool, "w2", {"model:large", "x86"});
    });
    // Claim 3 has the most labels and no slot; claim 1 has the first one.
    const Explanation held = why(one, 2);
    EXPECT_EQ(held.reason, WaitReason::kLabelLimit);
    EXPECT_EQ(held.position, 2U);
    EXPECT_EQ(held.label, "model:large");
    EXPECT_EQ(held.label_limit, 1U);
    EXPECT_EQ(held.label_held, 1U);
    EXPECT_EQ(held.fitting, 2U);
    const Explanation none = why(one, 3);
    EXPECT_EQ(none.reason, WaitReason::kLabels);
    EXPECT_EQ(none.label, "arm");
    EXPECT_EQ(none.fitting, 0U);
    EXPECT_EQ(none.position, 1U);
    EXPECT_EQ(none.holder, shm::kNoRow);
}

// Three are wanted and two allowed: neither idle slots nor any that are given back serve it.
TEST_F(AccountExplainTest, SaysThatAClaimWantsMoreThanItsAccountMayEverHold) {
    const uint32_t pool = account_pool(3);
    const core::AccountConfig::Limit limits[] = {{.key = "*", .limit = 2}};
    core::AccountConfig limited;
    limited.label_limits = limits;
    account("a", 0, 1'000'000'000'000, limited);
    account("b", 0, 1'000'000'000'000);
    const uint32_t one = session();
    turn(1, [&] {
        account_claim(one, 1, pool, "a", {}, 3);
        account_claim(one, 2, pool, "a");
        account_claim(one, 3, pool, "a", {}, 2);
    });
    const Explanation never = why(one, 1);
    EXPECT_EQ(never.reason, WaitReason::kOverLimit);
    EXPECT_EQ(never.units, 3U);
    EXPECT_EQ(never.label, "*:");
    EXPECT_EQ(never.label_limit, 2U);
    EXPECT_EQ(never.label_held, 1U);
    const Explanation later = why(one, 3);
    EXPECT_EQ(later.reason, WaitReason::kLabelLimit);
    EXPECT_EQ(later.label_limit, 2U);
    EXPECT_EQ(later.label_held, 1U);  // not the one that it could have
    turn(2, [&] { account_claim(one, 4, pool, "b", {}, 2); });
    EXPECT_EQ(why(one, 1).reason, WaitReason::kOverLimit);  // nor is it that all are held
}

TEST_F(AccountExplainTest, SaysTheSameOfALabelThatItAsksFor) {
    const uint32_t pool = account_pool(0);
    const core::AccountConfig::Limit limit{.key = "model", .limit = 1};
    core::AccountConfig limited;
    limited.label_limits = {&limit, 1};
    account("a", 0, 1'000'000'000'000, limited);
    const uint32_t one = session();
    turn(1, [&] {
        worker(pool, "w1", {"model:large"});
        worker(pool, "w2", {"model:large"});
        account_claim(one, 1, pool, "a", {"model:large"}, 2);
    });
    const Explanation never = why(one, 1);
    EXPECT_EQ(never.reason, WaitReason::kOverLimit);
    EXPECT_EQ(never.label, "model:large");
    EXPECT_EQ(never.label_limit, 1U);
    EXPECT_EQ(never.label_held, 0U);
}

// A worker may give its slot the label that stands for all slots.
TEST_F(AccountExplainTest, CountsASlotOnceWhateverItsLabels) {
    const uint32_t pool = account_pool(0);
    const core::AccountConfig::Limit limit{.key = "*", .limit = 2};
    core::AccountConfig limited;
    limited.label_limits = {&limit, 1};
    account("a", 0, 1'000'000'000'000, limited);
    const uint32_t one = session();
    turn(1, [&] {
        worker(pool, "w1", {"*:"});
        worker(pool, "w2", {"*:"});
        account_claim(one, 1, pool, "a");
        account_claim(one, 2, pool, "a");
    });
    EXPECT_EQ(core().account(core().find_account("a")).held, 2U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

TEST_F(AccountExplainTest, NamesTheOldestHolderOfASlotThatFits) {
    const uint32_t pool = account_pool(0);
    account("a", 0, 1'000'000'000'000);
    const uint32_t one = session();
    turn(1, [&] {
        worker(pool, "w1", {"x86"});
        account_claim(one, 1, pool, "a");
    });
    turn(2, [&] {
        worker(pool, "w2", {"arm"});
        account_claim(one, 2, pool, "a");
    });
    turn(3, [&] { account_claim(one, 3, pool, "a", {"arm"}); });
    EXPECT_EQ(core().lease(why(one, 3).holder).arrival, 2U);
    // The elder one's slot turns out to be such a one as well.
    turn(4, [&] { account_claim(one, 4, pool, "a"); });
    EXPECT_EQ(core().lease(why(one, 4).holder).arrival, 1U);
}

TEST_F(AccountExplainTest, SaysThatIdleSlotsAreKeptForSeveral) {
    const uint32_t pool = account_pool(2);
    account("a", 0, 1'000'000'000'000);
    const uint32_t one = session();
    turn(1, [&] { account_claim(one, 1, pool, "a"); });
    turn(2, [&] {
        account_claim(one, 2, pool, "a", {}, 2);
        account_claim(one, 3, pool, "a");
    });
    const Explanation several = why(one, 2);
    EXPECT_EQ(several.reason, WaitReason::kUnits);
    EXPECT_EQ(several.position, 1U);
    const Explanation behind = why(one, 3);
    EXPECT_EQ(behind.reason, WaitReason::kHeldBack);
    EXPECT_EQ(behind.position, 2U);
}

// Its lease has ended, and its worker has not said ready.
TEST_F(AccountExplainTest, SaysThatASlotIsPromisedWhichNobodyHolds) {
    const uint32_t pool = account_pool(0);
    account("a", 0, 1'000'000'000'000);
    const uint32_t worker_session = session();
    const uint32_t one = session();
    turn(1, [&] {
        core().apply(core::Announce{.session = worker_session, .pool = pool, .ready = true});
    });
    turn(2, [&] { account_claim(one, 1, pool, ""); });
    const uint64_t slot = core::row_id(core().slot(0).head.generation, 0);
    turn(3, [&] {
        core().apply(core::WorkerWord{.kind = core::WorkerWord::Kind::kConfirm,
                                      .session = worker_session,
                                      .slot = slot,
                                      .round = core().slot(0).round});
    });
    ASSERT_EQ(core().slot(0).state, shm::SlotState::kLeased);
    turn(4, [&] { account_claim(one, 2, pool, "a"); });
    ASSERT_EQ(core().slot(0).state, shm::SlotState::kRecovering);
    const Explanation promised = why(one, 2);
    EXPECT_EQ(promised.reason, WaitReason::kPromised);
    EXPECT_EQ(promised.holder, shm::kNoRow);
}

TEST_F(AccountExplainTest, SaysWhoseSlotIsPromisedWhileHeIsBeingKilled) {
    turn(0, [&] {
        core().set_pool({.name = "gpu",
                         .slots = 1,
                         .expiry = shm::ExpiryMode::kStrict,
                         .order = shm::PoolOrder::kAccount},
                        nullptr);
    });
    account("a", 0, 1'000'000'000'000);
    const uint32_t one = session();
    const uint32_t other = session();
    turn(1, [&] { account_claim(one, 1, 0, ""); });
    turn(2, [&] { account_claim(other, 2, 0, "a"); });
    ASSERT_EQ(core().slot(0).state, shm::SlotState::kRecovering);
    const Explanation promised = why(other, 2);
    EXPECT_EQ(promised.reason, WaitReason::kPromised);
    ASSERT_NE(promised.holder, shm::kNoRow);
    EXPECT_EQ(core().lease(promised.holder).session, one);
}

TEST_F(AccountExplainTest, SaysWhoseSlotIsPromisedAndForHowLongHeHasGrace) {
    const uint32_t pool = account_pool(1);
    account("a", 0, 1'000'000'000'000);
    const uint32_t one = session();
    terms_.preempt_mode = shm::PreemptMode::kWithGrace;
    terms_.preempt_grace_ns = 5 * kSecond;
    turn(1 * kSecond, [&] { account_claim(one, 1, pool, ""); });
    turn(2 * kSecond, [&] { account_claim(one, 2, pool, "a"); });
    turn(4 * kSecond, [&] {});
    const Explanation promised = why(one, 2);
    EXPECT_EQ(promised.reason, WaitReason::kPromised);
    EXPECT_EQ(promised.left_ns, 3 * kSecond);  // 2 s + 5 s of grace - 4 s
    EXPECT_EQ(core().lease(promised.holder).arrival, 1U);
    EXPECT_EQ(promised.at_class, 0);
    turn(7 * kSecond, [&] {});
    EXPECT_EQ(core().claim_of_tag(one, 2), shm::kNoRow);  // it is a lease
}

// b has run slow at P0 for 20 s, so that it has cost 20 000 000, and is demoted to P1.
TEST_F(AccountExplainTest, SaysWhyItTakesNobodysSlot) {
    const uint32_t pool = account_pool(1);
    account("b", 0, 90'000'000);
    const uint32_t one = session();
    turn(1, [&] { account_claim(one, 1, pool, "b"); });
    const std::array<int64_t, 1> low = {-700'000'000};
    const std::array<int64_t, 1> same = {20'000'000};
    turn(20 * kSecond, [&] {
        ASSERT_TRUE(core().reset_balance("b", low, nullptr));
        ASSERT_TRUE(core().set_account({.name = "a", .balance = same}, nullptr));
        account_claim(one, 2, pool, "a");
        account_claim(one, 3, pool, "a", {}, 1);
    });
    EXPECT_EQ(why(one, 2).preempt, PreemptReason::kBalance);  // not more than it has cost
    EXPECT_EQ(why(one, 2).reason, WaitReason::kHeld);
    turn(21 * kSecond, [&] {});
    EXPECT_EQ(why(one, 2).preempt, PreemptReason::kBalance);
    core::PoolConfig config;
    config.name = "gpu";
    config.order = shm::PoolOrder::kAccount;
    config.slots = 1;
    config.preemption_disabled = true;
    turn(22 * kSecond, [&] { ASSERT_NE(core().set_pool(config, nullptr), shm::kNoRow); });
    EXPECT_EQ(why(one, 2).preempt, PreemptReason::kDisabled);
}

TEST_F(AccountExplainTest, SaysThatItsAccountRunsSomethingWorseItself) {
    const uint32_t pool = account_pool(1);
    account("a", 3, 1'000'000'000'000);
    const uint32_t one = session();
    turn(1, [&] { account_claim(one, 1, pool, "a"); });  // at P3
    const std::array<int64_t, 1> best = {1'000'000};
    turn(2, [&] {
        ASSERT_TRUE(core().reset_balance("a", best, nullptr));
        account_claim(one, 2, pool, "a");
    });
    EXPECT_EQ(why(one, 2).at_class, 0);
    EXPECT_EQ(why(one, 2).preempt, PreemptReason::kBanned);
}

}  // namespace
}  // namespace dibs::tests
