// tests/broker/journal/recording_test.cpp -- what a core was given plays to the same decisions.
//
// Random conversations (workers, deaths, drains, growth, grants that are told before their turn)
// and every scenario are recorded while they are played; the recording is played by another core,
// which must come to the same decisions and the same state.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/recording.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "broker/admin/recording.hpp"
#include "broker/ctl/replay/recording_file.hpp"
#include "broker/journal/encoder.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_reader.hpp"
#include "broker/journal/journal_run.hpp"
#include "broker/journal/journal_size.hpp"
#include "broker/journal/replayer.hpp"
#include "broker/journal/scenario.hpp"
#include "broker/snapshot/dump.hpp"
#include "schemas/admin_generated.h"
#include "shm/lines.hpp"
#include "tests/broker/journal/unlisted_fields.hpp"
#include "tests/crash/workload.hpp"
#include "tests/repeats.hpp"

namespace dibs {
namespace {

using ctl::JournalError;
using ctl::JournalForm;
using ctl::JournalReader;

std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// As dibs record writes it. `pieces`: the bytes come in packets of so many.
std::string written(std::span<const uint8_t> snapshot,
                    std::span<const uint8_t> lines,
                    size_t pieces) {
    const std::string path = testing::TempDir() + "recording." + std::to_string(getpid());
    ctl::RecordingFile file(path);
    file.write_snapshot(snapshot);
    for (size_t at = 0; at < lines.size(); at += pieces)
        file.take(lines.subspan(at, std::min(pieces, lines.size() - at)));
    file.finish();
    std::string bytes = read(path);
    std::filesystem::remove(path);
    return bytes;
}

std::vector<uint8_t> everything(Recording* recording) {
    std::vector<uint8_t> lines;
    while (const auto more = recording->next())
        lines.insert(lines.end(), more->begin(), more->end());
    return lines;
}

std::string fault_of(const std::string& recording) {
    try {
        JournalReader journal(recording, JournalForm::kDetect);
        (void)ctl::check_recording(journal);
        return "";
    } catch (const JournalError& error) {
        return error.what();
    }
}

// A core that is recorded from some turn on.
class Live {
  public:
    explicit Live(const core::Limits& limits) : lines_(core::state_size(limits)) {
        core::format_state(bytes(), limits);
        core_.emplace(bytes());
    }
    core::Core& core() { return *core_; }
    std::vector<uint8_t> snapshot() { return snapshot::dump(bytes()); }

  private:
    std::span<std::byte> bytes() { return lines_.bytes(); }
    shm::Lines lines_;
    std::optional<core::Core> core_;
};

constexpr core::Limits kLimits = {.pools = 15,
                                  .sessions = 6,
                                  .slots = 48,
                                  .claims = 20,
                                  .leases = 16,
                                  .arena_blocks = 48,
                                  .applications = 8,
                                  .groups = 10,
                                  .tasks = 16};

void take_turn(core::Core& core, tests::Workload& workload, int operations) {
    core.begin_turn(workload.next_time());
    if (workload.below(2) != 0 || !workload.pledge()) {
        for (int i = 0; i < operations; ++i)
            (void)workload.apply(static_cast<tests::Operation>(workload.below(tests::kOperations)));
    }
    core.decide();
    core.commit();
    core.clear();
    if (!core.work_left()) return;
    core.begin_turn(core.now());
    core.decide();
    core.commit();
    core.clear();
}

TEST(Recording, OfARandomConversationPlaysToTheSameDecisionsAndState) {
    const uint64_t seeds = tests::repeats(30, 300);
    uint64_t pledged = 0;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
        Live live(kLimits);
        tests::Workload workload(live.core(), seed);
        workload.set_up();
        for (int turn = 0; turn < 50 || live.core().work_left(); ++turn)
            take_turn(live.core(), workload, 4);
        const std::vector<uint8_t> snapshot = live.snapshot();
        Recording recording;
        recording.begin(live.core());
        for (int turn = 0; turn < 300; ++turn) {
            take_turn(live.core(), workload, 4);
            const auto decisions = live.core().decisions();
            EXPECT_EQ(tests::unlisted_fields(decisions), "");
            pledged += static_cast<uint64_t>(std::count_if(
                decisions.begin(), decisions.end(), [](const core::Decision& decision) {
                    return decision.pledged;
                }));
        }
        recording.stop();
        take_turn(live.core(), workload, 1);
        ASSERT_EQ(recording.ended(), Recording::End::kStopped);
        const std::string bytes = written(snapshot, everything(&recording), 1000 + seed);
        ASSERT_EQ(fault_of(bytes), "") << "seed " << seed;
        JournalReader journal(bytes, JournalForm::kDetect);
        EXPECT_EQ(ctl::check_recording(journal), recording.turns());
    }
    EXPECT_GT(pledged, 20U);
}

// Plays the scenario as it is, and gives back its recording and its decisions.
std::string recorded(const std::string& scenario, std::vector<std::string>* decisions) {
    JournalReader reader(scenario, JournalForm::kDetect);
    ctl::Replayer replayer(ctl::limits_of(reader));
    const std::vector<uint8_t> snapshot = replayer.snapshot();
    Encoder encoder(replayer.core());
    replayer.set_tap(&encoder);
    while (const journal::Line* line = reader.next()) {
        if (ctl::is_expectation(*line)) continue;
        replayer.apply(*line);
        EXPECT_EQ(tests::unlisted_fields(replayer.core().decisions()), "");
        for (std::string& decision : replayer.take_decisions()) {
            // What an administrator is answered is no decision.
            const auto has = [&](const char* text) { return decision.find(text) != decision.npos; };
            if (decision.starts_with(R"({"result":{"of":"drain")")) continue;
            const bool is_result = decision.starts_with(R"({"result":)");
            if (is_result && has(R"("application":)") && !has(R"("session":)")) continue;
            decisions->push_back(std::move(decision));
        }
    }
    return written(snapshot, encoder.take(), 777);
}

// NameMap are the author's: what is left of a decision without them is its kind.
std::vector<std::string> kinds(const std::vector<std::string>& decisions) {
    std::vector<std::string> result;
    for (const std::string& decision : decisions)
        result.push_back(decision.substr(0, decision.find(':')));
    return result;
}

TEST(Recording, OfAScenarioPlaysToItsDecisions) {
    uint64_t scenarios = 0;
    for (const auto& entry : std::filesystem::directory_iterator(DIBS_ROOT "/tests/scenarios")) {
        if (entry.path().extension() != ".jsonl" || scenarios++ % tests::one_of() != 0) continue;
        std::vector<std::string> decided;
        const std::string bytes = recorded(read(entry.path()), &decided);
        JournalReader journal(bytes, JournalForm::kDetect);
        std::vector<std::string> again;
        ASSERT_NO_THROW(ctl::run_journal(journal, {}, [&](const std::string& decision) {
            again.push_back(decision);
        })) << entry.path();
        EXPECT_EQ(kinds(again), kinds(decided)) << entry.path();
    }
    EXPECT_GT(scenarios, 100U);
}

TEST(Recording, PlaysAsJsonLinesToo) {
    std::vector<std::string> decided;
    const std::string bytes =
        recorded(read(DIBS_ROOT "/tests/scenarios/S2.32-idle.jsonl"), &decided);
    JournalReader binary(bytes, JournalForm::kDetect);
    const std::string text = ctl::journal_bytes(binary, JournalForm::kJson);
    EXPECT_EQ(text.substr(0, 9), R"({"state":)");
    EXPECT_EQ(fault_of(text), "");
}

// One session claims twice, on a pool of two slots: three turns.
class SmallRecording : public testing::Test {
  protected:
    SmallRecording() : live_(kLimits) {
        core::Core& core = live_.core();
        core.begin_turn(1000);
        std::string why;
        core::PoolConfig pool;
        pool.name = "gpu";
        pool.slots = 2;
        EXPECT_EQ(core.set_pool(pool, &why), 0U) << why;
        EXPECT_EQ(core.open_session({.uid = 1000, .gid = 1000, .pid = 7}), 0U);
        end_turn();
        snapshot_ = live_.snapshot();
    }
    void end_turn() {
        live_.core().decide();
        live_.core().commit();
        live_.core().clear();
    }
    void claim(uint16_t tag, core::TimeNs now) {
        live_.core().begin_turn(now);
        core::Claim claim;
        claim.tag = tag;
        live_.core().apply(claim);
        end_turn();
    }
    std::string record(Recording* recording) {
        recording->begin(live_.core());
        claim(0, 2000);
        claim(1, 3000);
        recording->stop();
        claim(2, 4000);
        return written(snapshot_, everything(recording), 65536);
    }

    Live live_;
    std::vector<uint8_t> snapshot_;
};

TEST_F(SmallRecording, HoldsWhatItsTurnsDecide) {
    Recording recording;
    const std::string bytes = record(&recording);
    EXPECT_EQ(recording.turns(), 3U);
    JournalReader journal(bytes, JournalForm::kDetect);
    std::vector<std::string> decided;
    ctl::run_journal(journal, {}, [&](const std::string& decision) {
        if (!decision.starts_with("{\"demand\"")) decided.push_back(decision);
    });
    const std::vector<std::string> expected = {
        R"({"grant":{"claim":"#1","session":"#0","pool":"gpu","slots":[0],"fence":1,"interval_ns":0}})",
        R"({"grant":{"claim":"#2","session":"#0","pool":"gpu","slots":[1],"fence":2,"interval_ns":0}})"};
    EXPECT_EQ(decided, expected);
}

TEST_F(SmallRecording, SaysWhichTurnDecidesOtherwise) {
    Recording recording;
    const std::string bytes = record(&recording);
    JournalReader journal(bytes, JournalForm::kDetect);
    std::string text = ctl::journal_bytes(journal, JournalForm::kJson);
    const std::string given = R"("tag": 1)";  // of the second claim
    const size_t tag = text.find(given);
    ASSERT_NE(tag, std::string::npos) << text;
    text.replace(tag, given.size(), R"("tag": 3)");
    EXPECT_EQ(fault_of(text).substr(0, 66),
              "turn 2 is not as it was recorded: decision 1 of 1 was another one ");
}

// Every so manyth byte, of an odd number: a step that fields have in common would miss some of
// theirs.
size_t every(size_t bytes) {
    return (bytes * tests::one_of()) | 1;
}

TEST_F(SmallRecording, IsRefusedWithAnyByteChanged) {
    Recording recording;
    const std::string bytes = record(&recording);
    for (size_t at = 0; at < bytes.size(); at += every(at < snapshot_.size() ? 499 : 7)) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ 0x21);
        EXPECT_NE(fault_of(changed), "") << at;
    }
}

TEST_F(SmallRecording, IsRefusedWithItsEndCutOffAnywhere) {
    Recording recording;
    const std::string bytes = record(&recording);
    for (size_t size = 4; size < bytes.size(); size += every(31))
        EXPECT_NE(fault_of(bytes.substr(0, size)), "") << size;
}

TEST_F(SmallRecording, EndsWhereItsQueueIsFullAndPlaysUpToThere) {
    Recording all;
    const size_t size = [&] {
        all.begin(live_.core());
        claim(0, 2000);
        return everything(&all).size();
    }();
    all.stop();
    claim(1, 3000);
    snapshot_ = live_.snapshot();
    Recording small(size * 2);
    small.begin(live_.core());
    for (uint16_t tag = 2; tag < 20; ++tag)
        claim(tag, 4000 + tag);
    EXPECT_EQ(small.ended(), Recording::End::kOverrun);
    EXPECT_GT(small.turns(), 0U);
    EXPECT_LT(small.turns(), 18U);
    std::array<int, 2> ends = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
    Recorder recorder(small);
    EXPECT_EQ(recorder.flush(ends[0]), Recorder::Sent::kFinished);
    std::vector<uint8_t> lines;
    std::string lost;
    for (bool more = true; more;) {
        alignas(8) std::array<uint8_t, 70000> packet;
        ASSERT_GT(recv(ends[1], packet.data(), packet.size(), 0), 0);
        admin::AnswerT answer;
        flatbuffers::GetRoot<admin::Answer>(packet.data())->UnPackTo(&answer);
        lines.insert(lines.end(), answer.bytes.begin(), answer.bytes.end());
        if (!answer.names.empty()) lost = answer.names.front();
        more = answer.more;
    }
    close(ends[0]);
    close(ends[1]);
    EXPECT_EQ(lost,
              "the broker did more than was taken from it: what came behind turn " +
                  std::to_string(small.turns()) + " is lost");
    EXPECT_EQ(fault_of(written(snapshot_, lines, 65536)), "");
}

TEST(Recording, WaitsForAnotherPartOfItsTurn) {
    // A pool of 5,000 slots grows over several turns that the log cuts.
    core::Limits limits;
    limits.slots = 8192;
    Live live(limits);
    const std::vector<uint8_t> snapshot = live.snapshot();
    Recording recording;
    recording.begin(live.core());
    live.core().begin_turn(1000);
    core::PoolConfig pool;
    pool.name = "large";
    pool.slots = 5000;
    std::string why;
    ASSERT_EQ(live.core().set_pool(pool, &why), 0U) << why;
    int cuts = 0;
    for (;;) {
        live.core().decide();
        live.core().commit();
        live.core().clear();
        if (!live.core().work_left()) break;
        cuts += live.core().cut() ? 1 : 0;
        live.core().begin_turn(9999);
    }
    EXPECT_GT(cuts, 0);
    EXPECT_EQ(fault_of(written(snapshot, everything(&recording), 4096)), "");
}

}  // namespace
}  // namespace dibs
