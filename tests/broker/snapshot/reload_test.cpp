// tests/broker/snapshot/reload_test.cpp -- a scheduler that is written down and read again between
// any two turns decides as one that is not.
//
// Every scenario, and random conversations, are played twice: once as they are, once with a dump
// and a load after every turn. The decisions must be the same, line by line; each load must give
// the bytes of its dump when it is dumped again, and pass every check.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "broker/core/recovery/state_copy.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_reader.hpp"
#include "broker/journal/journal_size.hpp"
#include "broker/journal/replayer.hpp"
#include "broker/journal/scenario.hpp"
#include "broker/snapshot/load.hpp"
#include "shm/lines.hpp"
#include "tests/crash/workload.hpp"
#include "tests/repeats.hpp"

namespace dibs::ctl {
namespace {

std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void reload(Replayer* replayer) {
    const std::vector<uint8_t> dumped = replayer->snapshot();
    replayer->go_on_from(dumped);
    ASSERT_EQ(replayer->snapshot(), dumped);
    const std::vector<std::string> violations = replayer->core().check_all();
    ASSERT_TRUE(violations.empty()) << violations.front();
}

// One string for each turn. `every`: reload after each so many turns; 0 = never.
std::vector<std::string> decided(const std::string& journal, int every) {
    JournalReader reader(journal, JournalForm::kDetect);
    Replayer replayer(limits_of(reader));
    std::vector<std::string> turns;
    std::string turn;
    while (const journal::Line* line = reader.next()) {
        if (is_expectation(*line)) continue;
        replayer.apply(*line);
        for (const std::string& decision : replayer.take_decisions())
            turn += decision + '\n';
        if (replayer.turn_open()) continue;
        turns.push_back(std::move(turn));
        turn.clear();
        if (every != 0 && turns.size() % static_cast<size_t>(every) == 0) reload(&replayer);
        if (testing::Test::HasFatalFailure()) return turns;
    }
    return turns;
}

TEST(Reload, ChangesNoDecisionOfAScenario) {
    uint64_t scenarios = 0;
    for (const auto& entry : std::filesystem::directory_iterator(DIBS_ROOT "/tests/scenarios")) {
        if (entry.path().extension() != ".jsonl") continue;
        if (scenarios++ % tests::one_of() != 0) continue;
        const std::string journal = read(entry.path());
        EXPECT_EQ(decided(journal, 1), decided(journal, 0)) << entry.path();
        ASSERT_FALSE(HasFatalFailure()) << entry.path();
    }
    EXPECT_GT(scenarios, 100U);
}

// A core and its memory, which can be replaced by what a load makes of them.
class Memory {
  public:
    explicit Memory(const core::Limits& limits) : lines_(core::state_size(limits)) {
        core::format_state(bytes(), limits);
        core_.emplace(bytes());
    }
    core::Core& core() { return *core_; }
    std::vector<uint8_t> dumped() { return snapshot::dump(bytes()); }
    void reload() {
        const std::vector<uint8_t> before = dumped();
        core_.reset();
        lines_.clear();
        snapshot::Loader(before).fill(bytes());
        ASSERT_EQ(dumped(), before);
        core_.emplace(bytes());
        const std::vector<std::string> violations = core_->check_all();
        ASSERT_TRUE(violations.empty()) << violations.front();
    }

    std::span<std::byte> bytes() { return lines_.bytes(); }

  private:
    shm::Lines lines_;
    std::optional<core::Core> core_;
};

// Everything of a decision but where its lists lie.
std::string text_of(const core::Core& core, const core::Decision& decision) {
    static const NameTables names;
    std::vector<uint32_t> slots;
    for (const core::DecidedSlot& slot : core.decided_slots(decision))
        slots.push_back(slot.row);
    std::string text = decision_text(decision, slots, names);
    for (const uint64_t number : {uint64_t{decision.session},
                                  uint64_t{decision.tag},
                                  decision.user_data,
                                  decision.id,
                                  decision.value,
                                  uint64_t{decision.room},
                                  uint64_t{decision.holder_pid}}) {
        text += ' ' + std::to_string(number);
    }
    return text;
}

std::vector<std::string> turn_of(core::Core& core, tests::Workload& workload) {
    core.begin_turn(workload.next_time());
    for (int i = 0; i < 4; ++i)
        (void)workload.apply(static_cast<tests::Operation>(workload.below(tests::kOperations)));
    std::vector<std::string> texts;
    for (;;) {
        core.decide();
        for (const core::Decision& decision : core.decisions())
            texts.push_back(text_of(core, decision));
        core.commit();
        core.clear();
        if (!core.work_left()) return texts;
        core.begin_turn(core.now());
    }
}

TEST(Reload, ChangesNoDecisionOfARandomConversation) {
    const uint64_t seeds = tests::repeats(20, 200);
    constexpr core::Limits kLimits = {.pools = 15,
                                      .sessions = 6,
                                      .slots = 48,
                                      .claims = 20,
                                      .leases = 16,
                                      .arena_blocks = 48,
                                      .applications = 8,
                                      .groups = 10,
                                      .tasks = 16};
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
        Memory plain(kLimits);
        Memory reloaded(kLimits);
        tests::Workload one(plain.core(), seed);
        tests::Workload other(reloaded.core(), seed);
        one.set_up();
        other.set_up();
        for (int turn = 0; turn < 300; ++turn) {
            reloaded.reload();
            ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << ", turn " << turn;
            ASSERT_EQ(turn_of(reloaded.core(), other), turn_of(plain.core(), one))
                << "seed " << seed << ", turn " << turn;
        }
    }
}

// A copy that is made in small parts while turns go on.
TEST(StateCopy, IsTheStateOfTheTurnAtWhichItIsWhole) {
    const uint64_t seeds = std::getenv("DIBS_LONG") != nullptr ? 200 : 20;
    constexpr core::Limits kLimits = {.pools = 15,
                                      .sessions = 6,
                                      .slots = 48,
                                      .claims = 20,
                                      .leases = 16,
                                      .arena_blocks = 48,
                                      .accounts = 4,
                                      .label_sets = 4,
                                      .entries = 4,
                                      .applications = 8,
                                      .groups = 10,
                                      .tasks = 16};
    int whole = 0;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
        Memory memory(kLimits);
        core::Core& core = memory.core();
        tests::Workload workload(core, seed);
        workload.set_up();
        std::optional<core::StateCopy> copy;
        shm::Lines lines(memory.bytes().size());
        for (int turn = 0; turn < 400; ++turn) {
            if (!copy) {
                std::memset(lines.bytes().data(), 0xa5, lines.bytes().size());
                copy.emplace(memory.bytes(), lines.bytes());
            }
            core.begin_turn(workload.next_time());
            for (int i = 0; i < 4; ++i)
                (void)workload.apply(
                    static_cast<tests::Operation>(workload.below(tests::kOperations)));
            core.decide();
            core.commit();
            copy->follow();
            const bool done = copy->step(1 + workload.below(1500));
            core.clear();
            if (!done || core.cut()) continue;
            ASSERT_EQ(snapshot::dump(copy->bytes()), memory.dumped())
                << "seed " << seed << ", turn " << turn;
            ++whole;
            copy.reset();
        }
    }
    EXPECT_GT(whole, 20);
}

}  // namespace
}  // namespace dibs::ctl
