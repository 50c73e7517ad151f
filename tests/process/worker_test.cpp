// tests/process/worker_test.cpp -- `dibs worker` as a user meets it: what a process is told, how it
// is ready, replaced, cleaned and ended, and what is said of one that does not behave.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/web_workers.hpp"

namespace dibs::test {
namespace {

TEST_F(Worker, TellsAProcessItsUseAndGivesTheHolderItsAnswer) {
    const auto tool = start({"web"}, "while read -r line; do printf '%s\\n' \"heard $line\"; done");
    const Attached client(dibsd_.socket(), "web");
    dibs_claim_options asked = Attached::asking(DIBS_FOREVER);
    const dibs_option options[] = {{"a", "1"}, {"quote", "\""}};
    const char* const labels[] = {"fast"};
    asked.options = options;
    asked.option_count = 2;
    asked.labels = labels;
    asked.label_count = 1;
    asked.body = "two\nlines";
    asked.body_size = 9;
    const dibs_completion end = client.claim(asked);
    ASSERT_EQ(end.outcome, DIBS_GRANTED);
    EXPECT_EQ(answer_of(client, end.lease),
              R"(heard {"kind":"assign","pool":"web","slot":0,"round":1,"claim":1,)"
              R"("options":{"a":"1","quote":"\""},"labels":["fast"],"body":"two\nlines"})");
    EXPECT_NE(call(client, "\xff\x01").find(R"("body_base64":"/wE="})"), std::string::npos);
}

TEST_F(Worker, OffersSlotsOnceTheirProcessesAreReady) {
    const auto tool = start({"web:3", "--ready-line", "am ready", "--name", "w"},
                            std::string("echo noise; echo \"I am ready.\"; ") + kServe);
    EXPECT_EQ(tool->error_line(), "dibs worker: 3 slots of pool \"web\" ready");
    const Attached client(dibsd_.socket(), "web");
    client.await([](const dibs_counters& now) { return now.idle == 3; });
}

TEST_F(Worker, OffersASlotOnceItsProcessNotifies) {
    Tool tool(dibsd_.socket(),
              {"worker",
               "web",
               "--notify",
               "--lines",
               "none",
               "--",
               "python3",
               "-c",
               "import os, socket, time\n"
               "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
               "s.connect(os.environ['NOTIFY_SOCKET'])\n"
               "s.send(b'STATUS=warming up\\nREADY=1\\n')\n"
               "s.send(b'STATUS=warm')\n"
               "import signal; signal.pause()"});
    EXPECT_EQ(tool.error_line(), "dibs worker: 1 slot of pool \"web\" ready");
}

TEST_F(Worker, GivesAttributesAndLabelsToEverySlot) {
    const auto tool = start({"web:2", "--attribute", "path=/run/{index}.sock", "--lines", "none"},
                            "exec sleep 1000");
    const Attached client(dibsd_.socket(), "web");
    const dibs_completion first = client.claim();
    const dibs_completion second = client.claim();
    std::string paths;
    for (const dibs_completion* end : {&first, &second}) {
        const char* path = nullptr;
        ASSERT_EQ(dibs_lease_attribute(client, &end->lease, 0, "path", &path), DIBS_OK);
        paths += path;
    }
    EXPECT_TRUE(paths == "/run/0.sock/run/1.sock" || paths == "/run/1.sock/run/0.sock") << paths;
    // Given back, it is idle again: there is nothing to clean.
    EXPECT_EQ(dibs_release(client, &first.lease, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
}

TEST_F(Worker, ReplacesAProcessThatDiesInAUse) {
    const auto tool = start({"web", "--name", "w", "--backoff", "1ms"});
    const Attached client(dibsd_.socket(), "web");
    const pid_t first = pid_of(client);
    EXPECT_EQ(call(client, "die"), "worker-lost");
    EXPECT_NE(pid_of(client), first);
    EXPECT_NE(tool->error_line_with("w-0: process " + std::to_string(first) +
                                    " ended with exit code 9 after "),
              "");
    EXPECT_EQ(tool->error_line(), "dibs worker: w-0: starting again in 1ms");
}

TEST_F(Worker, NeverHandsOutAProcessThatWasKilledWhileIdle) {
    const auto tool = start({"web:2"});
    const Attached client(dibsd_.socket(), "web");
    for (int i = 0; i < 5; ++i) {
        const pid_t victim = pid_of(client);
        kill(victim, SIGKILL);
        await_end_of(victim);
        EXPECT_NE(
            tool->error_line_with("process " + std::to_string(victim) + " was killed by signal 9"),
            "");
        EXPECT_NE(pid_of(client), victim);
        EXPECT_NE(pid_of(client), victim);
    }
}

TEST_F(Worker, ReplacesAProcessAfterItsLastUse) {
    const auto tool = start({"web", "--uses-max", "2"});
    const Attached client(dibsd_.socket(), "web");
    const pid_t first = pid_of(client);
    EXPECT_EQ(pid_of(client), first);
    const pid_t second = pid_of(client);
    EXPECT_NE(second, first);
    EXPECT_EQ(pid_of(client), second);
    await_end_of(first);
}

TEST_F(Worker, ReplacesAProcessThatIsOfAge) {
    const auto tool = start({"web", "--age-max", "50ms"});
    const Attached client(dibsd_.socket(), "web");
    await_end_of(pid_of(client));
}

TEST_F(Worker, RunsACommandBetweenUses) {
    const std::string log = folder_.path() + "/between";
    const auto tool = start({"web", "--between", "echo $DIBS_WORKER_PID >> " + log});
    const Attached client(dibsd_.socket(), "web");
    const std::string pid = std::to_string(pid_of(client));
    EXPECT_EQ(std::to_string(pid_of(client)), pid);
    EXPECT_EQ(std::to_string(pid_of(client)), pid);
    Tool shown(dibsd_.socket(), {"exec", "gpu", "--", "head", "-2", log});
    EXPECT_EQ(shown.rest(), pid + "\n" + pid + "\n");
}

TEST_F(Worker, ReplacesAProcessThatCannotBeCleaned) {
    const auto tool = start({"web", "--between", "exit 3", "--backoff", "0ns"});
    const Attached client(dibsd_.socket(), "web");
    const pid_t first = pid_of(client);
    EXPECT_NE(pid_of(client), first);
    EXPECT_NE(tool->error_line_with("process " + std::to_string(first) +
                                    " is not clean: the command between uses ended with exit code "
                                    "3; it is ended"),
              "");
}

TEST_F(Worker, HoldsASlotUntilItsHolderGivesItBack) {
    const auto tool = start({"web", "--lines", "hold"},
                            "while read -r line; do case $line in *assign*) echo port 80;; "
                            "*release*) echo \"$line\" >&2; echo clean;; esac; done");
    const Attached client(dibsd_.socket(), "web");
    for (int round = 1; round <= 2; ++round) {
        const dibs_completion end = client.claim();
        ASSERT_EQ(end.outcome, DIBS_GRANTED);
        const void* answer = nullptr;
        size_t size = 0;
        ASSERT_EQ(dibs_lease_answer(client, &end.lease, 0, &answer, &size), DIBS_OK);
        EXPECT_EQ(std::string(static_cast<const char*>(answer), size), "port 80");
        EXPECT_EQ(dibs_release(client, &end.lease, DIBS_FOREVER), DIBS_OK);
        const std::string number = std::to_string(round);
        EXPECT_EQ(tool->error_line_with("release"),
                  R"({"kind":"release","pool":"web","slot":0,"round":)" + number + R"(,"claim":)" +
                      number + "}");
    }
}

// Where a release is enough for a slot to be idle, the next claim may come while the process is
// still at work: it is refused, to be asked again, and is first as soon as the process has ended
// its use.
void serve_next_behind_a_use(Worker& workers,
                             const std::string& lines,
                             const std::string& fifo,
                             const std::string& script) {
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const auto tool = workers.start({"eager", "--lines", lines, "--grace", "1h"}, script);
    const Attached client(workers.dibsd_.socket(), "eager");
    const dibs_completion first = client.claim();
    ASSERT_EQ(first.outcome, DIBS_GRANTED);
    EXPECT_EQ(dibs_release(client, &first.lease, DIBS_FOREVER), DIBS_OK);
    const dibs_claim_options asked = Attached::asking(DIBS_FOREVER);
    client.submit(&asked);
    client.await([](const dibs_counters& now) {
        return now.queued == 1 && now.confirming == 0 && now.reserved == 1;
    });
    std::ofstream(fifo) << "late\n";
    dibs_completion next = {};
    while (next.kind != DIBS_CLAIM_ENDED)
        ASSERT_EQ(dibs_reap(client, &next, 1, 30 * DIBS_SECOND), 1) << "it was not asked again";
    EXPECT_EQ(next.outcome, DIBS_GRANTED);
}

TEST_F(Worker, IsAskedAgainWhereItStillAnswers) {
    const std::string fifo = folder_.path() + "/fifo";
    serve_next_behind_a_use(
        *this, "answer", fifo, "while read -r line; do read x < " + fifo + "; echo \"$x\"; done");
}

TEST_F(Worker, IsAskedAgainWhereItStillCleans) {
    const std::string fifo = folder_.path() + "/fifo";
    serve_next_behind_a_use(*this,
                            "hold",
                            fifo,
                            "while read -r line; do case $line in *assign*) echo port 80;; "
                            "*release*) read x < " +
                                fifo + "; echo clean;; esac; done");
}

TEST_F(Worker, EndsAProcessThatGoesOnAfterItsHolder) {
    const auto tool = start({"web", "--grace", "50ms", "--backoff", "0ns"});
    const Attached client(dibsd_.socket(), "web");
    const pid_t first = pid_of(client);
    dibs_claim_options asked = Attached::asking(DIBS_FOREVER);
    asked.body = "stay";
    asked.body_size = 4;
    const dibs_completion end = client.claim(asked);
    EXPECT_EQ(dibs_release(client, &end.lease, DIBS_FOREVER), DIBS_OK);
    EXPECT_NE(pid_of(client), first);
    EXPECT_NE(tool->error_line_with("did not end what its holder has given back within 50ms"), "");
}

TEST_F(Worker, EndsAUseThatTakesTooLong) {
    const auto tool = start({"web", "--use-max", "50ms"});
    const Attached client(dibsd_.socket(), "web");
    EXPECT_EQ(call(client, "stay"), "worker-lost");
    EXPECT_NE(tool->error_line_with("its use took longer than 50ms; it is ended"), "");
}

TEST_F(Worker, WithdrawsIdleSlotsWhenItIsToldToStop) {
    const auto tool = start({"web:2"});
    const Attached client(dibsd_.socket(), "web");
    client.await([](const dibs_counters& now) { return now.idle == 2; });
    tool->signal(SIGTERM);
    EXPECT_EQ(tool->wait(), 0);
    client.await([](const dibs_counters& now) { return now.slots == 0; });
}

TEST_F(Worker, FinishesTheUseInHandWhenItIsToldToStop) {
    // Here already: the slot may be granted before its process has begun with its script.
    const std::string fifo = folder_.path() + "/fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const auto tool =
        start({"web"}, "while read -r line; do read x < " + fifo + "; echo \"$x\"; done");
    const Attached client(dibsd_.socket(), "web");
    const dibs_completion end = client.claim();
    ASSERT_EQ(end.outcome, DIBS_GRANTED);
    tool->signal(SIGTERM);
    Tool release(dibsd_.socket(), {"exec", "gpu", "--", "sh", "-c", "echo late > " + fifo});
    EXPECT_EQ(answer_of(client, end.lease), "late");
    EXPECT_EQ(tool->wait(), 0);
}

TEST_F(Worker, EndsUsesWhenItIsToldToStopTwice) {
    const auto tool = start({"web"});
    const Attached client(dibsd_.socket(), "web");
    dibs_claim_options asked = Attached::asking(DIBS_FOREVER);
    asked.body = "stay";
    asked.body_size = 4;
    const dibs_completion end = client.claim(asked);
    tool->signal(SIGTERM);
    tool->signal(SIGINT);
    EXPECT_EQ(tool->wait(), 0);
    EXPECT_EQ(answer_of(client, end.lease), "worker-lost");
}

TEST_F(Worker, KillsWhoDoesNotListenToTerm) {
    const auto tool =
        start({"web", "--grace", "50ms"}, "trap '' TERM; while :; do sleep 0.01; done");
    const Attached client(dibsd_.socket(), "web");
    client.await([](const dibs_counters& now) { return now.idle == 1; });
    tool->signal(SIGTERM);
    EXPECT_EQ(tool->wait(), 0);
}

TEST_F(Worker, SaysThatAnotherHasKilledWhoWasOnlyToldToEnd) {
    const auto tool = start({"web", "--name", "w", "--grace", "1h", "--ready-line", "ready"},
                            "trap '' TERM; exec <&-; echo ready $$; sleep 1000 & wait");
    const Attached client(dibsd_.socket(), "web");
    EXPECT_EQ(call(client, "hear this"), "worker-lost");
    const std::string deaf = tool->error_line_with("closed its standard input");
    const std::string number = deaf.substr(deaf.find("process ") + 8);
    kill(std::stoi(number), SIGKILL);
    EXPECT_NE(tool->error_line_with(" was killed by signal 9 after "), "");
}

TEST_F(Worker, LeavesNothingWhenItIsKilled) {
    const auto tool = start({"web:2"});
    const Attached client(dibsd_.socket(), "web");
    const pid_t process = pid_of(client);
    tool->signal(SIGKILL);
    await_end_of(process);
    client.await([](const dibs_counters& now) { return now.slots == 0; });
}

TEST_F(Worker, EndsTheLeaseOfAHolderWhenItIsKilled) {
    const auto tool = start({"web"});
    const Attached client(dibsd_.socket(), "web");
    dibs_claim_options asked = Attached::asking(DIBS_FOREVER);
    asked.body = "stay";
    asked.body_size = 4;
    const dibs_completion end = client.claim(asked);
    tool->signal(SIGKILL);
    EXPECT_EQ(answer_of(client, end.lease), "worker-lost");
}

struct Misbehaviour {
    Words words;
    const char* script;
    const char* said;
};

TEST_F(Worker, SaysWhatAProcessDoesWrongAndGivesUpIfAsked) {
    const Misbehaviour misbehaviours[] = {
        {{}, "exit 1", " ended with exit code 1 after "},
        {{"--ready-line", "x"}, "exit 1", ", before it was ready"},
        {{"--ready-line", "x", "--ready-timeout", "50ms"},
         "echo y; exec sleep 1000",
         " was not ready within 50ms (it wrote no line with \"x\"); it is ended"},
        {{"--notify", "--ready-timeout", "50ms"},
         "exec sleep 1000",
         " was not ready within 50ms (it sent no READY=1 to $NOTIFY_SOCKET); it is ended"},
        {{}, "while :; do echo garbage; done", " floods its output; it is ended"},
        {{"--line-max", "1000"},
         "head -c 100000 /dev/zero; exec sleep 1000",
         " wrote a line longer than 1000 bytes; it is ended"},
        {{"--ready-line", "x", "--line-max", "1000"},
         "head -c 100000 /dev/zero; exec sleep 1000",
         " wrote a line longer than 1000 bytes; it is ended"},
        {{},
         "exec sleep 1000 >&-",
         " closed its standard output, so that it cannot answer; it is ended"},
    };
    for (const Misbehaviour& one : misbehaviours) {
        SCOPED_TRACE(one.said);
        const auto tool =
            start(Words{"web", "--tries-max", "2", "--backoff", "1ms"} + one.words, one.script);
        EXPECT_EQ(tool->wait(), 1);
        const std::string said = tool->error_rest();
        EXPECT_NE(said.find(one.said), std::string::npos) << said;
        EXPECT_NE(said.find("starting again in 1ms"), std::string::npos) << said;
        EXPECT_NE(said.find("every process fails: giving up"), std::string::npos) << said;
    }
}

TEST_F(Worker, WaitsTwiceAsLongAfterEachFailure) {
    const auto tool =
        start({"web:1", "--tries-max", "6", "--backoff", "1ms", "--backoff-max", "5ms"}, "exit 3");
    EXPECT_EQ(tool->wait(), 1);
    const std::string said = tool->error_rest();
    const std::string before = "starting again in ";
    Words waits;
    for (size_t at = said.find(before); at != std::string::npos; at = said.find(before, at)) {
        at += before.size();
        waits.push_back(said.substr(at, said.find('\n', at) - at));
    }
    EXPECT_EQ(waits, (Words{"1ms", "2ms", "4ms", "5ms", "5ms", "5ms"})) << said;
}

TEST_F(Worker, ShowsNothingOfALineThatATerminalWouldObey) {
    const auto tool = start({"web", "--name", "w"},
                            "printf '\\033[31m\\177 \\302\\2331m \\303\\244\\n'; cat > /dev/null");
    EXPECT_EQ(tool->error_line_with("nobody asked for"),
              "dibs worker: w-0: wrote a line that nobody asked for: \"?[31m? ?1m \xc3\xa4\"");
}

TEST_F(Worker, DropsALineThatNobodyAskedFor) {
    const auto tool = start({"web", "--name", "w"});
    const Attached client(dibsd_.socket(), "web");
    EXPECT_EQ(call(client, "twice"), "first");
    EXPECT_NE(tool->error_line_with("w-0: wrote a line that nobody asked for: \""), "");
    EXPECT_NE(call(client, "again").find("again"), std::string::npos);
}

TEST_F(Worker, SaysThatAnAnswerIsTooLong) {
    const auto tool = start({"mute"});
    EXPECT_EQ(tool->error_line(),
              "dibs worker: pool \"mute\" has answer_max = 0: its holders get no answers; set "
              "answer_max in dibsd's configuration, or say --lines none");
    const Attached client(dibsd_.socket(), "mute");
    EXPECT_EQ(call(client, "x"), "done");
    const auto other = start({"web", "--name", "w", "--backoff", "1ms"});
    const Attached front(dibsd_.socket(), "web");
    EXPECT_EQ(call(front, "long"), "worker-lost");
    EXPECT_NE(other->error_line_with("answered with 5000 bytes, and its pool takes at most 4096 "
                                     "(answer_max); it is ended"),
              "");
}

struct Mistake {
    Words words;
    int exit_code;
    std::string said;  // all of it, behind the command's name
};

TEST_F(Worker, SaysWhatIsWrong) {
    const std::string see_help = "\nSee dibs worker --help.";
    const Mistake mistakes[] = {
        {{"wep", "--", "true"},
         4,
         "there is no pool \"wep\"; did you mean \"web\"? There are: eager, gpu, mute, web"},
        {{"gpu", "--", "true"},
         2,
         "pool \"gpu\" is counted: its slots have no workers; dibs exec runs a command with one of "
         "them"},
        {{"web", "--", "no-such-command"},
         127,
         "there is no command \"no-such-command\" in the folders of PATH"},
        {{"web", "--", "/"}, 126, "cannot execute /: it is no executable file for you"},
        {{"web:0", "--", "true"}, 2, "\"web:0\": behind the colon stands a number from 1 to 1000"},
        {{"web", "true"},
         2,
         "write -- before the command, as in: dibs worker POOL -- true" + see_help},
        {{"web", "--lines", "two", "--", "true"}, 2, "--lines two: it is answer, hold or none"},
        {{"web", "--attribute", "x", "--", "true"}, 2, "--attribute x: write KEY=VALUE"},
        {{"web", "--notify", "--ready-line", "x", "--", "true"},
         2,
         "--notify and --ready-line are two ways to be ready: choose one"},
        {{"web", "--line-max", "0", "--", "true"},
         2,
         "--line-max: \"0\" is not a number from 1 to 1073741824" + see_help},
        {{"web", "--grace", "1", "--", "true"},
         2,
         "\"1\" is not a duration: write a number with ns, us, ms, s, min or h, such as \"250ms\"" +
             see_help},
        {{"web", "--name", std::string(59, 'x'), "--", "true"},
         2,
         "--name: at most 58 bytes; the process's number stands behind it"},
        {{"web", "--socket", "/no/such.sock", "--", "true"},
         3,
         "no broker answers at /no/such.sock (no broker listens there): start dibsd, or "
         "name its socket with --socket or DIBS_SOCKET"},
    };
    for (const Mistake& mistake : mistakes) {
        SCOPED_TRACE(testing::PrintToString(mistake.words));
        Tool tool(dibsd_.socket(), Words{"worker"} + mistake.words);
        EXPECT_EQ(tool.wait(), mistake.exit_code);
        EXPECT_EQ(tool.error_rest(), "dibs worker: " + mistake.said + "\n");
    }
}

TEST_F(Worker, NeedsNoStandardOutput) {
    Tool tool({"worker", "web", "--", "sh", "-c", kServe}, {dibsd_.socket(), {}, "", true});
    const Attached client(dibsd_.socket(), "web");
    EXPECT_NE(call(client, "heard").find("heard"), std::string::npos);
}

}  // namespace
}  // namespace dibs::test
