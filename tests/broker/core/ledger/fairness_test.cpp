// tests/broker/core/ledger/fairness_test.cpp -- three accounts at 3:2:1 on eight slots that are too
// few.
//
// Under a virtual clock: a turn at every end of a lease, and each account always has a third of a
// thousand claims waiting. An account earns what its share of eight slots costs, so it is served at
// P0 until that is used up; what it got is the time for which its leases held slots.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <queue>
#include <random>

#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

constexpr uint32_t kSlots = 8;
constexpr uint32_t kWaiting = 1000;
constexpr uint64_t kEnd = 1500 * kSecond;
constexpr std::array<const char*, 3> kNames = {"three", "two", "one"};
constexpr std::array<int64_t, 3> kRates = {4'000'000, 2'666'667, 1'333'333};  // of 8 slots

class FairnessTest : public CoreFixture {
  protected:
    struct Run {
        uint64_t end_ns;
        uint64_t lease;
        uint64_t fence;
        bool operator>(const Run& other) const {
            return end_ns != other.end_ns ? end_ns > other.end_ns : lease > other.lease;
        }
    };

    void open(bool preemption) {
        core::PoolConfig config;
        config.name = "gpu";
        config.order = shm::PoolOrder::kAccount;
        config.slots = kSlots;
        config.preemption_disabled = !preemption;
        turn(0, [&] {
            pool_ = core().set_pool(config, nullptr);
            for (size_t account = 0; account < kNames.size(); ++account) {
                const std::array<int64_t, 1> rate = {kRates[account]};
                ASSERT_TRUE(core().set_account(
                    {.name = kNames[account], .rate = rate, .charge_max_ns = 60 * kSecond},
                    nullptr));
                sessions_[account] = core().open_session(
                    {.uid = 1000, .pid = 1, .tags_max = 1024, .account = kNames[account]});
            }
        });
        for (auto& free : free_tags_) {
            for (uint16_t tag = 1; tag < 1024; ++tag)
                free.push_back(tag);
        }
    }

    void claim_one(size_t account) {
        core::ClaimTerms terms;
        terms.requeue = true;
        core::Claim command;
        command.session = sessions_[account];
        command.tag = free_tags_[account].back();
        command.pool = pool_;
        command.terms = &terms;
        free_tags_[account].pop_back();
        core().apply(command);
        ++waiting_[account];
    }

    // What was granted runs for half a second to one and a half.
    void follow(uint64_t now) {
        for (const core::Decision& told : core().decisions()) {
            if (told.kind == core::DecisionKind::kGrant) {
                const uint64_t run_ns = kSecond / 2 + random_() % kSecond;
                runs_.push({now + run_ns, told.id, told.fence});
                --waiting_[account_of(told.session)];
            }
            if (told.kind == core::DecisionKind::kLeaseEnd) {  // preempted: it waits again
                held_ns_[account_of(told.session)] += now - begun_[told.id];
                ++waiting_[account_of(told.session)];
                begun_.erase(told.id);
            }
            if (told.kind == core::DecisionKind::kGrant) begun_[told.id] = now;
        }
    }

    size_t account_of(uint32_t session) const {
        return static_cast<size_t>(std::find(sessions_.begin(), sessions_.end(), session) -
                                   sessions_.begin());
    }

    void release(const Run& run) {
        const auto row = static_cast<uint32_t>(run.lease);
        const shm::LeaseRow& lease = core().lease(row);
        const bool lives = core::row_id(lease.head.generation, row) == run.lease &&
                           lease.state != shm::LeaseState::kFree;
        if (!lives) return;
        const size_t account = account_of(lease.session);
        free_tags_[account].push_back(lease.tag);
        held_ns_[account] += run.end_ns - begun_[run.lease];
        begun_.erase(run.lease);
        core().apply(core::Release{lease.session, false, run.lease, run.fence, 0});
    }

    void play() {
        uint64_t now = 1;
        for (uint32_t turns = 0; now < kEnd; ++turns) {
            core().begin_turn(now);
            while (!runs_.empty() && runs_.top().end_ns <= now) {
                release(runs_.top());
                runs_.pop();
            }
            for (uint32_t i = 0; i < kWaiting; ++i) {
                const size_t account = i % 3;
                if (waiting_[account] * 3 < kWaiting) claim_one(account);
            }
            for (;;) {
                core().decide();
                follow(now);
                core().commit();
                core().clear();
                if (!core().work_left()) break;
                core().begin_turn(now);
            }
            if (turns % 1000 == 0) {
                ASSERT_EQ(core().check_all(), std::vector<std::string>{});
            }
            ASSERT_FALSE(runs_.empty());
            now = std::max(now + 1, runs_.top().end_ns);
        }
    }

    void expect_shares() {
        const auto sum = static_cast<double>(held_ns_[0] + held_ns_[1] + held_ns_[2]);
        EXPECT_GT(sum, 0.99 * kSlots * static_cast<double>(kEnd));  // no slot stood idle
        for (size_t account = 0; account < kNames.size(); ++account) {
            const double share = static_cast<double>(held_ns_[account]) / sum;
            const double wanted = static_cast<double>(3 - account) / 6;
            EXPECT_NEAR(share / wanted, 1, 0.02) << kNames[account] << " got " << share;
        }
    }

    uint32_t pool_ = 0;
    std::array<uint32_t, 3> sessions_ = {};
    std::array<std::vector<uint16_t>, 3> free_tags_;
    std::array<uint32_t, 3> waiting_ = {};
    std::array<uint64_t, 3> held_ns_ = {};
    std::map<uint64_t, uint64_t> begun_;  // by lease
    std::priority_queue<Run, std::vector<Run>, std::greater<>> runs_;
    std::mt19937 random_{1};
};

TEST_F(FairnessTest, GivesEveryAccountItsShareWithinTwoPercent) {
    open(false);
    play();
    expect_shares();
}

TEST_F(FairnessTest, GivesEveryAccountItsShareWithPreemptionToo) {
    open(true);
    play();
    expect_shares();
}

}  // namespace
}  // namespace dibs::tests
