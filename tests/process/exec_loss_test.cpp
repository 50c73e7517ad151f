// tests/process/exec_loss_test.cpp -- `dibs exec` when its lease ends before the command: it says
// why, ends the command and has an exit code of its own for it; or leaves the command alone.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/tool.hpp"

namespace dibs::test {
namespace {

constexpr const char* kOneAndWeb =
    "[[pool]]\nname = \"one\"\nkind = \"counted\"\nslots = 1\n"
    "[[pool]]\nname = \"web\"\nkind = \"worker\"\nanswer_max = 4096\nattributes_max = 256\n"
    "reservation_ttl = \"1h\"\n";

// Says its process id and its lease, and stays until it is ended.
constexpr const char* kStaysWithLease = "echo $$ $DIBS_LEASE; exec sleep 1000";
// Says that it was asked to end, and ends in order.
constexpr const char* kEndsInOrder =
    "trap 'echo asked; exit 0' TERM; echo $$ $DIBS_LEASE; while :; do sleep 0.01; done";
// Does not listen.
constexpr const char* kStubborn = "trap '' TERM; echo $$ $DIBS_LEASE; while :; do sleep 0.01; done";
// Ends with 6 once its input has.
constexpr const char* kReads = "trap '' TERM; echo $$ $DIBS_LEASE; read x; exit 6";

constexpr const char* kReleased =
    "dibs exec: the lease of pool \"one\" is lost (it was released from outside (dibs release)): "
    "ending the command";

struct Started {
    pid_t command = -1;
    std::string lease;
};

Started started(Tool* tool) {
    const std::string line = tool->line();
    const size_t space = line.find(' ');
    if (space == std::string::npos) return {};
    return {std::stoi(line), line.substr(space + 1)};
}

class ExecLoss : public testing::Test {
  protected:
    ExecLoss() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

    static Words running(const Words& words, const char* script) {
        return Words{"exec"} + words + Words{"--", "sh", "-c", script};
    }
    void release(const std::string& lease) {
        EXPECT_EQ(Tool(dibsd_.socket(), {"release", lease}).wait(), 0);
    }

    Folder folder_;
    Dibsd dibsd_{folder_, kOneAndWeb};
};

TEST_F(ExecLoss, EndsACommandWhoseLeaseWasReleasedFromOutside) {
    Tool tool(dibsd_.socket(), running({"one"}, kEndsInOrder));
    const Started command = started(&tool);
    release(command.lease);
    EXPECT_EQ(tool.error_line_with("dibs exec:"), kReleased);
    EXPECT_EQ(tool.line(), "asked");
    EXPECT_EQ(tool.wait(), 125);  // however the command ended
    await_end_of(command.command);
}

TEST_F(ExecLoss, KillsACommandThatDoesNotEndWithinItsGrace) {
    Tool tool(dibsd_.socket(), running({"one", "--grace", "20ms"}, kStubborn));
    const Started command = started(&tool);
    release(command.lease);
    EXPECT_EQ(tool.wait(), 125);
    await_end_of(command.command);
}

TEST_F(ExecLoss, EndsAStoppedCommandToo) {
    Tool tool(dibsd_.socket(), running({"one"}, kStaysWithLease));
    const Started command = started(&tool);
    kill(command.command, SIGSTOP);
    release(command.lease);
    EXPECT_EQ(tool.wait(), 125);
    await_end_of(command.command);
}

TEST_F(ExecLoss, LeavesACommandAloneThatIsToRunOn) {
    Tool tool(dibsd_.socket(), running({"one", "--run-on"}, kReads));
    release(started(&tool).lease);
    EXPECT_EQ(tool.error_line_with("dibs exec:"),
              "dibs exec: the lease of pool \"one\" is lost (it was released from outside (dibs "
              "release)): the command runs on without it (--run-on)");
    const Attached client(dibsd_.socket(), "one");
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
    tool.close_input();
    EXPECT_EQ(tool.wait(), 6);
}

TEST_F(ExecLoss, EndsTheCommandWhenTheBrokerIsGoneForGood) {
    Tool tool(dibsd_.socket(), running({"one"}, kStaysWithLease));
    const Started command = started(&tool);
    Tool other(dibsd_.socket(), running({"web", "--timeout", "1h"}, kStaysWithLease));
    {
        const Attached client(dibsd_.socket(), "web");
        client.await([](const dibs_counters& now) { return now.queued == 1; });
    }
    dibsd_.signal(SIGKILL);
    (void)dibsd_.wait();
    EXPECT_EQ(tool.error_line_with("dibs exec:"),
              "dibs exec: the lease of pool \"one\" is lost (the broker is gone, and this session "
              "with it): ending the command");
    EXPECT_EQ(tool.wait(), 125);
    await_end_of(command.command);
    EXPECT_EQ(other.wait(), 3);  // it had no command yet
}

TEST_F(ExecLoss, RunsOnWithoutABrokerIfItIsTo) {
    Tool tool(dibsd_.socket(), running({"one", "-r"}, kReads));
    (void)started(&tool);
    dibsd_.signal(SIGKILL);
    (void)dibsd_.wait();
    EXPECT_NE(tool.error_line_with("dibs exec:").find("runs on without it (--run-on)"),
              std::string::npos);
    tool.close_input();
    EXPECT_EQ(tool.wait(), 6);
}

TEST_F(ExecLoss, EndsACommandWhoseWorkerIsDone) {
    Tool worker(dibsd_.socket(),
                {"worker", "web", "--", "sh", "-c", "while read -r line; do echo done; done"});
    EXPECT_EQ(worker.error_line(), "dibs worker: 1 slot of pool \"web\" ready");
    Tool tool(dibsd_.socket(), running({"web"}, kStaysWithLease));
    EXPECT_EQ(tool.error_line_with("dibs exec:"),
              "dibs exec: the lease of pool \"web\" is lost (its worker is done with this use; "
              "dibs worker --lines none or hold leaves that to the holder): ending the command");
    EXPECT_EQ(tool.wait(), 125);
}

TEST_F(ExecLoss, EndsACommandWhoseWorkerIsLost) {
    Tool worker(
        dibsd_.socket(),
        {"worker", "web", "--lines", "none", "--attribute", "pid={pid}", "--", "sleep", "1000"});
    EXPECT_EQ(worker.error_line(), "dibs worker: 1 slot of pool \"web\" ready");
    Tool tool(dibsd_.socket(), running({"web"}, "echo $$ $DIBS_ATTR_PID; exec sleep 1000"));
    const Started command = started(&tool);
    kill(std::stoi(command.lease), SIGKILL);
    EXPECT_NE(tool.error_line_with("dibs exec:").find("the worker's process has ended"),
              std::string::npos);
    EXPECT_EQ(tool.wait(), 125);
    await_end_of(command.command);
}

// The end of a command is the end of its lease, and no loss.
TEST_F(ExecLoss, SaysNothingWhereTheCommandEndsFirst) {
    for (int i = 0; i < 50; ++i) {
        Tool tool(dibsd_.socket(), running({"one"}, "exit 7"));
        EXPECT_EQ(tool.error_rest(), "");
        ASSERT_EQ(tool.wait(), 7);
    }
}

class ExecLossTakenOver : public testing::Test {
  protected:
    ExecLossTakenOver() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

    Folder folder_;
    KeptDibsd dibsd_{folder_, kOneAndWeb};
};

TEST_F(ExecLossTakenOver, HearsOfTheEndFromTheNextBroker) {
    Tool tool(dibsd_.socket(), {"exec", "one", "--", "sh", "-c", kStaysWithLease});
    const Started command = started(&tool);
    const pid_t first = dibsd_.broker();
    dibsd_.kill_broker();
    (void)dibsd_.broker(first);
    EXPECT_EQ(Tool(dibsd_.socket(), {"release", command.lease}).wait(), 0);
    EXPECT_EQ(tool.error_line_with("dibs exec:"), kReleased);
    EXPECT_EQ(tool.wait(), 125);
    await_end_of(command.command);
}

TEST_F(ExecLossTakenOver, EndsTheCommandWhenKeeperAndBrokerAreKilled) {
    Tool tool(dibsd_.socket(), {"exec", "one", "--", "sh", "-c", kStaysWithLease});
    const Started command = started(&tool);
    const pid_t keeper = dibsd_.keeper();
    kill(keeper, SIGSTOP);  // so that it starts no successor
    dibsd_.kill_broker();
    kill(keeper, SIGKILL);
    EXPECT_NE(tool.error_line_with("dibs exec:").find("the broker is gone"), std::string::npos);
    EXPECT_EQ(tool.wait(), 125);
    await_end_of(command.command);
}

}  // namespace
}  // namespace dibs::test
