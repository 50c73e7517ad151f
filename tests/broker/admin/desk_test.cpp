// tests/broker/admin/desk_test.cpp -- what whoever pulls is answered, however many turns that
// takes.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/desk.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "broker/session/sessions.hpp"
#include "broker/turn/clock.hpp"
#include "broker/turn/lease_words.hpp"
#include "broker/turn/pool_sets.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::test {
namespace {

core::Limits with_a_short_log() {
    core::Limits limits;
    limits.accounts = 4;
    limits.log_images = 4096;
    limits.log_stores = 2048;
    return limits;
}

class DeskTest : public tests::CoreFixture {
  protected:
    static constexpr uint32_t kWorkers = 600;
    static constexpr core::TimeNs kAsked = 5000;

    DeskTest()
        : CoreFixture(with_a_short_log()),
          quotas_(core()),
          words_(core(), sessions_, clock_),
          desk_(core(), quotas_, words_, sessions_, sets_) {
        turn(1, [&] {
            core().set_pool({.name = "w",
                             .kind = shm::PoolKind::kWorker,
                             .order = shm::PoolOrder::kAccount,
                             .queue_timeout_ns = 1000},
                            nullptr);
            core().apply(
                core::Announce{.session = core().open_session({.uid = 1000}), .name = "attached"});
        });
    }
    static AdminJob asking(const std::vector<std::string>& workers) {
        AdminJob job;
        job.is_admin = true;
        job.request.ask = admin::Ask::pull;
        job.request.pool = "w";
        for (const std::string& worker : workers) {
            job.request.pullers.push_back(std::make_unique<admin::PullerT>());
            job.request.pullers.back()->worker = worker;
        }
        return job;
    }
    static std::vector<std::string> told(const AdminJob& job) {
        std::vector<std::string> workers;
        for (const auto& pulled : job.answer.pulled)
            workers.push_back(pulled->worker);
        return workers;
    }
    // All of them in one turn, and in those that go on with it.
    uint32_t serve(const std::vector<AdminJob*>& jobs) {
        uint32_t cuts = 0;
        core().begin_turn(kAsked);
        for (AdminJob* job : jobs)
            desk_.serve(*job);
        for (;; ++cuts) {
            core().decide();
            core().commit();
            core().clear();
            for (AdminJob* job : jobs) {
                if (job->pulls) desk_.take_pulled(*job);
            }
            if (!core().cut()) return cuts;
            core().begin_turn(kAsked);
        }
    }

    Quotas quotas_;
    Sessions sessions_{core().sessions_max()};
    Clock clock_{1};
    LeaseWords words_;
    BoardSegment board_{8};
    PoolSets sets_{core(), board_};
    Desk desk_;
};

TEST_F(DeskTest, TellsThatACallerIsRefusedBehindACut) {
    const uint32_t holder = session();
    for (uint32_t at = 0; at < kWorkers; at += 50) {
        turn(2, [&] {
            for (uint32_t worker = at; worker < at + 50; ++worker) {
                const std::string name = "w" + std::to_string(worker);
                core().apply(core::Report{.worker = name});
                claim(holder, static_cast<uint16_t>(worker), 0);
            }
        });
    }
    AdminJob job = asking({"early", "attached", "late"});
    EXPECT_GT(serve({&job}), 0U);  // what was assigned and not confirmed comes first
    EXPECT_EQ(job.answer.code, admin::Code::refused);
    ASSERT_EQ(job.answer.names.size(), 1U);
    EXPECT_NE(job.answer.names[0].find("do not attach"), std::string::npos);
    EXPECT_EQ(told(job), (std::vector<std::string>{"early", "late"}));
}

// Its slot is recovering, and under the lease still; rows of claims are others.
TEST_F(DeskTest, TellsWhoseLeaseASlotIsUnderWhileHeIsBeingKilled) {
    turn(1, [&] {
        core().set_pool({.name = "t", .slots = 2, .expiry = shm::ExpiryMode::kStrict}, nullptr);
    });
    const uint32_t one = session(7);
    const uint32_t other = session(8);
    turn(2, [&] {
        core().apply(core::Claim{.session = one, .pool = 1, .interval_ns = 1000});
        core().apply(core::Claim{.session = other, .tag = 1, .pool = 1});
    });
    turn(2000, [&] { claim(other, 2, 1); });
    ASSERT_EQ(core().lease(core().slot(1).holder).state, shm::LeaseState::kKilling);
    AdminJob job;
    job.is_admin = true;
    job.request.ask = admin::Ask::slots;
    job.request.pool = "t";
    desk_.serve(job);
    ASSERT_EQ(job.answer.slots.size(), 2U);
    EXPECT_EQ(job.answer.slots[0]->state, "recovering");
    EXPECT_EQ(job.answer.slots[0]->holder, 1U);
    EXPECT_EQ(job.answer.slots[0]->holder_pid, 7U);
    EXPECT_EQ(job.answer.slots[0]->account, "uid:7");
}

TEST_F(DeskTest, TellsAnotherUserNothingOfAnIdButThatItIsNotItsOwn) {
    uint32_t session = 0;
    turn(2, [&] {
        core().set_pool({.name = "c", .slots = 1}, nullptr);
        session = core().open_session({.uid = 1000});
        core().apply(core::Claim{.session = session, .tag = 1, .pool = 1});  // holds
        core().apply(core::Claim{.session = session, .tag = 2, .pool = 1});  // waits
    });
    const uint32_t lease = core().lease_of_tag(session, 1);
    const uint32_t claim = core().claim_of_tag(session, 2);
    ASSERT_NE(lease, shm::kNoRow);
    ASSERT_NE(claim, shm::kNoRow);
    const auto answer = [&](admin::Ask ask, uint64_t id) {
        AdminJob job;
        job.uid = 2000;
        job.request.ask = ask;
        job.request.id = id;
        serve({&job});
        return job.answer.code;
    };
    const uint64_t lease_id = core::row_id(core().lease(lease).head.generation, lease);
    const uint64_t claim_id = core::row_id(core().claim(claim).head.generation, claim);
    const uint64_t later = uint64_t{1} << 32U;  // the row's next use, which never was
    for (const admin::Ask ask : {admin::Ask::release, admin::Ask::renew})
        EXPECT_EQ(answer(ask, lease_id), answer(ask, lease_id + later));
    for (const admin::Ask ask : {admin::Ask::explain, admin::Ask::cancel})
        EXPECT_EQ(answer(ask, claim_id), answer(ask, claim_id + later));
    EXPECT_EQ(core().lease_of_tag(session, 1), lease);
    EXPECT_EQ(core().claim_of_tag(session, 2), claim);
}

TEST_F(DeskTest, DecidesInTheTurnWhetherTheBrokerIsUnused) {
    uint32_t session = 0;
    turn(2, [&] {
        core().set_pool({.name = "c", .slots = 1}, nullptr);
        session = core().open_session({.uid = 1000});
    });
    const auto ask = [&](bool is_admin) {
        AdminJob job;
        job.is_admin = is_admin;
        job.request.ask = admin::Ask::stop_unused;
        desk_.serve(job);
        EXPECT_EQ(job.stops, job.answer.code == admin::Code::ok);
        return job.answer.names.empty() ? std::string() : job.answer.names.front();
    };
    const auto claim_one = [&](uint16_t tag) {
        core().apply(core::Claim{.session = session, .tag = tag, .pool = 1});
    };
    EXPECT_EQ(ask(true), "");
    turn(3, [&] { claim_one(1); });
    EXPECT_EQ(ask(true), "1 lease is held");
    turn(4, [&] { claim_one(2); });
    turn(5, [&] { claim_one(3); });
    EXPECT_EQ(ask(true), "1 lease is held and 2 claims wait");
    EXPECT_EQ(ask(false), "");
}

TEST_F(DeskTest, AddsUpTheSlotsOfATypeOverAllPages) {
    turn(2, [&] {
        core().set_pool({.name = "e",
                         .kind = shm::PoolKind::kWorker,
                         .order = shm::PoolOrder::kPriority,
                         .workers_max = kWorkers,
                         .spare = kWorkers,
                         .creates_max = 0},
                        nullptr);
        core().set_type({.name = "small", .pool = "e"}, nullptr);
        core().set_type({.name = "large", .pool = "e", .cost = 2}, nullptr);
        core().apply(core::Provide{.session = core().open_session({.uid = 1000}),
                                   .pool = core().find_pool("e"),
                                   .type = "small"});
    });
    serve({});
    ASSERT_EQ(core().pool(core().find_pool("e")).slots, kWorkers);
    uint32_t pages = 0;
    std::map<std::string, std::pair<uint32_t, uint32_t>> ordered;  // type: row, count
    AdminJob job;
    job.uid = 1001;
    job.request.ask = admin::Ask::types;
    for (bool more = true; more; ++pages) {
        job.answer = {};
        serve({&job});
        for (const auto& type : job.answer.types) {
            EXPECT_FALSE(type->full);
            EXPECT_EQ(type->pid, 0U);
            if (!type->name.empty()) ordered[type->name].first = type->row;
            for (auto& [name, counted] : ordered)
                counted.second += counted.first == type->row ? type->ordered : 0;
        }
        more = job.answer.more;
        job.request.cursor = job.answer.cursor;
    }
    EXPECT_GE(pages, 2U);
    ASSERT_EQ(ordered.size(), 2U);
    EXPECT_EQ(ordered["small"].second, kWorkers);
    EXPECT_EQ(ordered["large"].second, 0U);
    job.request.cursor = 0;
    job.request.pool = "w";
    job.answer = {};
    serve({&job});
    EXPECT_TRUE(job.answer.types.empty());
}

TEST_F(DeskTest, TellsForHowLongNoWorkerIsMade) {
    using Answer = core::Provisioned::Answer;
    const uint32_t provisioner = session();
    const auto decided = turn(2, [&] {
        core().set_pool({.name = "e",
                         .kind = shm::PoolKind::kWorker,
                         .order = shm::PoolOrder::kPriority,
                         .workers_max = 5,
                         .spare = 2,
                         .creates_max = 0,
                         .quota_error_ns = 10'000,
                         .capacity_error_ns = 20'000},
                        nullptr);
        core().set_type({.name = "small", .pool = "e"}, nullptr);
        core().apply(
            core::Provide{.session = provisioner, .pool = core().find_pool("e"), .type = "small"});
    });
    std::vector<core::SlotId> orders;
    for (const core::Decision& decision : decided) {
        if (decision.kind == core::DecisionKind::kCreate) orders.push_back(decision.id);
    }
    ASSERT_EQ(orders.size(), 2U);
    AdminJob job;
    job.request.pool = "e";
    const auto ask = [&](admin::Ask what) {
        job.request.ask = what;
        job.answer = {};
        serve({&job});
    };
    ask(admin::Ask::pools);
    EXPECT_EQ(job.answer.pools[0]->elastic->ordered, 2U);
    EXPECT_EQ(job.answer.pools[0]->elastic->headroom, 3U);
    EXPECT_FALSE(job.answer.pools[0]->elastic->at_quota);
    ask(admin::Ask::types);
    EXPECT_EQ(job.answer.types[0]->capacity_ns, 0U);
    turn(kAsked, [&] {
        core().apply(core::Provisioned{
            .session = provisioner, .slot = orders[0], .answer = Answer::kCapacity});
        core().apply(
            core::Provisioned{.session = provisioner, .slot = orders[1], .answer = Answer::kQuota});
    });
    ask(admin::Ask::pools);
    EXPECT_TRUE(job.answer.pools[0]->elastic->at_quota);
    EXPECT_EQ(job.answer.pools[0]->elastic->quota_ns, 10'000U);
    EXPECT_EQ(job.answer.pools[0]->elastic->headroom, 0U);
    ask(admin::Ask::types);
    EXPECT_EQ(job.answer.types[0]->capacity_ns, 20'000U);
}

TEST_F(DeskTest, TellsTwoThatAskForTheSameWorkerInOneTurnOnceEach) {
    AdminJob one = asking({"a", "b"});
    AdminJob other = asking({"b", "c"});
    EXPECT_EQ(serve({&one, &other}), 0U);
    EXPECT_EQ(one.answer.code, admin::Code::ok);
    EXPECT_EQ(told(one), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(told(other), (std::vector<std::string>{"b", "c"}));
}

}  // namespace
}  // namespace dibs::test
