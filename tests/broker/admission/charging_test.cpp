// tests/broker/admission/charging_test.cpp -- whom a session's claims are charged to: its policy's
// account, whatever has changed since it was opened.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "broker/config/file_accounts.hpp"
#include "broker/takeover/adoption.hpp"
#include "shm/board.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::Outcome;

class ChargingTest : public testing::Test {
  protected:
    static constexpr uint16_t kTokens = 0;  // a pool ordered by account
    static constexpr uint16_t kPlain = 1;

    void SetUp() override {
        bench_.pool({.name = "tokens",
                     .kind = shm::PoolKind::kCounted,
                     .slots = 1,
                     .order = shm::PoolOrder::kAccount});
        bench_.pool({.name = "plain", .kind = shm::PoolKind::kCounted, .slots = 1});
    }
    void configure(std::vector<AccountSettings> accounts) {
        accounts_ = std::move(accounts);
        file_.begin(accounts_);
        bool done = false;
        while (!done) {
            bench_.core.begin_turn(bench_.now);
            done = file_.step();
            bench_.core.decide();
            bench_.core.commit();
            bench_.core.clear();
        }
    }
    void charge(uint32_t uid, const std::string& account) {
        policy_ = std::make_shared<Policy>(*policy_);
        policy_->users[uid].account = account;
        bench_.quotas.set_policy(policy_, bench_.sessions.all());
    }
    // The account that the only claim or lease of a pool is charged to; "": none.
    std::string charged_in(uint16_t pool) {
        for (uint32_t row = 0; row < Bench::kLimits.claims; ++row) {
            const shm::ClaimRow& claim = bench_.core.claim(row);
            if (claim.state == shm::ClaimState::kFree || claim.pool != pool) continue;
            if (claim.account == shm::kNoRow) return "";
            const shm::AccountRow& account = bench_.core.account(claim.account);
            return {account.name, account.name_size};
        }
        return "no claim";
    }
    void claim_and_release(Session& session, const std::string& account) {
        bench_.push(session, claim(1, kTokens));
        bench_.turn();
        const auto granted = bench_.next(session);
        ASSERT_TRUE(granted);
        ASSERT_EQ(granted->outcome, Outcome::kGranted);
        EXPECT_EQ(charged_in(kTokens), account);
        bench_.push(session, word(shm::Op::kRelease, granted->id, granted->fence));
        bench_.turn();
        (void)bench_.next(session);
        EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
    }

    Bench bench_;
    FileAccounts file_{bench_.core};
    std::vector<AccountSettings> accounts_;
    std::shared_ptr<Policy> policy_ = std::make_shared<Policy>();
};

TEST_F(ChargingTest, IsItsUidsOwnAccountWherePolicyNamesNone) {
    claim_and_release(bench_.open({}, 1000), "uid:1000");
    claim_and_release(bench_.open({}, 7), "uid:7");
}

TEST_F(ChargingTest, FollowsThePolicyAsItIsNow) {
    charge(1000, "research");
    Session& session = bench_.open({}, 1000);
    claim_and_release(session, "research");
    charge(1000, "teaching");
    claim_and_release(session, "teaching");
    charge(1000, "");
    claim_and_release(session, "uid:1000");
}

TEST_F(ChargingTest, LeavesPoolsInOrderOfArrivalAlone) {
    charge(1000, "research");
    Session& session = bench_.open({}, 1000);
    bench_.push(session, claim(1, kPlain));
    bench_.push(session, claim(2, kPlain));
    bench_.turn();
    EXPECT_EQ(charged_in(kPlain), "");
    EXPECT_EQ(bench_.core.find_account("research"), shm::kNoRow);
}

TEST_F(ChargingTest, TakesNoSlotOfAClaimThatDoesNotSaySoUnlessItsPoolDoes) {
    configure({{.name = "rich", .balance = {1'000'000}}});
    charge(1000, "rich");
    Session& rich = bench_.open({}, 1000);
    Session& holder = bench_.open({}, 3000);
    bench_.push(holder, claim(1, kTokens));
    bench_.turn();
    const auto held = bench_.next(holder);
    ASSERT_TRUE(held);
    bench_.push(rich, claim(1, kTokens));
    bench_.turn();
    EXPECT_FALSE(bench_.next(rich));  // never, without the claim's word
    bench_.push(holder, word(shm::Op::kRelease, held->id, held->fence));
    bench_.turn();
    EXPECT_TRUE(bench_.next(rich));
}

TEST_F(ChargingTest, ServesAnAccountThatIsNotConfiguredInTheFreeClass) {
    configure({{.name = "rich", .balance = {1'000'000}}});
    charge(1000, "rich");
    charge(2000, "gone");
    Session& rich = bench_.open({}, 1000);
    Session& gone = bench_.open({}, 2000);
    Session& holder = bench_.open({}, 3000);
    bench_.operations.set_preempt(kTokens, {.mode = shm::PreemptMode::kAtOnce});
    bench_.push(holder, claim(1, kTokens));
    bench_.turn();
    const auto held = bench_.next(holder);
    ASSERT_EQ(held->outcome, Outcome::kGranted);
    bench_.push(gone, claim(1, kTokens));  // came first
    bench_.turn();
    bench_.push(rich, claim(1, kTokens));  // takes the slot of a free one
    bench_.turn();
    ASSERT_TRUE(bench_.next(rich));
    EXPECT_FALSE(bench_.next(gone));
    EXPECT_EQ(bench_.core.lease(bench_.core.oldest_lease(kTokens)).account_class, 0);
}

TEST_F(ChargingTest, SurvivesADeletedAccount) {
    configure({{.name = "research", .balance = {1'000'000}}});
    charge(1000, "research");
    Session& session = bench_.open({}, 1000);
    bench_.push(session, claim(1, kTokens));
    bench_.push(session, claim(2, kTokens));
    bench_.turn();
    const auto granted = bench_.next(session);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    configure({});
    const uint32_t row = bench_.core.find_account("research");
    ASSERT_NE(row, shm::kNoRow);  // its claims name it
    EXPECT_EQ(bench_.core.account(row).flags & shm::AccountFlag::kConfigured, 0);
    bench_.push(session, word(shm::Op::kRelease, granted->id, granted->fence));
    bench_.turn();
    EXPECT_EQ(bench_.next(session)->kind, shm::CompletionKind::kResult);
    const auto second = bench_.next(session);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->outcome, Outcome::kGranted);
    EXPECT_EQ(bench_.core.lease(bench_.core.oldest_lease(kTokens)).account_class, 5);
    EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
}

TEST_F(ChargingTest, FollowsTheFileButForBalancesAndWhatOthersHaveMade) {
    configure({{.name = "a", .rate = {1'000'000}, .balance = {5'000'000}}, {.name = "b"}});
    std::string why;
    bench_.core.begin_turn(bench_.now);
    ASSERT_TRUE(bench_.core.set_account({.name = "made"}, &why));
    bench_.core.decide();
    bench_.core.commit();
    bench_.core.clear();
    configure({{.name = "a", .rate = {2'000'000}, .balance = {9'000'000}}, {.name = "c"}});
    const uint32_t a = bench_.core.find_account("a");
    ASSERT_NE(a, shm::kNoRow);
    EXPECT_EQ(bench_.core.account(a).rate[0], 2'000'000);
    EXPECT_EQ(bench_.core.balance(a)[0], 5'000'000);
    EXPECT_EQ(bench_.core.find_account("b"), shm::kNoRow);
    EXPECT_NE(bench_.core.find_account("c"), shm::kNoRow);
    EXPECT_NE(bench_.core.find_account("made"), shm::kNoRow);
    EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
}

TEST_F(ChargingTest, TakesMoreAccountsThanOneTurnHasRoomFor) {
    std::vector<AccountSettings> many;
    for (int i = 0; i < 1000; ++i) {
        many.push_back({.name = "account " + std::to_string(i)});
        if (i < 30) many.back().label_limits = {{"gpu", 1}};  // a block of the arena each
    }
    configure(many);
    for (const AccountSettings& account : many)
        EXPECT_NE(bench_.core.find_account(account.name), shm::kNoRow);
    configure({});
    EXPECT_EQ(bench_.core.find_account("account 7"), shm::kNoRow);
    EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
}

TEST_F(ChargingTest, ShowsOnTheBoardWhatAnAccountHasHad) {
    configure({{.name = "research", .rate = {2'000'000, 500'000}}});
    charge(1000, "research");
    Session& session = bench_.open({}, 1000);
    bench_.push(session, claim(1, kTokens));
    bench_.turn();
    const auto granted = bench_.next(session);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    bench_.now += 5'000'000;
    bench_.push(session, claim(2, kTokens));
    bench_.turn();
    const uint32_t row = bench_.core.find_account("research");
    ASSERT_LT(row, Bench::kAccountsShown);
    shm::AccountPicture picture;
    ASSERT_TRUE(shm::board_read(bench_.board.accounts()[row], picture));
    EXPECT_EQ(std::string(picture.name, picture.name_size), "research");
    EXPECT_EQ(picture.state, shm::BoardAccountState::kConfigured);
    EXPECT_EQ(picture.rate, 2'500'000U);
    EXPECT_EQ(picture.held, 1U);
    EXPECT_EQ(picture.waiting, 1U);
    EXPECT_EQ(picture.used_us, 5'000U);
    EXPECT_EQ(picture.time_ns, bench_.now);
    // A turn later the second claim holds the slot; another 2 ms, and nobody does.
    bench_.now += 1'000'000;
    bench_.push(session, word(shm::Op::kRelease, granted->id, granted->fence));
    bench_.turn();
    (void)bench_.next(session);
    const auto second = bench_.next(session);
    ASSERT_EQ(second->outcome, Outcome::kGranted);
    bench_.now += 2'000'000;
    bench_.push(session, word(shm::Op::kRelease, second->id, second->fence));
    bench_.turn();
    ASSERT_TRUE(shm::board_read(bench_.board.accounts()[row], picture));
    EXPECT_EQ(picture.held, 0U);
    EXPECT_EQ(picture.waiting, 0U);
    EXPECT_EQ(picture.used_us, 8'000U);
    bench_.now += 10'000'000;
    configure({});  // no claim, no session and no file names it
    bench_.publisher.flush();
    ASSERT_TRUE(shm::board_read(bench_.board.accounts()[row], picture));
    EXPECT_EQ(picture.state, shm::BoardAccountState::kNone);
    EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
}

TEST_F(ChargingTest, GoesOnUnderASuccessor) {
    charge(1000, "research");
    Session& left = bench_.open({}, 1000);
    bench_.push(left, claim(1, kTokens));
    bench_.push(left, claim(2, kTokens));
    bench_.turn();
    ASSERT_TRUE(bench_.next(left));
    Sessions sessions(Bench::kLimits.sessions);
    Quotas quotas(bench_.core);
    Pledges pledges(bench_.core);
    UidAccounts accounts(bench_.core);
    LeaseWords words(bench_.core, sessions, bench_.clock);
    Operations operations(bench_.core, quotas, pledges, accounts, words);
    Adoption adoption(bench_.core, sessions, operations);
    std::vector<InheritedSession> all(1);
    InheritedSession& inherited = all.front();
    inherited.row = left.row;
    inherited.generation = left.generation;
    inherited.at(SessionDescriptor::kUp) = std::move(left.up_fd);
    inherited.at(SessionDescriptor::kDown) = std::move(left.down_fd);
    adoption.map(all);
    const std::unique_ptr<Session> heir(adoption.adopt(0));
    ASSERT_NE(heir, nullptr);
    adoption.restore_rooms();  // the room of what runs is one room, though claim and lease name it
    EXPECT_FALSE(heir->ending);
    EXPECT_EQ(heir->rooms.lines_free(), left.rooms.lines_free());
    quotas.set_policy(policy_, {});
    quotas.add(*heir);
    EXPECT_EQ(heir->charged_to, "research");  // the bench opened it without an account
}

}  // namespace
}  // namespace dibs::test
