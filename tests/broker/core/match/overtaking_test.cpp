// tests/broker/core/match/overtaking_test.cpp -- in a pool ordered by account nobody is overtaken
// within his class, step and number of base labels, for a slot that he could use.
//
// Random journals. Before the pass the test notes who waits, at which class; whoever is granted a
// slot in it must not have had an older equal that could have had that slot and still waits. What a
// claim could use is worked out here from its labels, not asked of the core.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "tests/broker/core/core_fixture.hpp"
#include "tests/naive/dice.hpp"
#include "tests/repeats.hpp"

namespace dibs::tests {
namespace {

using LabelSet = std::set<std::string_view>;

constexpr std::array<std::string_view, 4> kLabels = {"arm", "gpu", "model:large", "model:small"};
constexpr std::array<const char*, 5> kAccounts = {"a", "b", "c", "d", ""};

struct Known {
    LabelSet base;
    LabelSet preferred;
    uint16_t units = 1;
};

class Journal : public CoreFixture {
  public:
    explicit Journal(uint64_t seed) : CoreFixture(small()), dice_(seed) {}
    void TestBody() override {}

    void play(int turns) {
        open();
        for (int i = 0; i < turns && !HasFailure(); ++i)
            play_turn();
    }
    [[nodiscard]] uint64_t compared() const { return compared_; }

  private:
    static core::Limits small() {
        core::Limits limits;
        limits.sessions = 4;
        limits.slots = 16;
        limits.claims = 256;
        limits.leases = 64;
        limits.arena_blocks = 1024;
        limits.accounts = 16;
        return limits;
    }

    void open() {
        core::PoolConfig config;
        config.name = "pool";
        config.order = shm::PoolOrder::kAccount;
        config.kind = shm::PoolKind::kWorker;
        config.preemption_disabled = dice_.percent(50);
        turn(0, [&] {
            pool_ = core().set_pool(config, nullptr);
            session_ = core().open_session({.uid = 1000, .pid = 1});
            for (size_t i = 0; i + 1 < kAccounts.size(); ++i)
                set_account(kAccounts[i]);
        });
        for (uint16_t tag = 1; tag <= 120; ++tag)
            free_tags_.push_back(tag);
    }

    void set_account(const char* name) {
        std::array<int64_t, shm::kClasses> rate = {};
        std::array<int64_t, shm::kClasses> balance = {};
        for (size_t p = 0; p < shm::kClasses; ++p) {
            rate[p] = dice_.percent(40) ? static_cast<int64_t>(dice_.below(3'000'000)) : 0;
            balance[p] = static_cast<int64_t>(dice_.below(40'000'000)) - 20'000'000;
        }
        ASSERT_TRUE(core().set_account(
            {.name = name, .rate = rate, .charge_max_ns = 30 * kSecond, .balance = balance},
            nullptr));
    }

    LabelSet some_labels(uint64_t chance) {
        LabelSet labels;
        for (const std::string_view label : kLabels) {
            if (dice_.percent(chance)) labels.insert(label);
        }
        return labels;
    }

    void claim_something() {
        if (free_tags_.empty()) return;
        const Known known{.base = some_labels(25),
                          .preferred = some_labels(15),
                          .units = static_cast<uint16_t>(dice_.percent(15) ? 2 : 1)};
        const std::vector<std::string_view> base(known.base.begin(), known.base.end());
        const std::vector<std::string_view> preferred(known.preferred.begin(),
                                                      known.preferred.end());
        core::ClaimTerms terms;
        terms.account = kAccounts[dice_.below(kAccounts.size())];
        terms.labels = base;
        terms.provisionable = preferred;
        terms.requeue = true;
        core::Claim command;
        command.session = session_;
        command.tag = free_tags_.back();
        command.pool = pool_;
        command.units = known.units;
        command.terms = &terms;
        free_tags_.pop_back();
        core().apply(command);
        tag_of_[++number_] = command.tag;
        known_[number_] = known;
    }

    void report_worker() {
        const size_t place = dice_.below(kWorkers.size());
        if (busy_.contains(place)) return;
        workers_[place] = some_labels(50);
        const std::vector<std::string_view> labels(workers_[place].begin(), workers_[place].end());
        core::Report report;
        report.pool = pool_;
        report.worker = kWorkers[place];
        report.labels = labels;
        core().apply(report);
    }

    void release_something() {
        if (leases_.empty()) return;
        const auto lease =
            std::next(leases_.begin(), static_cast<long>(dice_.below(leases_.size())));
        core().apply(core::Release{session_, false, lease->second.first, lease->second.second, 0});
        forget(lease->first);
    }

    void forget(uint64_t number) {
        leases_.erase(number);
        free_tags_.push_back(tag_of_[number]);
        std::erase_if(busy_, [&](const auto& run) { return run.second == number; });
    }

    void play_turn() {
        now_ += dice_.below(3 * kSecond);
        core().begin_turn(now_);
        for (uint64_t commands = dice_.below(8); commands != 0; --commands) {
            const size_t what = dice_.weighed({6, 3, 5});
            what == 0 ? claim_something() : what == 1 ? report_worker() : release_something();
        }
        waiting_.clear();
        for (const auto& [number, known] : known_) {
            const uint32_t row = core().find_claim(number);
            if (row == shm::kNoRow) continue;
            if (core().claim(row).state != shm::ClaimState::kWaiting) continue;
            waiting_[number] = core().class_of(row);
        }
        for (;;) {
            core().decide();
            const std::vector<core::Decision> told(core().decisions().begin(),
                                                   core().decisions().end());
            for (const core::Decision& decision : told)
                follow(decision);
            core().commit();
            core().clear();
            EXPECT_EQ(core().check_all(), std::vector<std::string>{});
            if (!core().work_left()) return;
            core().begin_turn(now_);
        }
    }

    void follow(const core::Decision& told) {
        if (told.kind == core::DecisionKind::kPreempt) preempting_.insert(told.claim);
        if (told.kind == core::DecisionKind::kLeaseEnd) {  // it waits again, in the next pass
            leases_.erase(told.claim);
            std::erase_if(busy_, [&](const auto& run) { return run.second == told.claim; });
        }
        if (told.kind != core::DecisionKind::kGrant) return;
        leases_[told.claim] = {told.id, told.fence};
        const bool by_preemption = preempting_.erase(told.claim) != 0;
        for (const core::DecidedSlot& slot : core().decided_slots(told)) {
            const shm::SlotRow& row = core().slot(slot.row);
            const std::string_view name(row.name, row.name_size);
            const auto place = static_cast<size_t>(
                std::find(kWorkers.begin(), kWorkers.end(), name) - kWorkers.begin());
            busy_[place] = told.claim;
            if (!by_preemption) judge(told.claim, workers_[place]);
        }
    }

    static bool has(const LabelSet& slot, const LabelSet& wanted) {
        return std::includes(slot.begin(), slot.end(), wanted.begin(), wanted.end());
    }

    void judge(uint64_t served, const LabelSet& slot) {
        const Known& own = known_[served];
        const auto at = waiting_.find(served);
        if (at == waiting_.end()) return;  // it has come back since
        for (const auto& [number, at_class] : waiting_) {
            if (number >= served) break;
            const uint32_t row = core().find_claim(number);
            const bool waits =
                row != shm::kNoRow && core().claim(row).state == shm::ClaimState::kWaiting;
            const Known& other = known_[number];
            if (!waits || at_class != at->second || other.base.size() != own.base.size()) continue;
            if (other.units != 1 || !has(slot, other.base)) continue;
            ++compared_;
            // Provisioned ones go first: a step of its own.
            if (has(slot, own.preferred) && !has(slot, other.preferred)) continue;
            ADD_FAILURE() << "claim " << served << " has overtaken claim " << number;
        }
    }

    static constexpr std::array<std::string_view, 6> kWorkers = {
        "w0", "w1", "w2", "w3", "w4", "w5"};

    naive::Dice dice_;
    uint32_t pool_ = 0;
    uint32_t session_ = 0;
    uint64_t now_ = 1;
    uint64_t number_ = 0;
    uint64_t compared_ = 0;
    std::array<LabelSet, kWorkers.size()> workers_;
    std::vector<uint16_t> free_tags_;
    std::map<uint64_t, Known> known_;                           // by number
    std::map<uint64_t, uint16_t> tag_of_;                       // by number
    std::map<uint64_t, std::pair<uint64_t, uint64_t>> leases_;  // by number: id, fence
    std::map<size_t, uint64_t> busy_;                           // worker → number
    std::map<uint64_t, uint8_t> waiting_;                       // number → class before the pass
    std::set<uint64_t> preempting_;
};

TEST(Overtaking, NeverHappensAmongEqualsForASlotThatTheElderCouldUse) {
    const char* given = std::getenv("DIBS_SEED");
    const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
    const uint64_t journals = tests::repeats(60, 2000);
    uint64_t compared = 0;
    for (uint64_t seed = first; seed < first + journals; ++seed) {
        SCOPED_TRACE("DIBS_SEED=" + std::to_string(seed));
        Journal journal(seed);
        journal.play(100);
        compared += journal.compared();
        if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(compared, journals);  // there was somebody to overtake
}

}  // namespace
}  // namespace dibs::tests
