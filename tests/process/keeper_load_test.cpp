// tests/process/keeper_load_test.cpp -- the keeper dies while a broker leaves a loaded state to it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/process/kept_dibsd.hpp"
#include "tests/process/tool.hpp"
#include "tests/process/tracer.hpp"

namespace dibs::test {
namespace {

// A broker that has granted three fences, with a snapshot of the time when it was two, which is
// being loaded.
class KeeperDeathInALoad : public testing::Test {
  protected:
    void SetUp() override {
        EXPECT_EQ(fence(), "1");
        EXPECT_EQ(fence(), "2");
        EXPECT_EQ(run({"dump", file_}), 0);
        EXPECT_EQ(fence(), "3");
        while (!clients().empty())
            sched_yield();
    }
    // The fence of the next lease, of whoever listens there. In a process of its own: nobody may be
    // attached while a state is loaded.
    [[nodiscard]] std::string fence() const {
        for (;; sched_yield()) {
            Tool tool(dibsd_.socket(), {"exec", "gpu", "--", "sh", "-c", "echo $DIBS_FENCE"});
            const std::string told = tool.line();
            if (tool.wait() == 0) return told;
        }
    }
    [[nodiscard]] int run(const Words& words) const {
        Tool tool(dibsd_.socket(), words);
        return tool.wait();
    }
    [[nodiscard]] std::string clients() const {
        Tool tool(dibsd_.socket(), {"ls", "clients", "-o", "jsonl"});
        EXPECT_EQ(tool.wait(), 0);
        return tool.rest();
    }
    [[nodiscard]] std::optional<Tracer> trace_control() const {
        const pid_t broker = dibsd_.broker();
        for (const auto& task :
             std::filesystem::directory_iterator("/proc/" + std::to_string(broker) + "/task")) {
            const pid_t tid = std::stoi(task.path().filename());
            if (tid != broker) return Tracer::of_running(tid);
        }
        return std::nullopt;
    }
    // The keeper dies before it has been told of the state, which is on its way.
    void kill_keeper_before_the_state(Tracer& control) const {
        for (;;) {
            const auto call = control.next();
            ASSERT_TRUE(call);
            const auto message = control.said(*call);
            if (!message || message->word != KeeperWord::kHold) continue;
            ASSERT_EQ(message->what, Kept::kState);
            break;
        }
        kill_and_await(dibsd_.keeper(), SIGKILL);
    }

    const Folder folder_;
    const KeptDibsd dibsd_{folder_, "[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = 2\n"};
    const std::string file_ = folder_.path() + "/two.snap";
};

TEST_F(KeeperDeathInALoad, IsMadeGoodByTheBrokerThatMakesWay) {
    auto control = trace_control();
    if (!control) GTEST_SKIP() << kMayNotTrace;
    Tool load(dibsd_.socket(), {"load", file_});
    kill_keeper_before_the_state(*control);
    control->let_go();
    EXPECT_EQ(fence(), "3");
    EXPECT_EQ(load.wait(), 0) << load.error_rest();
    dibsd_.kill_broker();
    EXPECT_EQ(fence(), "4");
}

// However many rows there are to read: nobody is heard meanwhile, and the keeper waits for it.
TEST_F(KeeperDeathInALoad, IsNeededForItSoTheKeeperIsToldThatItTakesAWhile) {
    auto control = trace_control();
    if (!control) GTEST_SKIP() << kMayNotTrace;
    Tool load(dibsd_.socket(), {"load", file_});
    std::vector<KeeperWord> words;
    while (words.empty() || words.back() != KeeperWord::kHold) {
        const auto call = control->next();
        ASSERT_TRUE(call);
        if (const auto message = control->said(*call)) words.push_back(message->word);
    }
    control->let_go();
    // Beside them it may answer who asks whether it is there, or drop a session that has gone.
    const auto busy = std::find(words.begin(), words.end(), KeeperWord::kBusy);
    EXPECT_NE(std::find(busy, words.end(), KeeperWord::kHere), words.end());
    EXPECT_EQ(load.wait(), 0) << load.error_rest();
}

// The turn has agreed and not ended yet, when the control thread hears of the keeper's death.
TEST_F(KeeperDeathInALoad, LeavesTheNextKeeperTheLoadedState) {
    auto turn = Tracer::of_running(dibsd_.broker());
    if (!turn) GTEST_SKIP() << kMayNotTrace;
    const pid_t first = dibsd_.keeper();
    Tool load(dibsd_.socket(), {"load", file_});
    for (;;) {  // until it rings for its word
        const auto call = turn->next();
        ASSERT_TRUE(call);
        if (call->begins && call->number == SYS_write && call->arguments[2] == 8) break;
    }
    auto control = trace_control();
    ASSERT_TRUE(control);
    ASSERT_TRUE(turn->next());  // it has rung
    kill_keeper_before_the_state(*control);
    control->let_go();
    (void)dibsd_.keeper(first);  // it is given all by now, or next
    turn->let_go();
    EXPECT_EQ(fence(), "3");
    EXPECT_EQ(load.wait(), 0) << load.error_rest();
    dibsd_.kill_broker();
    EXPECT_EQ(fence(), "4");
}

}  // namespace
}  // namespace dibs::test
