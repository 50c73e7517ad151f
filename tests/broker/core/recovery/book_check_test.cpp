// tests/broker/core/recovery/book_check_test.cpp -- whatever is wrong in the book of accounts is
// found: each list and number of it is made wrong by hand, one at a time.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "broker/core/parts.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

using core::AccountBook;
using Parts = core::Core::Parts;
using Labels = std::vector<std::string_view>;

struct Mistake {
    const char* what;
    const char* found;  // in what the check says of it
    std::function<void(Parts&)> make;
};

class Book : public CoreFixture {
  protected:
    Book() {
        gpu_ = pool("gpu", 4);
        farm_ = pool("farm", 0);
        session_ = session();
        turn(1000, [&] {
            const std::array<int64_t, 1> rate = {1'000'000};
            const std::array<int64_t, 1> rich = {1'000'000};
            const std::array<int64_t, 2> poor = {0, 1'000'000};
            const core::AccountConfig::Limit limit{.key = "k", .limit = 3};
            core().set_account({.name = "a",
                                .rate = rate,
                                .charge_max_ns = 2'000'000'000,
                                .fanout_max = 9,
                                .label_limits = {&limit, 1},
                                .balance = rich},
                               nullptr);
            core().set_account({.name = "b", .balance = poor}, nullptr);
            report("w1", {"k:1"});
            report("w2", {"k:1", "k:2"});
            report("w3", {});
            report("w4", {});
            ask(farm_, "a", {"k:1"});
            ask(farm_, "b", {});
        });
        // Leased: two of a, two of b, one of which b may keep for a while.
        turn(2000, [&] {
            ask(gpu_, "a", {});
            ask(gpu_, "b", {}, shm::PreemptMode::kWithGrace);
            ask(gpu_, "b", {}, shm::PreemptMode::kForbidden);
            ask(gpu_, "a", {});
        });
        // The next of a is promised b's slot; nothing is left for the others.
        turn(5000, [&] {
            ask(gpu_, "a", {});
            ask(gpu_, "b", {});
            ask(gpu_, "b", {});
            ask(gpu_, "", {"no:slot"});
        });
    }

    uint32_t pool(const char* name, uint32_t slots) {
        core::PoolConfig config;
        config.name = name;
        config.kind = slots == 0 ? shm::PoolKind::kWorker : shm::PoolKind::kCounted;
        config.slots = slots;
        config.order = shm::PoolOrder::kAccount;
        uint32_t row = shm::kNoRow;
        turn(0, [&] { row = core().set_pool(config, nullptr); });
        return row;
    }
    void report(const char* worker, const Labels& labels) {
        core().apply(core::Report{
            .kind = core::Report::Kind::kIdle, .pool = farm_, .worker = worker, .labels = labels});
    }
    void ask(uint32_t pool,
             const char* account,
             const Labels& labels,
             shm::PreemptMode mode = shm::PreemptMode::kAtOnce) {
        const core::ClaimTerms terms{.account = account,
                                     .labels = labels,
                                     .preempt_mode = mode,
                                     .preempt_grace_ns = 1'000'000};
        core::Claim command;
        command.session = session_;
        command.tag = tag_++;
        command.pool = pool;
        command.units = 1;
        command.timeout_ns = shm::kNever;
        command.terms = &terms;
        core().apply(command);
    }

    // A core's parts over the same rows, with all that it works out when it is asked.
    std::unique_ptr<Parts> attached() {
        auto parts = std::make_unique<Parts>(memory(), 0);
        parts->rebuild();
        parts->now_ns = 5000;
        for (uint32_t pool = 0; pool < 2; ++pool)
            parts->begin_watch(pool);
        for (const core::Crowd& crowd : parts->book->crowds)
            parts->book->look_at_stalls(crowd);
        (void)parts->next_crossing();
        return parts;
    }

    static core::Stall& stall_with(Parts& parts,
                                   const std::function<bool(const core::Stall&)>& is) {
        const auto found = std::find_if(parts.book->stalls.begin(), parts.book->stalls.end(), is);
        EXPECT_NE(found, parts.book->stalls.end());
        return *found;
    }
    static core::Stall& idle_stall(Parts& parts) {
        return stall_with(parts,
                          [](const core::Stall& stall) { return stall.idle.head != shm::kNoRow; });
    }
    static core::Stall& leased_stall(Parts& parts) {  // of more slots than one
        return stall_with(
            parts, [](const core::Stall& stall) { return stall.leased.head != stall.leased.tail; });
    }
    static core::Crowd& waiting_crowd(Parts& parts) {
        const auto found = std::find_if(
            parts.book->crowds.begin(), parts.book->crowds.end(), [](const core::Crowd& crowd) {
                return crowd.waiting != 0;
            });
        EXPECT_NE(found, parts.book->crowds.end());
        return *found;
    }
    static core::Tenant& tenant_of(Parts& parts, const char* account) {
        return parts.book->tenants[parts.book->find_tenant(0, parts.find_account(account))];
    }
    static uint32_t promised_slot(Parts& parts) {
        const auto& promised = parts.book->promised_to;
        const auto found = std::find_if(
            promised.begin(), promised.end(), [](uint32_t claim) { return claim != shm::kNoRow; });
        EXPECT_NE(found, promised.end());
        return static_cast<uint32_t>(found - promised.begin());
    }

    uint32_t gpu_ = shm::kNoRow;
    uint32_t farm_ = shm::kNoRow;
    uint32_t session_ = shm::kNoRow;
    uint16_t tag_ = 0;
};

class Mistakes : public Book {
  protected:
    const std::vector<Mistake> mistakes_ = {
        {"a stall counts a slot too many",
         "counts its slots wrong",
         [](Parts& p) { ++idle_stall(p).slots; }},
        {"an idle slot stands in no list",
         "lists its idle slots wrong",
         [](Parts& p) { idle_stall(p).idle = {}; }},
        {"idle slots stand in another order",
         "lists its idle slots wrong",
         [](Parts& p) {
             core::Stall& stall =
                 stall_with(p, [](const core::Stall& of) { return of.idle.head != of.idle.tail; });
             auto& links = p.book->slot_links;
             std::swap(stall.idle.head, stall.idle.tail);
             links[stall.idle.head] = {stall.idle.tail, shm::kNoRow};
             links[stall.idle.tail] = {shm::kNoRow, stall.idle.head};
         }},
        {"a link back goes astray",
         "lists its leased slots wrong",
         [](Parts& p) { p.book->slot_links[leased_stall(p).leased.tail].previous = 0; }},
        {"a leased slot stands in no list",
         "lists its leased slots wrong",
         [](Parts& p) { leased_stall(p).leased.tail = leased_stall(p).leased.head; }},
        {"a candidate is not listed",
         "lists its candidates",
         [](Parts& p) {
             stall_with(p, [](const core::Stall& of) {
                 return of.leases[0] != shm::kNoRow;
             }).leases[0] = shm::kNoRow;
         }},
        {"candidates are listed at another class",
         "lists its candidates",
         [](Parts& p) {
             core::Stall& stall =
                 stall_with(p, [](const core::Stall& of) { return of.leases[0] != shm::kNoRow; });
             std::swap(stall.leases[0], stall.leases[3]);
         }},
        {"a stall is at another place",
         "is at another place of its pool",
         [](Parts& p) { ++idle_stall(p).place; }},
        {"a pool lacks a stall",
         "has another number of stalls",
         [](Parts& p) { p.book->stalls_of_pool[1].pop_back(); }},
        {"an idle stall is not marked",
         "as having idle slots",
         [](Parts& p) { p.book->stall_bits[1].idle = 0; }},
        {"a slot is in a stall with other labels",
         "is in a stall with other labels",
         [](Parts& p) {
             p.book->stall_of_slot[p.book->assignments.head(1)] = idle_stall(p).place;
         }},
        {"a slot is promised to another",
         "is promised",
         [](Parts& p) { p.book->promised_to[promised_slot(p)] = shm::kNoRow; }},
        {"a slot is promised that nobody waits for",
         "that does not wait for it",
         [](Parts& p) { p.book->promised_to[(promised_slot(p) + 1) % 4] = 0; }},
        {"a claim is promised a slot whose holder keeps it",
         "is promised a slot that somebody keeps",
         [](Parts& p) {
             const uint32_t lease = p.state.slots[promised_slot(p)].holder;
             const_cast<shm::LeaseRow&>(p.state.leases[lease]).flags = 0;
         }},
        {"a claim is promised a slot that another one is asked for",
         "does not fit the rows that it names",
         [](Parts& p) {
             const shm::SlotRow& slot = p.state.slots[promised_slot(p)];
             const_cast<shm::SlotRow&>(slot).state = shm::SlotState::kReserved;
         }},
        {"a claim runs in another class than its lease",
         "runs at another class than its lease pays at",
         [](Parts& p) {
             const shm::LeaseRow& lease = p.state.leases[0];
             EXPECT_EQ(lease.flags & shm::LeaseFlag::kTaken, 0);
             const uint32_t claim = p.book->claim_of_lease[0];
             const_cast<shm::ClaimRow&>(p.state.claims[claim]).account_class ^= 1;
         }},
        {"a tenant counts a unit too many",
         "counts its units wrong",
         [](Parts& p) { ++tenant_of(p, "a").units[0]; }},
        {"a tenant's sum is wrong",
         "sums its units up wrong",
         [](Parts& p) { ++tenant_of(p, "a").units_total; }},
        {"a tenant lacks its leases",
         "lists its leases of class 0 wrong",
         [](Parts& p) { tenant_of(p, "a").leases[0] = shm::kNoRow; }},
        {"a tenant stands elsewhere",
         "is at another place of its pool",
         [](Parts& p) { ++tenant_of(p, "a").place; }},
        {"a pool lacks a tenant",
         "has another number of tenants",
         [](Parts& p) { p.book->tenants_of_pool[0].pop_back(); }},
        {"an account lacks a tenant",
         "is not one of its account's",
         [](Parts& p) { p.book->tenants_of_account[p.find_account("b")].pop_back(); }},
        {"a stale tenant is not looked at",
         "nobody looks at it again",
         [](Parts& p) { tenant_of(p, "a").is_stale = true; }},
        {"a due tenant is in no list",
         "is due and in no list",
         [](Parts& p) { tenant_of(p, "a").is_due = true; }},
        {"a tenant sleeps that is to sink",
         "and sleeps",
         [](Parts& p) {
             const uint32_t row = p.find_account("a");
             shm::AccountRow& account = const_cast<shm::AccountRow&>(p.state.accounts[row]);
             account.balance[0] = -700'000'000;
             p.book->crossing_known = false;
         }},
        {"a class that moves is taken to stand still",
         "against what is known",
         [](Parts& p) { p.book->moving[p.find_account("a")] ^= 1U; }},
        {"a worker is never forgotten",
         "is not forgotten in time",
         [](Parts& p) {
             p.book->forgotten.remove(core::TimerKind::kKept, idle_stall(p).idle.head);
         }},
        {"a counted slot is to be forgotten",
         "is to be forgotten and not reported",
         [](Parts& p) { p.book->forgotten.set(core::TimerKind::kKept, 0, 9, 0); }},
        {"an assignment is in no list",
         "lists its unconfirmed assignments wrong",
         [](Parts& p) { p.book->assignments.remove(1, p.book->assignments.head(1)); }},
        {"a crowd stands elsewhere",
         "is at another place of its pool",
         [](Parts& p) { ++waiting_crowd(p).place; }},
        {"a pool lacks a crowd",
         "crowds that wait",
         [](Parts& p) { p.book->crowds_of_pool[0].pop_back(); }},
        {"a crowd's quality is wrong",
         "counts its labels wrong",
         [](Parts& p) { ++waiting_crowd(p).quality; }},
        {"a crowd counts for another fan-out",
         "counts for another fan-out",
         [](Parts& p) { p.book->fanouts[waiting_crowd(p).fanout].labels ^= 1; }},
        {"a fan-out counts a crowd too many",
         "counts its crowds wrong",
         [](Parts& p) { ++p.book->fanouts[waiting_crowd(p).fanout].crowds; }},
        {"a fan-out counts a unit too many",
         "counts its units wrong",
         [](Parts& p) { ++p.book->fanouts[waiting_crowd(p).fanout].units; }},
        {"a crowd takes a stall for another",
         "for one that serves it",
         [](Parts& p) { waiting_crowd(p).served_by ^= 1; }},
        {"a crowd forgets what is provisioned",
         "for one that serves it",
         [](Parts& p) { waiting_crowd(p).provisioned_by ^= 1; }},
        {"a crowd runs for another tenant",
         "runs for another tenant",
         [](Parts& p) { waiting_crowd(p).tenant = p.book->find_tenant(1, p.find_account("a")); }},
        {"a change is not listed",
         "is marked as changed and not listed",
         [](Parts& p) { p.book->is_changed[0] ^= 1; }},
        {"an account is stepped without cause",
         "is marked as above its cap",
         [](Parts& p) { p.book->above_cap[0] ^= 1; }},
        {"an account has another cap", "has another cap", [](Parts& p) { ++p.book->caps[0][0]; }},
        {"an account is above its cap and not stepped",
         "not stepped turn by turn",
         [](Parts& p) {
             const uint32_t row = p.find_account("a");
             shm::AccountRow& account = const_cast<shm::AccountRow&>(p.state.accounts[row]);
             account.balance[0] = 2'000'001;
             p.book->crossing_known = false;
         }},
        {"an account is held to another limit",
         "is held to other limits",
         [](Parts& p) { ++p.book->limits[p.find_account("a")][0].limit; }},
        {"a fan-out has grown above its limit",
         "is above its limit",
         [](Parts& p) {
             const uint32_t row = p.find_account("a");
             const_cast<shm::AccountRow&>(p.state.accounts[row]).fanout_max = 2;
             p.book->come_to_hold(row, promised_slot(p));
         }},
        {"a label is held more often than its limit",
         "holds more of a label than its limit",
         [](Parts& p) {
             const uint32_t row = p.find_account("a");
             p.book->limits[row][0].limit = 0;
             for (uint32_t slot = 0; slot < p.state.slots.size(); ++slot)
                 p.book->come_to_hold(row, slot);
         }},
        {"a label is counted once too often",
         "counts its labels wrong",
         [](Parts& p) { ++p.book->label_units[p.find_account("a")].begin()->second; }},
        {"a label is not counted",
         "counts its labels wrong",
         [](Parts& p) { p.book->label_units[p.find_account("a")].clear(); }},
        {"an account's claims are miscounted",
         "has its waiting claims counted wrong",
         [](Parts& p) { ++p.book->account_waits[p.find_account("b")]; }},
        {"an account is used once more",
         "is used by another number",
         [](Parts& p) { ++p.book->account_uses[p.find_account("b")]; }},
        {"a crossing comes late",
         "when a balance changes what may be granted",
         [](Parts& p) { p.book->crossing_ns += 1000; }},
    };
};

TEST_F(Book, IsSoundAfterEveryTurnAndWhenItIsMadeAnew) {
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
    EXPECT_EQ(attached()->check_all(), std::vector<std::string>{});
}

// a runs two slots without labels, and is promised one; and holds one with k:1. A lower limit takes
// none of them away, and none is wrong for that, also in what a successor makes of it. A claim that
// comes then is above both limits.
TEST_F(Book, ExcusesWhatWasHeldBeforeALimit) {
    const std::array<int64_t, 1> rich = {1'000'000};
    const core::AccountConfig::Limit limit{.key = "k", .limit = 0};
    turn(5000, [&] {
        core().set_account(
            {.name = "a", .fanout_max = 1, .label_limits = {&limit, 1}, .balance = rich}, nullptr);
        ask(farm_, "a", {"k:1"});
        ask(farm_, "a", {"k:1"});
    });
    EXPECT_EQ(core().pool(farm_).waiting, 2U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
    EXPECT_EQ(attached()->check_all(), std::vector<std::string>{});
}

// c's claims would take all four workers: one with k:1 of two, and two of the others, one of which
// its fan-out leaves to the free class.
TEST_F(Book, HoldsNobodyAboveItsLimits) {
    turn(6000, [&] { core().session_died(session_); });
    session_ = session();
    const std::array<int64_t, 1> rich = {1'000'000};
    const core::AccountConfig::Limit limit{.key = "k", .limit = 1};
    turn(7000, [&] {
        core().set_account(
            {.name = "c", .fanout_max = 1, .label_limits = {&limit, 1}, .balance = rich}, nullptr);
        for (const char* worker : {"w1", "w2", "w3", "w4"})
            report(worker, {worker < std::string_view{"w3"} ? "k:1" : "no:limit"});
        for (uint32_t claims = 0; claims < 2; ++claims) {
            ask(farm_, "c", {"k:1"});
            ask(farm_, "c", {"no:limit"});
        }
    });
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
    EXPECT_EQ(core().pool(farm_).leased, 3U);
    EXPECT_EQ(core().pool(farm_).idle, 1U);
}

// An account that nobody names any more takes its tenants along; their rows are others' in the same
// turn, in other pools, and are watched there alone.
TEST_F(Book, WatchesATenantInItsOwnPool) {
    core::PoolConfig config;
    config.name = "easy";
    config.slots = 7;
    config.units_max = 7;
    config.order = shm::PoolOrder::kAccount;
    config.promote_threshold = 0;
    uint32_t easy = shm::kNoRow;
    turn(6000, [&] { core().session_died(session_); });
    const uint32_t other = session();
    turn(7000, [&] { easy = core().set_pool(config, nullptr); });
    config.name = "last";
    uint32_t last = shm::kNoRow;
    turn(8000, [&] { last = core().set_pool(config, nullptr); });
    const auto take = [&](uint32_t pool, const char* account, uint16_t units, uint64_t interval) {
        const core::ClaimTerms terms{.account = account};
        core::Claim command;
        command.session = other;
        command.tag = tag_++;
        command.pool = pool;
        command.units = units;
        command.interval_ns = interval;
        command.timeout_ns = shm::kNever;
        command.terms = &terms;
        core().apply(command);
    };
    turn(9000, [&] { take(last, "fleeting", 1, 3); });
    turn(10'000, [&] {
        const std::array<int64_t, 1> rate = {1'000'000};
        const std::array<int64_t, 1> balance = {100'000};
        core().set_account({.name = "c", .rate = rate, .fanout_max = 2, .balance = balance},
                           nullptr);
        take(easy, "c", 6, 0);  // free, for its fan-out is 2: to be promoted, and it may not be
    });
    EXPECT_EQ(core().find_account("fleeting"), shm::kNoRow);
    EXPECT_EQ(core().pool(easy).leased, 6U);
}

TEST_F(Mistakes, AreEachFound) {
    for (const Mistake& mistake : mistakes_) {
        const auto parts = attached();
        ASSERT_EQ(parts->check_all(), std::vector<std::string>{});
        const std::vector<std::byte> before(memory().begin(), memory().end());
        mistake.make(*parts);
        const std::vector<std::string> wrongs = parts->check_all();
        std::copy(before.begin(), before.end(), memory().begin());
        const bool found = std::any_of(wrongs.begin(), wrongs.end(), [&](const std::string& wrong) {
            return wrong.find(mistake.found) != std::string::npos;
        });
        EXPECT_TRUE(found) << mistake.what << (wrongs.empty() ? "" : ": " + wrongs.front());
    }
}

}  // namespace

}  // namespace dibs::tests
