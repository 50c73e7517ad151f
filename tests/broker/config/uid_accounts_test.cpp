// tests/broker/config/uid_accounts_test.cpp -- users without an account of their own: the
// template's, and equal shares of a pool.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "broker/config/file_accounts.hpp"
#include "broker/config/uid_accounts.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

constexpr core::TimeNs kSecond = 1'000'000'000;

class UidAccountsTest : public testing::Test {
  protected:
    explicit UidAccountsTest(const core::Limits& limits = Bench::kLimits) : bench_(limits) {}

    void gpus(uint32_t slots, bool equal) {
        const uint32_t row = bench_.pool({.name = "gpu",
                                          .kind = shm::PoolKind::kCounted,
                                          .slots = slots,
                                          .order = shm::PoolOrder::kAccount,
                                          .promote_threshold = 0});
        bench_.accounts.set_equal(row, equal);
        config_.pools.assign(1, {});
        config_.pools[0].name = "gpu";
        config_.pools[0].equal_share = equal;
    }
    void configure(const std::optional<AccountSettings>& settings, bool renew = false) {
        config_.account_default = settings;
        bench_.accounts.configure(config_, renew);
    }
    // 0 where it has none that is configured.
    int64_t rate_of(uint32_t uid) {
        const uint32_t row = bench_.core.find_account("uid:" + std::to_string(uid));
        return row == shm::kNoRow ? 0 : bench_.core.account(row).rate[0];
    }
    void wait_a_second() {
        bench_.now += kSecond;
        bench_.turn();
        EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
    }
    void drain(uint32_t number, bool on) {
        bench_.core.begin_turn(bench_.now);
        bench_.core.apply(core::Drain{.pool = 0, .on = on, .number = number});
        bench_.finish();
    }
    void leave(Session& session) {
        bench_.sessions.end(&session, shm::Reason::kOk);
        bench_.turn();
    }

    Bench bench_;
    Config config_;
};

TEST_F(UidAccountsTest, MakesAUsersAccountFromTheTemplateWithItsFirstClaim) {
    gpus(1, false);
    configure(
        AccountSettings{.name = "", .rate = {1'500'000}, .balance = {7'000'000}, .fanout_max = 3});
    Session& session = bench_.open({}, 1000);
    bench_.turn();
    EXPECT_EQ(bench_.core.find_account("uid:1000"), shm::kNoRow);
    bench_.push(session, claim(1, 0));
    bench_.turn();
    const uint32_t row = bench_.core.find_account("uid:1000");
    ASSERT_NE(row, shm::kNoRow);
    EXPECT_EQ(bench_.core.account(row).rate[0], 1'500'000);
    EXPECT_EQ(bench_.core.account(row).fanout_max, 3U);
    EXPECT_EQ(bench_.core.balance(row)[0], 7'000'000);
    EXPECT_EQ(bench_.core.lease(bench_.core.oldest_lease(0)).account_class, 0);  // it could pay
    EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
}

TEST_F(UidAccountsTest, LeavesAccountsAloneThatSomebodyHasConfigured) {
    gpus(1, false);
    configure(AccountSettings{.name = "", .rate = {1'500'000}});
    bench_.core.begin_turn(bench_.now);
    const std::vector<int64_t> rate = {9'000'000};
    ASSERT_TRUE(bench_.core.set_account({.name = "uid:1000", .rate = rate}, nullptr));
    bench_.finish();
    Session& session = bench_.open({}, 1000);
    bench_.push(session, claim(1, 0));
    bench_.turn();
    configure(AccountSettings{.name = "", .rate = {2'000'000}}, true);
    wait_a_second();
    EXPECT_EQ(rate_of(1000), 9'000'000);
}

TEST_F(UidAccountsTest, FollowsTheTemplateOfAFileThatIsReadAgainAndGoesWithoutOne) {
    gpus(1, false);
    configure(AccountSettings{.name = "", .rate = {1'500'000}, .balance = {7'000'000}});
    Session& session = bench_.open({}, 1000);
    bench_.push(session, claim(1, 0));
    bench_.turn();
    FileAccounts file(bench_.core);
    const auto read_again = [&](const std::optional<AccountSettings>& settings) {
        configure(settings, true);
        file.begin({}, settings.has_value());
        bench_.core.begin_turn(bench_.now);
        ASSERT_TRUE(file.step());
        bench_.finish();
        wait_a_second();
    };
    read_again(AccountSettings{.name = "", .rate = {500'000}, .balance = {60'000'000}});
    EXPECT_EQ(rate_of(1000), 500'000);
    EXPECT_EQ(bench_.core.balance(bench_.core.find_account("uid:1000"))[0], 7'500'000);
    read_again(std::nullopt);
    EXPECT_EQ(rate_of(1000), 0);
    EXPECT_FALSE(bench_.accounts.unfinished());  // or the broker would not rest
}

TEST_F(UidAccountsTest, RestsWithoutATemplateThoughAPoolWasShared) {
    gpus(4, true);
    configure(AccountSettings{.name = "", .charge_max_ns = kSecond});
    Session& session = bench_.open({}, 1);
    bench_.push(session, claim(1, 0));
    bench_.turn();
    configure(std::nullopt, true);
    bench_.push(session, claim(2, 0));
    wait_a_second();
    EXPECT_FALSE(bench_.accounts.unfinished());
    EXPECT_EQ(bench_.accounts.next_due(), shm::kNever);
}

// A reload of many pools takes turns: accounts may be looked at before the pool is one that is not
// shared equally.
TEST_F(UidAccountsTest, RestsWhenTheLastPoolIsNoLongerShared) {
    gpus(4, true);
    const AccountSettings settings{.name = "", .rate = {3'000'000}, .charge_max_ns = kSecond};
    configure(settings);
    Session& session = bench_.open({}, 1);
    bench_.push(session, claim(1, 0));
    bench_.turn();
    configure(settings, true);
    bench_.push(session, claim(2, 0));
    bench_.turn();
    gpus(4, false);
    wait_a_second();
    wait_a_second();
    EXPECT_FALSE(bench_.accounts.unfinished());
    EXPECT_EQ(bench_.accounts.next_due(), shm::kNever);
}

TEST_F(UidAccountsTest, DividesThePoolByTheUsersThatAreActive) {
    gpus(4, true);
    configure(AccountSettings{.name = "", .charge_max_ns = kSecond});
    Session& first = bench_.open({}, 1);
    Session& second = bench_.open({}, 2);
    bench_.push(first, claim(1, 0));
    bench_.turn();
    EXPECT_EQ(rate_of(1), 4'000'000);
    bench_.push(second, claim(1, 0));
    bench_.turn();
    EXPECT_EQ(rate_of(2), 2'000'000);
    wait_a_second();
    EXPECT_EQ(rate_of(1), 2'000'000);
    const auto held = bench_.next(second);
    bench_.push(second, word(shm::Op::kRelease, held->id, held->fence));
    bench_.turn();
    wait_a_second();  // it has claimed since the last look
    wait_a_second();
    EXPECT_EQ(rate_of(1), 4'000'000);
}

TEST_F(UidAccountsTest, LooksOnceMoreASecondLaterThoughNothingHappensAndThenRests) {
    gpus(4, true);
    configure(AccountSettings{.name = "", .charge_max_ns = kSecond});
    Session& first = bench_.open({}, 1);
    Session& second = bench_.open({}, 2);
    bench_.push(first, claim(1, 0));
    bench_.push(second, claim(1, 0));
    wait_a_second();
    const core::TimeNs due = bench_.accounts.next_due();
    EXPECT_LE(due, bench_.now + kSecond);
    bench_.now = due;
    bench_.turn();
    EXPECT_EQ(rate_of(1), 2'000'000);
    EXPECT_EQ(rate_of(2), 2'000'000);
    EXPECT_EQ(bench_.accounts.next_due(),
              shm::kNever);  // both hold slots: nothing changes by itself
    const auto held = bench_.next(second);
    bench_.push(second, word(shm::Op::kRelease, held->id, held->fence));
    bench_.turn();  // at once: the look before has counted it
    EXPECT_EQ(bench_.accounts.next_due(), due + kSecond);
    bench_.now = due + kSecond;
    bench_.turn();
    EXPECT_EQ(rate_of(1), 4'000'000);
    EXPECT_EQ(bench_.accounts.next_due(), shm::kNever);
}

// Two of four slots are drained, then one leaves: what can be granted is divided.
TEST_F(UidAccountsTest, DividesOnlyTheSlotsThatAreGranted) {
    gpus(4, true);
    configure(AccountSettings{.name = "", .charge_max_ns = kSecond});
    Session& session = bench_.open({}, 1);
    bench_.push(session, claim(1, 0, 4));
    wait_a_second();
    EXPECT_EQ(rate_of(1), 4'000'000);
    drain(0, true);
    drain(1, true);
    EXPECT_LE(bench_.accounts.next_due(), bench_.now + kSecond);  // though nothing was decided
    wait_a_second();
    EXPECT_EQ(rate_of(1), 2'000'000);
    drain(0, false);
    drain(1, false);
    wait_a_second();
    EXPECT_EQ(rate_of(1), 4'000'000);
    gpus(3, true);
    EXPECT_EQ(bench_.core.pool(0).slots, 4U);  // it is held
    bench_.turn();
    wait_a_second();
    EXPECT_EQ(rate_of(1), 3'000'000);
}

// The pool that was shared is gone or leaves: its users pay as the template says.
TEST_F(UidAccountsTest, SharesNothingOfAPoolThatTheFileNoLongerNames) {
    gpus(4, true);
    configure(AccountSettings{.name = "", .charge_max_ns = kSecond});
    Session& session = bench_.open({}, 1);
    bench_.push(session, claim(1, 0));
    wait_a_second();
    EXPECT_EQ(rate_of(1), 4'000'000);
    config_.pools.clear();
    configure(AccountSettings{.name = "", .rate = {2'000'000}, .charge_max_ns = kSecond}, true);
    wait_a_second();
    EXPECT_EQ(rate_of(1), 2'000'000);
    wait_a_second();
    EXPECT_EQ(bench_.accounts.next_due(), shm::kNever);
}

TEST_F(UidAccountsTest, SharesNothingOfAPoolThatHasGone) {
    gpus(4, true);
    configure(AccountSettings{.name = "", .rate = {2'000'000}, .charge_max_ns = kSecond});
    Session& session = bench_.open({}, 1);
    bench_.push(session, claim(1, 0));
    wait_a_second();
    EXPECT_EQ(rate_of(1), 4'000'000);
    const auto held = bench_.next(session);
    bench_.push(session, word(shm::Op::kRelease, held->id, held->fence));
    bench_.turn();
    leave(session);
    bench_.core.begin_turn(bench_.now);
    ASSERT_EQ(bench_.core.delete_pool(0), shm::Reason::kOk);
    bench_.finish();
    bench_.turn();
    EXPECT_EQ(rate_of(1), 2'000'000);
    ++bench_.now;
    const uint32_t other = bench_.pool({.name = "other",
                                        .kind = shm::PoolKind::kCounted,
                                        .slots = 3,
                                        .order = shm::PoolOrder::kAccount});
    ASSERT_EQ(other, 0U);  // its row
    Session& next = bench_.open({}, 2);
    bench_.push(next, claim(1, 0));
    bench_.turn();
    EXPECT_EQ(rate_of(2), 2'000'000);
    EXPECT_FALSE(bench_.accounts.unfinished());
}

// Four slots, jobs of seven seconds. The first user has 60 jobs waiting before the others come, and
// all have more than can run.
TEST_F(UidAccountsTest, GivesEveryUserAsMuchWhoeverCameFirst) {
    gpus(4, true);
    configure(AccountSettings{.name = "", .charge_max_ns = kSecond});
    struct Job {
        shm::Completion grant;
        core::TimeNs end_ns;
    };
    struct User {
        Session* session;
        uint16_t tag = 0;
        std::deque<Job> running;
    };
    std::vector<User> users;
    const auto submit = [&](User& user) { bench_.push(*user.session, claim(++user.tag, 0)); };
    const auto second_passes = [&] {
        for (User& user : users) {
            while (!user.running.empty() && user.running.front().end_ns <= bench_.now) {
                const shm::Completion& grant = user.running.front().grant;
                bench_.push(*user.session, word(shm::Op::kRelease, grant.id, grant.fence));
                user.running.pop_front();
                submit(user);
            }
        }
        bench_.turn();
        for (User& user : users) {
            while (const auto heard = bench_.next(*user.session)) {
                if (heard->kind != shm::CompletionKind::kResult)
                    user.running.push_back({*heard, bench_.now + 7 * kSecond});
            }
            bench_.release_read(*user.session);
        }
        bench_.now += kSecond;
    };
    users.push_back({&bench_.open({}, 1), 0, {}});
    for (int i = 0; i < 60; ++i)
        submit(users[0]);
    for (int i = 0; i < 30; ++i)
        second_passes();
    users.push_back({&bench_.open({}, 2), 0, {}});
    users.push_back({&bench_.open({}, 3), 0, {}});
    for (int i = 0; i < 8; ++i) {
        submit(users[1]);
        submit(users[2]);
    }
    const auto used_s = [&](uint32_t uid) {
        const uint32_t row = bench_.core.find_account("uid:" + std::to_string(uid));
        return row == shm::kNoRow ? 0 : bench_.core.used_us(row) / 1'000'000;
    };
    const uint64_t alone_s = used_s(1);
    EXPECT_EQ(alone_s, 4 * 30U);  // nobody's share is left idle
    for (int i = 0; i < 1000; ++i)
        second_passes();
    for (const uint64_t had_s : {used_s(1) - alone_s, used_s(2), used_s(3)}) {
        EXPECT_GT(had_s, 1333U - 40);
        EXPECT_LT(had_s, 1333U + 40);
    }
    EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
}

TEST_F(UidAccountsTest, LetsSoManyOfAUserRunAndTheRestWait) {
    gpus(4, true);
    configure(AccountSettings{.name = "", .charge_max_ns = kSecond, .label_limits = {{"*", 2}}});
    Session& greedy = bench_.open({}, 1);
    for (uint16_t tag = 1; tag <= 3; ++tag)
        bench_.push(greedy, claim(tag, 0));
    bench_.turn();
    const auto first = bench_.next(greedy);
    ASSERT_TRUE(first && bench_.next(greedy));
    EXPECT_FALSE(bench_.next(greedy));  // though two slots are idle
    Session& other = bench_.open({}, 2);
    bench_.push(other, claim(1, 0));
    bench_.turn();
    EXPECT_EQ(bench_.next(other)->outcome, shm::Outcome::kGranted);
    bench_.push(greedy, word(shm::Op::kRelease, first->id, first->fence));
    bench_.turn();
    EXPECT_EQ(bench_.next(greedy)->kind, shm::CompletionKind::kResult);
    EXPECT_EQ(bench_.next(greedy)->outcome, shm::Outcome::kGranted);
    EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
}

class FewAccountsTest : public UidAccountsTest {
  protected:
    static constexpr core::Limits kFew = {.pools = 4,
                                          .sessions = 8,
                                          .slots = 64,
                                          .claims = 256,
                                          .leases = 256,
                                          .arena_blocks = 64,
                                          .accounts = 2};
    FewAccountsTest() : UidAccountsTest(kFew) {}
};

TEST_F(FewAccountsTest, LetsOneGiveWayWhoseUserHasGoneAndOwesNothing) {
    gpus(4, false);
    configure(AccountSettings{.name = "", .rate = {1'000'000}});
    const auto claims = [&](Session& user) {
        bench_.push(user, claim(1, 0));
        bench_.turn();
        return *bench_.next(user);
    };
    const auto gives_back = [&](Session& user, const shm::Completion& held) {
        bench_.push(user, word(shm::Op::kRelease, held.id, held.fence));
        bench_.turn();
    };
    Session& first = bench_.open({}, 1);
    Session& second = bench_.open({}, 2);
    Session& third = bench_.open({}, 3);
    const shm::Completion of_first = claims(first);
    const shm::Completion of_second = claims(second);
    gives_back(first, of_first);
    EXPECT_EQ(claims(third).outcome, shm::Outcome::kRejected);  // one is there, one holds a slot
    EXPECT_EQ(rate_of(1), 1'000'000);
    EXPECT_EQ(rate_of(2), 1'000'000);
    leave(first);
    EXPECT_EQ(claims(third).outcome, shm::Outcome::kGranted);
    EXPECT_EQ(rate_of(1), 0);
    EXPECT_EQ(rate_of(2), 1'000'000);
    EXPECT_EQ(rate_of(3), 1'000'000);
    bench_.core.begin_turn(bench_.now);
    ASSERT_TRUE(bench_.core.reset_balance("uid:2", std::vector<int64_t>{-5'000'000}, nullptr));
    bench_.finish();
    gives_back(second, of_second);
    leave(second);
    Session& fourth = bench_.open({}, 4);
    EXPECT_EQ(claims(fourth).outcome, shm::Outcome::kRejected);  // its debt would be lost
    ASSERT_EQ(rate_of(2), 1'000'000);
    EXPECT_EQ(bench_.core.balance(bench_.core.find_account("uid:2"))[0], -5'000'000);
    bench_.now += 5 * kSecond;  // it has paid
    bench_.release_read(fourth);
    bench_.push(fourth, claim(2, 0));
    bench_.turn();
    EXPECT_EQ(bench_.next(fourth)->outcome, shm::Outcome::kGranted);
    EXPECT_EQ(rate_of(2), 0);
    EXPECT_EQ(rate_of(4), 1'000'000);
    EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
}

TEST_F(FewAccountsTest, LetsNoMoreGiveWayThanAreNeeded) {
    gpus(4, false);
    configure(AccountSettings{.name = "", .rate = {1'000'000}});
    for (const uint32_t uid : {1U, 2U}) {
        Session& user = bench_.open({}, uid);
        bench_.push(user, claim(1, 0));
        bench_.turn();
        const auto held = bench_.next(user);
        bench_.push(user, word(shm::Op::kRelease, held->id, held->fence));
        bench_.turn();
        leave(user);
    }
    Session& third = bench_.open({}, 3);
    bench_.push(third, claim(1, 0));
    bench_.turn();
    EXPECT_EQ(rate_of(1) + rate_of(2), 1'000'000);
    EXPECT_EQ(rate_of(3), 1'000'000);
    EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
}

}  // namespace
}  // namespace dibs::test
