// tests/broker/config/config_account_test.cpp -- accounts and pools ordered by them, as a file says
// it, and every kind of mistake with its place.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "broker/config/config.hpp"
#include "tests/broker/config/config_mistakes.hpp"

namespace dibs {
namespace {

using Numbers = std::vector<int64_t>;

const std::string kAccount = "[[account]]\nname = \"a\"\n";
TEST(ConfigAccount, ReadsEveryField) {
    const ConfigResult result = parse_config(kAccount +
                                                 "rate = [3, 0.5, 0, 0, 0.000001]\n"
                                                 "balance = [-60, 0, 1.25]\ncharge_max = \"100s\"\n"
                                                 "fanout_max = 4\nfree_tasks_disabled = true\n"
                                                 "label_limits = { gpu = 2, \"os\" = 0 }\n",
                                             "f");
    ASSERT_EQ(result.mistakes, Lines{});
    ASSERT_EQ(result.config.accounts.size(), 1U);
    std::vector<core::AccountConfig::Limit> limits;
    const core::AccountConfig account = result.config.accounts[0].view(limits);
    EXPECT_EQ(account.name, "a");
    EXPECT_EQ(Numbers(account.rate.begin(), account.rate.end()),
              (Numbers{3'000'000, 500'000, 0, 0, 1}));
    EXPECT_EQ(Numbers(account.balance.begin(), account.balance.end()),
              (Numbers{-60'000'000, 0, 1'250'000}));
    EXPECT_EQ(account.charge_max_ns, 100'000'000'000U);
    EXPECT_EQ(account.fanout_max, 4U);
    EXPECT_TRUE(account.free_tasks_disabled);
    ASSERT_EQ(account.label_limits.size(), 2U);
    EXPECT_EQ(account.label_limits[0].key, "gpu");
    EXPECT_EQ(account.label_limits[0].limit, 2U);
    EXPECT_EQ(account.label_limits[1].key, "os");
    EXPECT_EQ(account.label_limits[1].limit, 0U);
}

TEST(ConfigAccount, TakesOneNumberForTheBestClass) {
    const ConfigResult result = parse_config(kAccount + "rate = 2\nbalance = 0.1\n", "f");
    ASSERT_EQ(result.mistakes, Lines{});
    EXPECT_EQ(result.config.accounts[0].rate, Numbers{2'000'000});
    EXPECT_EQ(result.config.accounts[0].balance, Numbers{100'000});
}

TEST(ConfigAccount, HasNoMoreThanFiveClasses) {
    EXPECT_EQ(mistakes(kAccount + "balance = [1, 2, 3, 4, 5, 6]\n"),
              Lines{"f:3:27: balance: has 6 numbers; there are five classes, P0 to P4"});
    EXPECT_EQ(mistakes(kAccount + "rate = [0, 0, 0, 0, 0, 0, 1]\n"),
              Lines{"f:3:24: rate: has 7 numbers; there are five classes, P0 to P4"});
}

TEST(ConfigAccount, RefusesMoneyThatCannotBeCounted) {
    EXPECT_EQ(mistakes(kAccount + "rate = [1, -0.5]\n"),
              Lines{"f:3:12: rate: must be between 0 and 1000000"});
    EXPECT_EQ(mistakes(kAccount + "rate = 1000001\n"),
              Lines{"f:3:8: rate: must be between 0 and 1000000"});
    EXPECT_EQ(mistakes(kAccount + "rate = inf\n"),
              Lines{"f:3:8: rate: must be between 0 and 1000000"});
    EXPECT_EQ(mistakes(kAccount + "rate = nan\n"),
              Lines{"f:3:8: rate: must be between 0 and 1000000"});
    EXPECT_EQ(mistakes(kAccount + "balance = -1000000000001\n"),
              Lines{"f:3:11: balance: must be between -1000000000000 and 1000000000000"});
    EXPECT_EQ(mistakes(kAccount + "rate = 0.0000001\n"),
              Lines{"f:3:8: rate: must have at most six decimals"});
    EXPECT_EQ(mistakes(kAccount + "rate = \"3\"\n"),
              Lines{"f:3:8: rate: must be a number, is a string"});
    EXPECT_EQ(mistakes(kAccount + "rate = 1000000\ncharge_max = \"278h\"\n"),
              Lines{"f:4:14: charge_max: rate times charge_max is more than can be counted"});
    EXPECT_EQ(mistakes(kAccount + "rate = 1000000\ncharge_max = \"277h\"\n"), Lines{});
}

TEST(ConfigAccount, RefusesLimitsThatAreNone) {
    EXPECT_EQ(mistakes(kAccount + "fanout_max = 65536\n"),
              Lines{"f:3:14: fanout_max: must be between 0 and 65535"});
    EXPECT_EQ(mistakes(kAccount + "label_limits = { gpu = -1 }\n"),
              Lines{"f:3:24: label_limits.gpu: must be a number of slots"});
    EXPECT_EQ(mistakes(kAccount + "label_limits = { gpu = \"2\" }\n"),
              Lines{"f:3:24: label_limits.gpu: must be a number of slots"});
    EXPECT_EQ(mistakes(kAccount + "label_limits = [\"gpu\"]\n"),
              Lines{"f:3:16: label_limits: must be a table, such as { gpu = 2 }"});
    EXPECT_EQ(mistakes(kAccount + "label_limits = { \"" + std::string(64, 'x') + "\" = 1 }\n"),
              Lines{"f:3:18: label_limits: a key must have 1 to 63 bytes and no control "
                    "characters"});
    std::string many;
    for (int i = 0; i < 33; ++i)
        many += "k" + std::to_string(i) + " = 1,";
    many.pop_back();
    EXPECT_EQ(mistakes(kAccount + "label_limits = { " + many + " }\n"),
              Lines{"f:3:16: label_limits: has 33, at most 32 can be"});
}

TEST(ConfigAccount, NamesUnknownKeysAndSecondAccounts) {
    EXPECT_EQ(mistakes(kAccount + "  rates = 3\n"),
              Lines{"f:3:3: unknown key \"rates\" in an account; did you mean \"rate\"?"});
    EXPECT_EQ(mistakes(kAccount + kAccount),
              Lines{"f:4:8: a second account \"a\"; the first is in line 2"});
    EXPECT_EQ(mistakes("[[account]]\nrate = 1\n"), Lines{"f:1:1: an account has no \"name\""});
    EXPECT_EQ(mistakes("[[account]]\nname = \"\"\n"),
              Lines{"f:2:8: name: must have 1 to 63 bytes and no control characters"});
    EXPECT_EQ(mistakes("[account]\nname = \"a\"\n"),
              Lines{"f:1:1: account: must be an array of tables: write [[account]]"});
    EXPECT_EQ(mistakes("[limits]\naccounts = 1\n" + kAccount + "[[account]]\nname = \"b\"\n"),
              Lines{"f:3:1: 2 accounts, but limits.accounts is 1"});
}

TEST(ConfigAccount, ReadsAPoolThatIsOrderedByAccount) {
    ConfigResult result = parse_config(kPool +
                                           "order = \"account\"\npreemption_disabled = true\n"
                                           "promote_threshold = 10\ndemote_threshold = -0.5\n"
                                           "account_expiry = \"1min\"\nrequest_age_max = \"2h\"\n"
                                           "queue_timeout = \"3s\"\n",
                                       "f");
    ASSERT_EQ(result.mistakes, Lines{});
    const core::PoolConfig pool = result.config.pools[0].view();
    EXPECT_EQ(pool.order, shm::PoolOrder::kAccount);
    EXPECT_TRUE(pool.preemption_disabled);
    EXPECT_EQ(result.config.pools[0].preempt.mode, shm::PreemptMode::kForbidden);
    EXPECT_EQ(pool.promote_threshold, 10'000'000);
    EXPECT_EQ(pool.demote_threshold, -500'000);
    EXPECT_EQ(pool.account_expiry_ns, 60'000'000'000U);
    EXPECT_EQ(pool.request_age_max_ns, 7'200'000'000'000U);
    EXPECT_EQ(pool.queue_timeout_ns, 3'000'000'000U);
}

TEST(ConfigAccount, ReadsWhatMayHappenToALeaseWhoseClaimDoesNotSay) {
    const auto preempt = [](const std::string& word) {
        return parse_config(kPool + "order = \"account\"\npreempt = \"" + word + "\"\n", "f")
            .config.pools[0]
            .preempt;
    };
    EXPECT_EQ(preempt("never").mode, shm::PreemptMode::kForbidden);
    EXPECT_EQ(preempt("at-once").mode, shm::PreemptMode::kAtOnce);
    EXPECT_EQ(preempt("10s").mode, shm::PreemptMode::kWithGrace);
    EXPECT_EQ(preempt("10s").grace_ns, 10'000'000'000U);
    EXPECT_EQ(mistakes(kPool + "order = \"account\"\npreempt = \"soon\"\n"),
              Lines{"f:6:11: preempt: invalid value \"soon\": expected never, at-once or a grace "
                    "such as \"10s\""});
}

TEST(ConfigAccount, ReadsAnOrderByPriority) {
    const ConfigResult result =
        parse_config(kPool + "order = \"priority\"\nexpiry = \"lazy\"\n", "f");
    EXPECT_EQ(result.config.pools.front().values.order, shm::PoolOrder::kPriority);
    EXPECT_EQ(mistakes(kPool + "order = \"priority\"\npreempt = \"never\"\n"),
              Lines{"f:6:1: preempt: only a pool with order = \"account\" has it"});
}

TEST(ConfigAccount, RefusesWhatAPoolOfThatOrderDoesNotHave) {
    EXPECT_EQ(mistakes(kPool + "preempt = \"never\"\n"),
              Lines{"f:5:1: preempt: only a pool with order = \"account\" has it"});
    EXPECT_EQ(mistakes(kPool + "promote_threshold = 3\n"),
              Lines{"f:5:1: promote_threshold: only a pool with order = \"account\" has it"});
    EXPECT_EQ(
        mistakes(kPool + "order = \"accounts\"\n"),
        Lines{"f:5:9: order: \"accounts\" is none of \"arrival\", \"priority\", \"account\""});
    EXPECT_EQ(mistakes(kPool + "order = \"account\"\nexpiry = \"lazy\"\n"),
              Lines{"f:6:10: expiry: a pool ordered by account has cooperative or strict expiry"});
}

TEST(ConfigAccount, HasATemplateForUsersWithoutOne) {
    const ConfigResult none = parse_config(kPool, "f");
    EXPECT_FALSE(none.config.account_default);
    const ConfigResult result = parse_config("[account_default]\nrate = 2\nfanout_max = 3\n", "f");
    ASSERT_EQ(result.mistakes, Lines{});
    ASSERT_TRUE(result.config.account_default);
    EXPECT_EQ(result.config.account_default->rate, Numbers{2'000'000});
    EXPECT_EQ(result.config.account_default->fanout_max, 3U);
    EXPECT_EQ(mistakes("[account_default]\nname = \"a\"\n"),
              Lines{"f:2:1: name: each user's account has its own, \"uid:<n>\""});
    EXPECT_EQ(mistakes("[[account_default]]\nrate = 1\n"),
              Lines{"f:1:1: account_default: must be a table: write [account_default]"});
    EXPECT_EQ(mistakes("[account_default]\nraet = 1\n"),
              Lines{"f:2:1: unknown key \"raet\" in [account_default]; did you mean \"rate\"?"});
}

TEST(ConfigAccount, BoundsWhatRunsAtOnceInAPool) {
    const ConfigResult result = parse_config("[account_default]\nrunning_max = 2\n", "f");
    ASSERT_EQ(result.mistakes, Lines{});
    const auto& limits = result.config.account_default->label_limits;
    ASSERT_EQ(limits.size(), 1U);
    EXPECT_EQ(limits[0], (std::pair<std::string, uint32_t>("*", 2)));
    EXPECT_EQ(mistakes(kAccount + "running_max = 0\n"),
              Lines{"f:3:15: running_max: must be between 1 and 65535"});
}

TEST(ConfigAccount, GivesEveryUserAsMuchOfAPoolWithAnEqualShare) {
    const std::string by_account = kPool + "order = \"account\"\n";
    const std::string equal = by_account + "share = \"equal\"\n";
    const ConfigResult result = parse_config(equal + "[account_default]\nfanout_max = 3\n", "f");
    ASSERT_EQ(result.mistakes, Lines{});
    EXPECT_TRUE(result.config.pools[0].equal_share);
    EXPECT_EQ(result.config.pools[0].values.promote_threshold, 0);
    ASSERT_TRUE(result.config.account_default);
    EXPECT_EQ(result.config.account_default->charge_max_ns, 1'000'000'000U);
    EXPECT_EQ(result.config.account_default->fanout_max, 3U);
    EXPECT_EQ(doubts_about(result.config), Lines{});
    const ConfigResult unequal = parse_config(by_account, "f");
    EXPECT_FALSE(unequal.config.account_default);
    EXPECT_EQ(doubts_about(unequal.config).size(), 1U);  // first come, first served
    EXPECT_EQ(mistakes(equal + "[account_default]\nrate = 3\n"),
              Lines{"f:8:1: rate: a pool with share = \"equal\" says it"});
    EXPECT_EQ(mistakes(kPool + "share = \"equal\"\n"),
              Lines{"f:5:1: share: only a pool with order = \"account\" has it"});
}

TEST(ConfigAccount, NotesThatPoolsWithAnEqualShareAreSharedTogether) {
    const auto pool = [](const std::string& name) {
        return "[[pool]]\nname = \"" + name +
               "\"\nkind = \"counted\"\nslots = 2\norder = \"account\"\nshare = \"equal\"\n";
    };
    EXPECT_EQ(doubts_about(parse_config(pool("a"), "f").config), Lines{});
    EXPECT_EQ(doubts_about(parse_config(pool("a") + pool("b"), "f").config),
              Lines{"f: note: pools \"a\", \"b\" have share = \"equal\" and are shared together: "
                    "every user gets as much of all of them as every other, and who uses only one "
                    "of them may use more of that one"});
}

TEST(ConfigAccount, RefusesToPromoteBelowWhereItDemotes) {
    const std::string by_account = kPool + "order = \"account\"\n";
    const std::string what = "promote_threshold is below demote_threshold";
    EXPECT_EQ(mistakes(by_account + "demote_threshold = 3\npromote_threshold = 3\n"), Lines{});
    EXPECT_EQ(mistakes(by_account + "demote_threshold = 3\npromote_threshold = 2\n"),
              Lines{"f:7:21: promote_threshold: " + what});
    EXPECT_EQ(mistakes(by_account + "demote_threshold = 601\n"),
              Lines{"f:6:20: demote_threshold: " + what});
}

TEST(ConfigAccount, KnowsTheAccountsThatPoliciesName) {
    const std::string policy = "[[policy]]\ndefault = true\naccount = ";
    EXPECT_EQ(mistakes(kAccount + policy + "\"a\"\n"), Lines{});
    EXPECT_EQ(mistakes(kAccount + policy + "\"uid:7\"\n"), Lines{});
    EXPECT_EQ(mistakes(kAccount + policy + "\"other\"\n"),
              Lines{"f:5:11: account: no [[account]] is named \"other\""});
    EXPECT_EQ(mistakes("[[account]]\nname = \"research\"\n" + policy + "\"reserch\"\n"),
              Lines{"f:5:11: account: no [[account]] is named \"reserch\"; did you mean "
                    "\"research\"?"});
    // A file without accounts leaves them to administrators.
    EXPECT_EQ(mistakes(policy + "\"b\"\n"), Lines{});
}

}  // namespace
}  // namespace dibs
