// tests/broker/admission/quotas_test.cpp -- what a uid may claim and offer, and whom it is told of.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/quotas.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "shm/operation.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::Outcome;
using shm::Reason;

class QuotasTest : public testing::Test {
  protected:
    void SetUp() override {
        bench_.pool({.name = "tokens", .kind = shm::PoolKind::kCounted, .slots = 3});
        bench_.pool({.name = "web", .kind = shm::PoolKind::kWorker, .payload_max = 64});
    }
    void allow(const Allowance& allowance) {
        auto policy = std::make_shared<Policy>();
        policy->users[1000] = allowance;
        bench_.quotas.set_policy(policy, bench_.sessions.all());
    }
    // Claims and says what became of each in that turn: granted, a refusal, or
    // kState: it waits.
    std::vector<Reason> claims(Session& session, std::vector<uint16_t> tags, uint16_t pool = 0) {
        for (const uint16_t tag : tags)
            bench_.push(session, claim(tag, pool));
        bench_.turn();
        std::map<uint16_t, Reason> ends;
        while (const auto end = bench_.next(session))
            ends[end->tag] = end->reason;
        std::vector<Reason> reasons;
        for (const uint16_t tag : tags)
            reasons.push_back(ends.count(tag) != 0 ? ends[tag] : Reason::kState);
        return reasons;
    }

    Bench bench_;
};

TEST_F(QuotasTest, LetAClaimWaitNoMoreThanTheBacklogOfItsUid) {
    Session& one = bench_.open();
    Session& two = bench_.open();
    Session& stranger = bench_.open({}, 2000);
    allow({.backlog = 2});
    // Three slots: the claims of one turn have not ended before its pass.
    EXPECT_EQ(claims(one, {1, 2, 3}),
              (std::vector<Reason>{Reason::kOk, Reason::kOk, Reason::kLimit}));
    EXPECT_EQ(claims(stranger, {1}), (std::vector<Reason>{Reason::kOk}));
    EXPECT_EQ(claims(one, {3}), (std::vector<Reason>{Reason::kState}));
    EXPECT_EQ(claims(two, {1}), (std::vector<Reason>{Reason::kState}));
    EXPECT_EQ(claims(two, {2}), (std::vector<Reason>{Reason::kLimit}));
    EXPECT_EQ(claims(stranger, {2, 3, 4}), (std::vector<Reason>(3, Reason::kState)));
    EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
}

TEST_F(QuotasTest, CountLeasesAndClaimsThatMayBecomeOne) {
    Session& one = bench_.open();
    Session& two = bench_.open();
    allow({.leases = 4});
    EXPECT_EQ(claims(one, {1, 2, 3}), (std::vector<Reason>(3, Reason::kOk)));
    EXPECT_EQ(claims(two, {1}), (std::vector<Reason>{Reason::kState}));
    EXPECT_EQ(claims(two, {2}), (std::vector<Reason>{Reason::kLimit}));
    bench_.sessions.end(&one, Reason::kOk);
    bench_.turn();
    EXPECT_EQ(bench_.next(two)->outcome, Outcome::kGranted);  // what waited
    EXPECT_EQ(claims(two, {2, 3}), (std::vector<Reason>{Reason::kOk, Reason::kOk}));
    EXPECT_EQ(claims(two, {4, 5}), (std::vector<Reason>{Reason::kState, Reason::kLimit}));
}

TEST_F(QuotasTest, CountAReleaseOfTheSameBatch) {
    Session& session = bench_.open();
    allow({.leases = 1});
    bench_.push(session, claim(1));
    bench_.turn();
    const auto granted = bench_.next(session);
    ASSERT_TRUE(granted);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    bench_.push(session, word(shm::Op::kRelease, granted->id, granted->fence));
    bench_.push(session, claim(1));
    bench_.turn();
    EXPECT_EQ(bench_.next(session)->reason, Reason::kOk);
    EXPECT_EQ(bench_.next(session)->outcome, Outcome::kGranted);
}

TEST_F(QuotasTest, LetAUidClaimFromItsPoolsOnly) {
    Session& session = bench_.open();
    Session& stranger = bench_.open({}, 2000);
    allow({.pools = {{"web"}}});
    EXPECT_EQ(claims(session, {1}, 0), (std::vector<Reason>{Reason::kNotAllowed}));
    EXPECT_EQ(claims(session, {1}, 1), (std::vector<Reason>{Reason::kState}));
    EXPECT_EQ(claims(session, {2}, 7), (std::vector<Reason>{Reason::kUnknownPool}));
    EXPECT_EQ(claims(stranger, {1}, 0), (std::vector<Reason>{Reason::kOk}));
}

TEST_F(QuotasTest, LetAUidAnnounceInItsOffersOnly) {
    Session& session = bench_.open();
    allow({.offers = {{}}});
    shm::Submission announce = word(shm::Op::kAnnounce, 77, 0);
    announce.pool = 1;
    bench_.push(session, announce);
    bench_.turn();
    EXPECT_EQ(bench_.next(session)->reason, Reason::kNotAllowed);
    allow({});
    bench_.push(session, announce);
    bench_.turn();
    EXPECT_EQ(bench_.next(session)->reason, Reason::kOk);
}

TEST_F(QuotasTest, TakeANewPolicyAtOnce) {
    Session& session = bench_.open();
    allow({.leases = 1});
    EXPECT_EQ(claims(session, {1, 2}), (std::vector<Reason>{Reason::kOk, Reason::kLimit}));
    allow({.leases = 2});
    EXPECT_EQ(claims(session, {2, 3}), (std::vector<Reason>{Reason::kOk, Reason::kLimit}));
    allow({.leases = 0});
    EXPECT_EQ(claims(session, {3}), (std::vector<Reason>{Reason::kLimit}));
    allow({});
    EXPECT_EQ(claims(session, {3}), (std::vector<Reason>{Reason::kOk}));
}

// The holder of the three tokens that `asking` is told of.
shm::Holder told(Bench& bench, Session& asking) {
    shm::Submission entry = claim(9);
    entry.flags = shm::OpFlag::kReject;
    bench.push(asking, entry);
    bench.turn();
    const auto end = bench.next(asking);
    EXPECT_EQ(end->reason, Reason::kBusy);
    return shm::holder_of(*end);
}

TEST_F(QuotasTest, TellAnotherUserAccountAndAgeOfAHolderAndNoMore) {
    Session& holder = bench_.open();
    Session& same = bench_.open();
    Session& stranger = bench_.open({}, 2000);
    Session& root = bench_.open({}, 0);
    ASSERT_EQ(claims(holder, {1, 2, 3}), (std::vector<Reason>(3, Reason::kOk)));
    bench_.now += 500;
    for (Session* session : {&same, &root}) {
        EXPECT_EQ(told(bench_, *session).uid, 1000U);
        EXPECT_EQ(told(bench_, *session).pid, 42U);
        EXPECT_EQ(told(bench_, *session).claim, 1U);
    }
    const shm::Holder seen = told(bench_, stranger);
    EXPECT_EQ(seen.uid, 1000U);  // its account is its uid's own
    EXPECT_EQ(seen.pid, 0U);
    EXPECT_EQ(seen.claim, shm::kHiddenClaim);
    EXPECT_GE(seen.age_ns, 500U);
    allow({.account = "research"});
    EXPECT_EQ(told(bench_, stranger).uid, shm::kHiddenUid);
}

// Every table that sessions draw on, filled by one uid to the part that newcomers have.
class Filled {
  public:
    static constexpr core::Limits kSmall = {.pools = 4,
                                            .sessions = 8,
                                            .slots = 64,
                                            .claims = 64,
                                            .leases = 16,
                                            .arena_blocks = 64,
                                            .label_sets = 16};
    static constexpr uint32_t kCounted = 0;
    static constexpr uint32_t kWorkers = 1;
    static constexpr uint32_t kByAccount = 2;

    Filled() {
        bench_.pool({.name = "tokens", .kind = shm::PoolKind::kCounted, .slots = 14});
        bench_.pool({.name = "web",
                     .kind = shm::PoolKind::kWorker,
                     .payload_max = 1024,
                     .attributes_max = 64});
        bench_.pool({.name = "shared",
                     .kind = shm::PoolKind::kWorker,
                     .payload_max = 1024,
                     .order = shm::PoolOrder::kAccount});
        auto policy = std::make_shared<Policy>();
        policy->others.offers = {{"web"}};
        bench_.quotas.set_policy(policy, bench_.sessions.all());
        bench_.quotas.set_shared(true);
    }

    Session& open(uint32_t uid) { return bench_.open({}, uid); }
    void allow(uint32_t uid, Allowance allowance) {
        auto policy = std::make_shared<Policy>();
        allowance.offers = {{"web"}};
        policy->users[uid] = std::move(allowance);
        policy->others.offers = {{"web"}};
        bench_.quotas.set_policy(policy, bench_.sessions.all());
    }
    shm::Rule rule(const Session& session, size_t bytes) {
        return bench_.quotas.limit(session, bytes);
    }
    [[nodiscard]] core::Core::Room room(shm::Table table) const { return bench_.core.room(table); }
    [[nodiscard]] std::vector<std::string> wrongs() const { return bench_.core.check_all(); }

    // Has the session take a row of the table, whatever its share.
    void take(shm::Table table, const Session& session, uint16_t number) {
        const std::string name = "n" + std::to_string(number);
        const std::array<std::string_view, 1> labels = {name};
        const std::vector<uint8_t> bytes(400);
        core::ClaimTerms terms;
        terms.labels = labels;
        core::Claim claim{.session = session.row, .tag = number, .pool = kWorkers};
        bench_.core.begin_turn(bench_.now);
        switch (table) {
            case shm::Table::kSlots:
                bench_.core.apply(
                    core::Announce{.session = session.row, .pool = kWorkers, .name = name});
                break;
            case shm::Table::kLeases:
                claim.pool = kCounted;
                bench_.core.apply(claim);
                break;
            case shm::Table::kLabelSets:
                claim.pool = kByAccount;
                claim.terms = &terms;
                bench_.core.apply(claim);
                break;
            case shm::Table::kArena:
                claim.payload = bytes;
                bench_.core.apply(claim);
                break;
            default:
                bench_.core.apply(claim);
        }
        bench_.core.decide();
        bench_.core.commit();
        bench_.core.clear();
    }
    Reason one_more(shm::Table table, const Session& session) {
        const std::array<std::string_view, 1> other = {"other"};
        switch (table) {
            case shm::Table::kSlots:
                return bench_.quotas.announce(session, kWorkers);
            case shm::Table::kLabelSets:
                return bench_.quotas.bring(session, kByAccount, 0, other);
            case shm::Table::kArena:
                return bench_.quotas.bring(session, kWorkers, 1, {});
            default:
                return bench_.quotas.claim(session, kCounted);
        }
    }

  private:
    Bench bench_{kSmall};
};

TEST(Shares, LeaveTheLastQuarterOfEveryTableToUsersWhoHaveLittleOfIt) {
    for (const shm::Table table : Quotas::kShared) {
        SCOPED_TRACE("table " + std::to_string(static_cast<int>(table)));
        Filled filled;
        const Session& rich = filled.open(1000);
        const Session& poor = filled.open(2000);
        uint16_t taken = 0;
        while (filled.one_more(table, rich) == Reason::kOk) {
            ASSERT_LT(taken, 64);
            filled.take(table, rich, taken++);
        }
        EXPECT_EQ(filled.one_more(table, rich), Reason::kLimit);
        EXPECT_EQ(filled.room(table).free, filled.room(table).rows / 4);
        EXPECT_EQ(filled.one_more(table, poor), Reason::kOk);
        EXPECT_EQ(filled.wrongs(), std::vector<std::string>{});
    }
}

// One user's policy ends long before its share, over all its sessions, and is no other user's.
TEST(Shares, ArePrecededByThePolicyOfEachTable) {
    struct Key {
        shm::Table table;
        Allowance allowance;
        shm::RuleKey named;
    };
    const std::vector<Key> keys = {
        {shm::Table::kSlots, {.slots = 3}, shm::RuleKey::kNone},  // refuses no claim
        {shm::Table::kLabelSets, {.label_sets = 3}, shm::RuleKey::kLabelSets},
        {shm::Table::kArena, {.arena = 3 * sizeof(shm::ArenaBlock::bytes)}, shm::RuleKey::kArena}};
    for (const Key& key : keys) {
        SCOPED_TRACE("table " + std::to_string(static_cast<int>(key.table)));
        Filled filled;
        const Session& one = filled.open(1000);
        const Session& two = filled.open(1000);
        const Session& other = filled.open(2000);
        filled.allow(1000, key.allowance);
        uint16_t taken = 0;
        while (filled.one_more(key.table, one) == Reason::kOk) {
            ASSERT_LT(taken, 3);
            filled.take(key.table, taken % 2 == 0 ? one : two, taken);
            ++taken;
        }
        EXPECT_EQ(taken, 3);
        EXPECT_EQ(filled.one_more(key.table, two), Reason::kLimit);
        EXPECT_EQ(filled.rule(two, key.table == shm::Table::kArena ? 1 : 0).key, key.named);
        EXPECT_EQ(filled.one_more(key.table, other), Reason::kOk);
    }
}

// A table that a session can fill and that is not shared would be one user's: a new one is listed
// here, with the reason if no user can fill it, or in Quotas::kShared.
TEST(Shares, CoverEveryTableOfTheState) {
    const std::set<shm::Table> otherwise = {
        shm::Table::kCounters,     // one row
        shm::Table::kPools,        // the configuration's, and administrators'
        shm::Table::kSessions,     // broker/admission
        shm::Table::kAccounts,     // one a uid; others are administrators'
        shm::Table::kSlotVectors,  // a row beside each slot
        shm::Table::kClaimVectors,
        shm::Table::kTypes,  // the configuration's
        shm::Table::kElastics,
        shm::Table::kEntries,  // administrators'
        shm::Table::kApps,     // Quotas::application() and task(), with the next two
        shm::Table::kGroups,
        shm::Table::kTasks,
        shm::Table::kLogOffsets,  // a turn's, which ends before it is full
        shm::Table::kLogImages,
        shm::Table::kLogStores};
    for (uint32_t table = 0; table < static_cast<uint32_t>(shm::Table::kCount); ++table) {
        const auto found = std::count(
            Quotas::kShared.begin(), Quotas::kShared.end(), static_cast<shm::Table>(table));
        EXPECT_EQ(static_cast<size_t>(found) + otherwise.count(static_cast<shm::Table>(table)), 1U)
            << table;
    }
}

}  // namespace
}  // namespace dibs::test
