// tests/process/exec_kill_test.cpp -- `dibs exec` when one of the three is killed: the wrapper, the
// command, the broker.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/tool.hpp"

namespace dibs::test {
namespace {

constexpr const char* kOne = "[[pool]]\nname = \"one\"\nkind = \"counted\"\nslots = 1\n";

std::vector<std::string> staying(std::vector<std::string> words) {
    for (const char* word : {"--", "sh", "-c", "echo $$; exec sleep 1000"})
        words.emplace_back(word);
    return words;
}

// Whom a claim that expires is told of. A broker that is late lets the library end the claim, which
// knows no holder.
uint32_t holder_of_one(const Attached& client) {
    dibs_completion end = {};
    while (end.holder.claim == 0) {
        end = client.claim(Attached::asking(50 * DIBS_MILLISECOND));
        EXPECT_EQ(end.outcome, DIBS_EXPIRED);
        if (end.outcome != DIBS_EXPIRED) break;
    }
    return end.holder.pid;
}

// Orphans become this process's children, so that none outlives a failed test.
class ExecKilled : public testing::Test {
  protected:
    ExecKilled() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
    ~ExecKilled() override {
        if (command_ <= 0) return;
        kill(command_, SIGKILL);
        waitpid(command_, nullptr, 0);
    }
    void take_command(Tool* tool) { command_ = std::stoi(tool->line()); }
    void end_command(int signal) {
        kill(command_, signal);
        await_end_of(command_);
    }

    Folder folder_;
    Dibsd dibsd_{folder_, kOne};
    pid_t command_ = -1;
};

TEST_F(ExecKilled, KeepsTheSlotForTheCommandOfAKilledWrapper) {
    Tool tool(dibsd_.socket(), staying({"exec", "one"}));
    take_command(&tool);
    tool.signal(SIGKILL);
    EXPECT_EQ(tool.wait(), 128 + SIGKILL);
    const Attached client(dibsd_.socket(), "one");
    EXPECT_EQ(holder_of_one(client), static_cast<uint32_t>(command_));
    end_command(SIGTERM);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
}

TEST_F(ExecKilled, ReturnsTheSlotOfAKilledCommand) {
    Tool tool(dibsd_.socket(), staying({"exec", "one"}));
    take_command(&tool);
    const Attached client(dibsd_.socket(), "one");
    kill(command_, SIGKILL);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
    EXPECT_EQ(tool.wait(), 128 + SIGKILL);
}

TEST_F(ExecKilled, EndsWhatAKilledCommandHadStarted) {
    Tool tool(dibsd_.socket(), {"exec", "one", "--", "sh", "-c", "sleep 1000 & echo $! $$; wait"});
    const std::string line = tool.line();
    command_ = std::stoi(line.substr(line.find(' ')));
    kill(command_, SIGKILL);
    EXPECT_EQ(tool.wait(), 128 + SIGKILL);
    await_end_of(std::stoi(line));
}

TEST_F(ExecKilled, EndsTheCommandOfAKilledWrapperThatKeptTheLease) {
    Tool tool(dibsd_.socket(), staying({"exec", "one", "-k", "1h"}));
    take_command(&tool);
    const Attached client(dibsd_.socket(), "one");
    tool.signal(SIGKILL);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
    await_end_of(command_);
}

TEST_F(ExecKilled, ReturnsTheSlotOfAKilledCommandWhoseWrapperKeptTheLease) {
    Tool tool(dibsd_.socket(), staying({"exec", "one", "-k", "1h"}));
    take_command(&tool);
    kill(command_, SIGKILL);
    EXPECT_EQ(tool.wait(), 128 + SIGKILL);
    const Attached client(dibsd_.socket(), "one");
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
}

TEST_F(ExecKilled, SaysThatTheBrokerIsGoneWhileItWaits) {
    Tool holder(dibsd_.socket(), staying({"exec", "one"}));
    take_command(&holder);
    Tool waiting(dibsd_.socket(), {"exec", "one", "--", "true"});
    {
        const Attached client(dibsd_.socket(), "one");
        client.await([](const dibs_counters& now) { return now.queued == 1; });
    }
    dibsd_.signal(SIGKILL);
    (void)dibsd_.wait();
    EXPECT_EQ(waiting.wait(), 3);
    EXPECT_EQ(waiting.error_line(),
              "dibs exec: did not get a slot of pool \"one\": the broker has gone away");
}

// With a keeper, the next broker goes on where the killed one was.
class ExecTakenOver : public testing::Test {
  protected:
    ExecTakenOver() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

    Folder folder_;
    KeptDibsd dibsd_{folder_, kOne};
};

TEST_F(ExecTakenOver, KeepsTheLeaseOfARunningCommand) {
    Tool tool(dibsd_.socket(), {"exec", "one", "--", "sh", "-c", "echo $$; read x; exit 6"});
    const std::string command = tool.line();
    const pid_t first = dibsd_.broker();
    dibsd_.kill_broker();
    (void)dibsd_.broker(first);
    const Attached client(dibsd_.socket(), "one");
    EXPECT_EQ(std::to_string(holder_of_one(client)), command);
    tool.close_input();
    EXPECT_EQ(tool.wait(), 6);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
}

TEST_F(ExecTakenOver, WaitsOnForItsSlot) {
    Tool holder(dibsd_.socket(), {"exec", "one", "--", "sh", "-c", "echo up; read x"});
    EXPECT_EQ(holder.line(), "up");
    Tool waiting(dibsd_.socket(), {"exec", "one", "--", "echo", "mine"});
    {
        const Attached client(dibsd_.socket(), "one");
        client.await([](const dibs_counters& now) { return now.queued == 1; });
    }
    dibsd_.kill_broker();
    holder.close_input();
    EXPECT_EQ(waiting.line(), "mine");
    EXPECT_EQ(waiting.wait(), 0);
}

TEST_F(ExecTakenOver, KeepsALeaseThatTheWrapperKeepsAlive) {
    Tool tool(dibsd_.socket(),
              {"exec", "one", "-k", "1h", "--", "sh", "-c", "echo up; read x; exit 6"});
    EXPECT_EQ(tool.line(), "up");
    const pid_t first = dibsd_.broker();
    dibsd_.kill_broker();
    (void)dibsd_.broker(first);
    tool.close_input();
    EXPECT_EQ(tool.wait(), 6);
    EXPECT_EQ(tool.error_rest(), "");
}

TEST_F(ExecKilled, EndsACommandWhoseKeptLeaseWentWithTheBroker) {
    Tool tool(dibsd_.socket(), staying({"exec", "one", "-k", "1h"}));
    take_command(&tool);
    dibsd_.signal(SIGKILL);
    (void)dibsd_.wait();
    EXPECT_EQ(tool.wait(), 125);
    EXPECT_NE(tool.error_line().find("the lease of pool \"one\" is lost"), std::string::npos);
    await_end_of(command_);
}

}  // namespace
}  // namespace dibs::test
