// tests/broker/core/store/log_room_test.cpp -- what a turn decides, and all that has to be stored
// about it, fits the turn's log, whoever makes it large.
//
// The core alone cannot overflow: the broker behind it edits the row of every session that it has
// read from or tells something, and stages a store for each completion and event word. These tests
// do as much after decide() as the broker can.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <tuple>

#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

core::Limits many_sessions() {
    core::Limits limits;
    limits.pools = 2048;
    limits.sessions = 4096;
    return limits;
}

class LogRoom : public CoreFixture {
  protected:
    explicit LogRoom(const core::Limits& limits = many_sessions()) : CoreFixture(limits) {
        for (uint32_t row = 0; row < 256; ++row)
            others_.push_back(4095 - row);
    }

    // As the broker after decide(): 64 results of its own, two stores for a grant, three for an
    // adoption, one for any other decision, and the line of each session that is told, or that one
    // of 256 entries came from.
    void tell() { tell(others_); }
    void tell(const std::vector<uint32_t>& read_from) {
        shm::LogStore store = {};
        for (int i = 0; i < 64; ++i)
            core().stage_store(store);
        for (const core::Decision& decision : core().decisions()) {
            if (decision.session == shm::kNoRow) continue;
            core().stage_store(store);
            if (decision.kind == core::DecisionKind::kGrant) core().stage_store(store);
            if (decision.kind == core::DecisionKind::kAdopted) {  // it may be that of a revocation
                core().stage_store(store);
                core().stage_store(store);
            }
            core().set_cursors(decision.session, 0, 1);
        }
        for (const uint32_t row : read_from)
            core().set_cursors(row, 1, 0);
    }
    // A turn and what it is continued in; returns how many decisions of this kind there were.
    template <class Commands>
    uint32_t told(core::TimeNs now, core::DecisionKind kind, const Commands& commands) {
        uint32_t count = 0;
        core().begin_turn(now);
        commands();
        for (;;) {
            core().decide();
            for (const core::Decision& decision : core().decisions()) {
                if (decision.kind == kind) ++count;
            }
            tell();
            core().commit();
            core().clear();
            if (!core().work_left()) return count;
            core().begin_turn(now);
        }
    }
    uint32_t open() {
        uint32_t row = shm::kNoRow;
        told(0, core::DecisionKind::kDrained, [&] { row = core().open_session({.uid = 1000}); });
        return row;
    }
    void pool(const core::PoolConfig& config) {
        told(0, core::DecisionKind::kDrained, [&] {
            ASSERT_NE(core().set_pool(config, nullptr), shm::kNoRow);
        });
    }

  private:
    std::vector<uint32_t> others_;  // sessions that nothing else is about
};

TEST_F(LogRoom, HoldsTheGrantsThatAWideClaimHasHeldUp) {
    const uint32_t wide = open();
    const uint32_t narrow[] = {open(), open()};
    const std::string names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    for (uint16_t row = 0; row < 8; ++row) {
        pool({.name = names[row], .slots = 256});
        told(1, core::DecisionKind::kGrant, [&] {
            claim(wide, static_cast<uint16_t>(2 * row), row);
            claim(wide, static_cast<uint16_t>(2 * row + 1), row, 256);  // one slot short
        });
        told(2, core::DecisionKind::kGrant, [&] {
            for (uint16_t unit = 0; unit < 255; ++unit) {
                claim(narrow[row / 4], static_cast<uint16_t>(row % 4 * 255 + unit), row);
            }
        });
    }
    EXPECT_EQ(told(3,
                   core::DecisionKind::kGrant,
                   [&] {
                       for (uint16_t row = 0; row < 8; ++row) {
                           core().apply(core::Cancel{wide, static_cast<uint16_t>(2 * row + 1), 0});
                       }
                   }),
              8U * 255U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

TEST_F(LogRoom, HoldsTheGraceOfLeasesThatAllExpireAtOnce) {
    pool({.name = "tokens", .slots = 3000, .grace_ns = 5000});
    uint32_t granted = 0;
    for (int batch = 0; batch < 12; ++batch) {
        granted += told(1, core::DecisionKind::kGrant, [&] {
            for (int i = 0; i < 250; ++i) {
                core::Claim command;
                command.session = core().open_session({.uid = 1000});
                command.interval_ns = 1000;
                core().apply(command);
            }
        });
    }
    ASSERT_EQ(granted, 3000U);
    EXPECT_EQ(told(2000, core::DecisionKind::kLeaseGrace, [] {}), 3000U);
    EXPECT_EQ(told(9000, core::DecisionKind::kLeaseEnd, [] {}), 3000U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

// From one session to the next and on, in one turn: the rows are imaged once.
TEST_F(LogRoom, HoldsLeasesThatAreAdoptedAsOftenAsATurnReads) {
    pool({.name = "tokens", .slots = 64});
    std::vector<uint32_t> sessions;
    for (int i = 0; i < 32; ++i)
        sessions.push_back(open());
    told(1, core::DecisionKind::kGrant, [&] {
        for (uint16_t tag = 0; tag < 64; ++tag)
            claim(sessions.front(), tag, 0);
    });
    uint32_t adopted = 0;
    core().begin_turn(2);
    for (size_t to = 1; to < sessions.size(); ++to) {
        for (uint16_t tag = 0; tag < 64 && !core().turn_full(); ++tag) {
            const shm::LeaseRow& lease = core().lease(tag);  // rows are given out in order
            core().apply(core::Adopt{.session = sessions[to],
                                     .tag = tag,
                                     .lease = core::row_id(lease.head.generation, tag),
                                     .fence = lease.fence});
            ++adopted;
        }
    }
    ASSERT_TRUE(core().turn_full());
    core().decide();
    tell();
    core().commit();
    core().clear();
    EXPECT_GT(adopted, 256U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

TEST_F(LogRoom, HoldsTheNewsOfEveryPoolWhoseDemandEndsAtOnce) {
    const uint32_t waiting[] = {open(), open()};
    for (uint16_t row = 0; row < 2048; ++row) {
        const std::string name = "pool" + std::to_string(row);
        pool({.name = name, .kind = shm::PoolKind::kWorker});
    }
    for (uint16_t from = 0; from < 1024; from = static_cast<uint16_t>(from + 128)) {
        told(1, core::DecisionKind::kDemand, [&] {
            for (uint16_t tag = from; tag < from + 128; ++tag) {
                claim(waiting[0], tag, tag);
                claim(waiting[1], tag, 1024U + tag);
            }
        });
    }
    EXPECT_EQ(told(2,
                   core::DecisionKind::kDemand,
                   [&] {
                       core().session_died(waiting[0]);
                       core().session_died(waiting[1]);
                   }),
              2048U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

// Workers that were assigned claims and never said so; then one more asks for work.
core::Limits with_log(uint32_t images, uint32_t stores) {
    core::Limits limits;
    limits.accounts = 4;
    limits.log_images = images;
    limits.log_stores = stores;
    return limits;
}

class PullRoom : public CoreFixture {
  protected:
    explicit PullRoom(const core::Limits& limits = with_log(4096, 2048)) : CoreFixture(limits) {}

    static constexpr uint32_t kWorkers = 600;
    static constexpr core::TimeNs kAsked = 5000;

    void assign() {
        turn(1, [&] {
            core().set_pool({.name = "w",
                             .kind = shm::PoolKind::kWorker,
                             .order = shm::PoolOrder::kAccount,
                             .queue_timeout_ns = 1000},
                            nullptr);
        });
        holder_ = session();
        for (uint32_t at = 0; at < kWorkers; at += 50) {
            turn(2, [&] {
                for (uint32_t worker = at; worker < at + 50; ++worker) {
                    const std::string name = "w" + std::to_string(worker);
                    core().apply(core::Report{.worker = name});
                    claim(holder_, static_cast<uint16_t>(worker), 0);
                }
            });
        }
        EXPECT_EQ(core().pool(0).leased, kWorkers);
        turn(3, [&] {
            core().apply(core::Announce{.session = session_of_worker(), .name = "attached"});
        });
    }
    // What it names is gone when this returns.
    void pull() {
        const std::string names[] = {"early", "attached", "a worker with a rather long name"};
        const std::string label = "kind:one with a rather long text";
        const std::string_view labels[] = {label};
        const core::Pull::Worker workers[] = {{names[0], labels}, {names[1]}, {names[2]}};
        core().apply(core::Pull{.workers = workers, .user_data = 7});
    }
    uint32_t session_of_worker() { return core().open_session({.uid = 1000}); }

    uint32_t holder_ = shm::kNoRow;
};

class PullWithRoom : public PullRoom {
  public:
    PullWithRoom() : PullRoom(with_log(1U << 16U, 1U << 14U)) {}
    void TestBody() override {}
    std::vector<core::Decision> decided() {
        assign();
        auto all = turn(kAsked, [&] { pull(); });
        EXPECT_EQ(cuts(), 0);
        return all;
    }
};

uint32_t count_of(const std::vector<core::Decision>& all, core::DecisionKind kind) {
    return static_cast<uint32_t>(std::count_if(
        all.begin(), all.end(), [&](const core::Decision& one) { return one.kind == kind; }));
}

TEST_F(PullRoom, HoldsAssignmentsThatAreAllTakenBackAtOnce) {
    assign();
    const auto all = turn(kAsked, [&] { pull(); });
    EXPECT_GT(cuts(), 0);
    EXPECT_EQ(count_of(all, core::DecisionKind::kLeaseEnd), kWorkers);
    EXPECT_EQ(count_of(all, core::DecisionKind::kSlotGone), kWorkers);
    EXPECT_EQ(count_of(all, core::DecisionKind::kResult), 1U);  // who is attached, reports itself
    ASSERT_EQ(count_of(all, core::DecisionKind::kPulled), 2U);
    const auto expected = PullWithRoom().decided();
    ASSERT_EQ(all.size(), expected.size());
    for (size_t at = 0; at < all.size(); ++at) {
        const auto told = [](const core::Decision& one) {
            return std::tuple(one.kind,
                              one.reason,
                              one.claim,
                              one.slot_number,
                              one.id,
                              one.value,
                              one.user_data,
                              one.fence);
        };
        EXPECT_EQ(told(all[at]), told(expected[at])) << "decision " << at;
    }
}

// The asker hears nothing, and asks again.
TEST_F(PullRoom, LeavesWhatIsRightWhereItsBrokerDiesBetweenItsParts) {
    assign();
    core().begin_turn(kAsked);
    pull();
    core().decide();
    core().commit();
    ASSERT_TRUE(core().cut());
    const uint32_t leased = core().pool(0).leased;
    EXPECT_GT(leased, 0U);
    EXPECT_LT(leased, kWorkers);
    attach();
    ASSERT_EQ(core().check_all(), std::vector<std::string>{});
    turn(kAsked, [] {});
    EXPECT_EQ(core().pool(0).leased, leased);
    EXPECT_EQ(core().pool(0).waiting, kWorkers - leased);
    const auto again = turn(kAsked + 1, [&] { pull(); });
    EXPECT_EQ(count_of(again, core::DecisionKind::kLeaseEnd), leased);
    EXPECT_EQ(count_of(again, core::DecisionKind::kPulled), 2U);
    EXPECT_EQ(core().pool(0).leased, 2U);
    EXPECT_EQ(core().pool(0).waiting, kWorkers - 2);
}

core::Limits many_accounts() {
    core::Limits limits;
    limits.accounts = 2000;
    return limits;
}

class AccountRoom : public CoreFixture {
  protected:
    AccountRoom() : CoreFixture(many_accounts()) {}
};

// Each of them is stepped before the turn has done anything.
TEST_F(AccountRoom, HoldsEveryAccountAboveItsCapAndCommandsBesides) {
    constexpr uint32_t kAccounts = 2000;
    turn(1, [&] {
        core().set_pool({.name = "p", .slots = kAccounts, .order = shm::PoolOrder::kAccount},
                        nullptr);
    });
    const uint32_t sessions[] = {session(), session()};
    for (uint32_t at = 0; at < kAccounts; at += 50) {
        turn(2, [&] {
            for (uint32_t row = at; row < at + 50; ++row) {
                const std::string name = "a" + std::to_string(row);
                core().set_account({.name = name,
                                    .rate = std::array<int64_t, 1>{1},
                                    .balance = std::array<int64_t, 1>{1'000'000'000}},
                                   nullptr);
                const core::ClaimTerms terms{.account = name};
                core().apply(core::Claim{.session = sessions[row % 2],
                                         .tag = static_cast<uint16_t>(row / 2),
                                         .terms = &terms});
            }
        });
    }
    ASSERT_EQ(core().pool(0).leased, kAccounts);
    core().begin_turn(5000);
    EXPECT_FALSE(core().turn_full());
    for (uint32_t row = 0; row < kAccounts; ++row)
        EXPECT_EQ(core().account(row).balance[0], 1'000'000'000 - 5);
    core().decide();
    core().commit();
    core().clear();
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

// Images are what runs out; everything else is there.
core::Limits smallest_images() {
    core::Limits limits = many_sessions();
    limits.accounts = 16;
    limits.log_stores = 1U << 14U;
    return limits;
}

// As many claims as a broker reads in a turn have no row when the log is just not full. Then the
// largest command comes, and as the turn is cut each of the claims is given a row after all.
class SmallestLog : public LogRoom {
  protected:
    static constexpr uint16_t kClaims = 256;
    static constexpr uint32_t kWords = 2400;  // more than fill the log

    SmallestLog() : LogRoom(smallest_images()) {
        const uint32_t holder = session();
        turn(1, [&] { claim(holder, 0, busy_); });
        turn(1, [&] {
            for (uint32_t each = 0; each < kClaims; ++each)
                claimants_.push_back(core().open_session({.uid = 1000}));
        });
        const uint32_t wide = worker_pool("wide");
        announce(wide, kClaims, true);
        const auto assigned = turn(1, [&] { claim(holder, 1, wide, kClaims); });
        turn(1, [&] {
            for (const core::Decision& told : assigned)
                confirm(told);
        });
        const uint32_t row = core().oldest_lease(wide);
        wide_lease_ = {.session = holder,
                       .lease = core::row_id(core().lease(row).head.generation, row),
                       .fence = core().lease(row).fence};
        workers_ = announce(worker_pool("narrow"), kWords, false);
    }

    uint32_t worker_pool(const char* name) {
        uint32_t row = shm::kNoRow;
        turn(0, [&] {
            row = core().set_pool(
                {.name = name, .kind = shm::PoolKind::kWorker, .unconfirmed_max = kClaims},
                nullptr);
        });
        return row;
    }
    // So many workers, each in a session of its own: what was told them.
    std::vector<core::Decision> announce(uint32_t pool, uint32_t count, bool ready) {
        std::vector<core::Decision> all;
        while (all.size() < count) {
            const auto told = turn(0, [&] {
                for (int each = 0; each < 64; ++each) {
                    const uint32_t one = core().open_session({.uid = 1000});
                    core().apply(core::Announce{.session = one, .pool = pool, .ready = ready});
                }
            });
            all.insert(all.end(), told.begin(), told.end());
        }
        return all;
    }
    void confirm(const core::Decision& assigned) {
        core().apply(core::WorkerWord{.kind = core::WorkerWord::Kind::kConfirm,
                                      .session = assigned.session,
                                      .slot = assigned.id,
                                      .round = assigned.round});
    }
    // Begins a turn in which so many claims have no row, and workers become ready until it is full,
    // or so many. A word costs two lines: its slot's, and its session's when that is told. Returns
    // how many.
    uint32_t fill(uint32_t most) {
        core().begin_turn(2);
        for (const uint32_t one : claimants_)
            claim(one, 0, busy_);
        uint32_t count = 0;
        for (; count < most && !core().turn_full(); ++count) {
            core().apply(
                core::WorkerWord{.session = workers_[count].session, .slot = workers_[count].id});
        }
        return count;
    }

    const uint32_t busy_ = counted_pool("busy", 1);
    std::vector<uint32_t> claimants_;
    core::Release wide_lease_;
    std::vector<core::Decision> workers_;
};

TEST_F(SmallestLog, HoldsClaimsWithoutARowThatACutGivesThemOne) {
    const uint32_t full = fill(kWords);
    ASSERT_LT(full, kWords);
    attach();  // the turn has not happened
    ASSERT_EQ(fill(full - 1), full - 1);
    ASSERT_FALSE(core().turn_full());
    core().apply(wide_lease_);
    ASSERT_TRUE(core().turn_full());
    core().decide();
    tell(claimants_);  // a broker has read from no others in this turn
    core().commit();
    core().clear();
    turn(2, [] {});
    EXPECT_EQ(core().pool(busy_).waiting, kClaims);
}

}  // namespace

}  // namespace dibs::tests
