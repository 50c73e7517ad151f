// tests/process/exec_test.cpp -- `dibs exec` as a user meets it: environment, exit codes, signals,
// and what it says when something is wrong.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/tool.hpp"

namespace dibs::test {
namespace {

constexpr const char* kPools =
    "[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = 2\n"
    "attributes = [{ device = \"4\" }, { device = \"6\", \"bus id\" = \"x\" }]\n"
    "environment = { CUDA_VISIBLE_DEVICES = \"device\" }\n"
    "[[pool]]\nname = \"one\"\nkind = \"counted\"\nslots = 1\n"
    "[[pool]]\nname = \"patient\"\nkind = \"counted\"\nslots = 1\ngrace = \"1h\"\n";

// A command that says its process id and stays until it is ended.
const Words kStays = {"--", "sh", "-c", "echo $$; exec sleep 1000"};

class Exec : public testing::Test {
  protected:
    // Starts `dibs exec` with these words and says how it ended.
    int run(const Words& words) {
        Tool tool(dibsd_.socket(), Words{"exec"} + words);
        out_ = tool.rest();
        said_ = tool.error_rest();
        return tool.wait();
    }

    Folder folder_;
    Dibsd dibsd_{folder_, kPools};
    std::string out_;
    std::string said_;
};

TEST_F(Exec, GivesTheSlotsToTheCommandAsEnvironment) {
    EXPECT_EQ(run({"gpu:2",
                   "--",
                   "sh",
                   "-c",
                   "echo $DIBS_POOL $DIBS_SLOT $DIBS_FENCE $DIBS_ATTR_DEVICE $DIBS_ATTR_BUS_ID "
                   "$CUDA_VISIBLE_DEVICES; test -n \"$DIBS_LEASE\""}),
              0);
    EXPECT_EQ(out_, "gpu 0,1 1 4,6 x 4,6\n");
    EXPECT_EQ(said_, "");
    // Also where the wrapper holds the lease; and what is inherited is there.
    EXPECT_EQ(run({"gpu", "-k", "1h", "--", "sh", "-c", "echo $DIBS_FENCE; test -n \"$PATH\""}), 0);
    EXPECT_EQ(out_, "2\n");
}

TEST_F(Exec, SetsTheVariablesThatTheUserNames) {
    EXPECT_EQ(run({"gpu", "--env", "A=device", "-e", "B=device", "--", "sh", "-c", "echo $A $B"}),
              0);
    EXPECT_EQ(out_, "4 4\n");
}

TEST_F(Exec, LeavesNothingOfAnOuterLeaseInTheEnvironment) {
    Tool tool({"exec", "one", "--", "sh", "-c", "echo \"$DIBS_ATTR_DEVICE\" $DIBS_POOL"},
              {dibsd_.socket(), {"DIBS_ATTR_DEVICE=old", "DIBS_POOL=old"}, "", false});
    EXPECT_EQ(tool.line(), " one");
}

TEST_F(Exec, EndsAsItsCommandEnds) {
    EXPECT_EQ(run({"one", "--", "true"}), 0);
    EXPECT_EQ(run({"one", "--", "sh", "-c", "exit 7"}), 7);
    EXPECT_EQ(run({"one", "--", "sh", "-c", "kill -KILL $$"}), 128 + SIGKILL);
    EXPECT_EQ(run({"one", "--", "sh", "-c", "kill -TERM $$"}), 128 + SIGTERM);
}

TEST_F(Exec, DoesNotLookAtWhatStandsBehindTheDashes) {
    EXPECT_EQ(run({"one", "--", "echo", "--", "-n", "--help"}), 0);
    EXPECT_EQ(out_, "-- -n --help\n");
}

TEST_F(Exec, SaysWhoHoldsTheSlotItDidNotGet) {
    Tool holder(dibsd_.socket(), Words{"exec", "one"} + kStays);
    const std::string pid = holder.line();
    // A broker that is late lets the library end the claim, which knows no holder.
    do {
        EXPECT_EQ(run({"one", "--now", "--", "true"}), 75);
    } while (said_.find("did not answer at once") != std::string::npos);
    EXPECT_NE(said_.find("did not get a slot of pool \"one\": no slot is idle"), std::string::npos);
    EXPECT_NE(said_.find("process " + pid + " ("), std::string::npos) << said_;
    do {
        EXPECT_EQ(run({"one", "-t", "10ms", "--", "true"}), 124);
    } while (said_.find("process") == std::string::npos);
    EXPECT_NE(said_.find("the time of 10ms has passed; process " + pid), std::string::npos)
        << said_;
    EXPECT_EQ(run({"one", "-n", "-E", "9", "--", "true"}), 9);
    EXPECT_EQ(run({"one", "-t", "10ms", "--conflict-exit", "0", "--", "true"}), 0);
    holder.signal(SIGTERM);  // a command outlives its wrapper
    EXPECT_EQ(holder.wait(), 128 + SIGTERM);
}

TEST_F(Exec, WaitsForItsSlot) {
    Tool holder(dibsd_.socket(), {"exec", "one", "--", "sh", "-c", "echo up; read x; exit 3"});
    EXPECT_EQ(holder.line(), "up");
    Tool waiting(dibsd_.socket(), {"exec", "one", "--", "echo", "mine"});
    const Attached client(dibsd_.socket(), "one");
    client.await([](const dibs_counters& now) { return now.queued == 1; });
    holder.close_input();
    EXPECT_EQ(waiting.line(), "mine");
    EXPECT_EQ(waiting.wait(), 0);
    EXPECT_EQ(holder.wait(), 3);
}

TEST_F(Exec, GivesUpItsPlaceWhenItIsInterrupted) {
    Tool holder(dibsd_.socket(), Words{"exec", "one"} + kStays);
    EXPECT_NE(holder.line(), "");
    Tool waiting(dibsd_.socket(), {"exec", "one", "--", "echo", "mine"});
    const Attached client(dibsd_.socket(), "one");
    client.await([](const dibs_counters& now) { return now.queued == 1; });
    waiting.signal(SIGINT);
    EXPECT_EQ(waiting.wait(), 128 + SIGINT);
    client.await([](const dibs_counters& now) { return now.queued == 0; });
    EXPECT_EQ(waiting.rest(), "");
    holder.signal(SIGTERM);  // a command outlives its wrapper
    EXPECT_EQ(holder.wait(), 128 + SIGTERM);
}

TEST_F(Exec, PassesSignalsOnToTheGroupOfItsCommand) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
        Tool tool(
            dibsd_.socket(),
            {"exec",
             "one",
             "--",
             "sh",
             "-c",
             "sleep 1000 & trap 'echo got; kill $!; exit 5' TERM INT HUP USR1; echo $$; wait"});
        const pid_t pid = std::stoi(tool.line());
        EXPECT_EQ(getpgid(pid), pid);
        EXPECT_NE(pid, tool.pid());
        tool.signal(signal);
        EXPECT_EQ(tool.line(), "got");
        EXPECT_EQ(tool.wait(), 5);
    }
}

TEST_F(Exec, KeepsALeaseOfAnIntervalAlive) {
    Tool tool(dibsd_.socket(), Words{"exec", "patient", "-k", "50ms"} + kStays);
    EXPECT_NE(tool.line(), "");
    const Attached client(dibsd_.socket(), "patient");
    // Longer than eight intervals; who is late is in grace, and lives again.
    EXPECT_EQ(client.claim(Attached::asking(400 * DIBS_MILLISECOND)).outcome, DIBS_EXPIRED);
    tool.signal(SIGTERM);
    EXPECT_EQ(tool.wait(), 128 + SIGTERM);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
}

TEST_F(Exec, EndsACommandWhoseLeaseIsLost) {
    Tool tool(dibsd_.socket(), Words{"exec", "one", "--keepalive", "2s"} + kStays);
    const pid_t command = std::stoi(tool.line());
    tool.signal(SIGSTOP);
    const Attached client(dibsd_.socket(), "one");
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);  // the stopped one's lease has expired
    tool.signal(SIGCONT);
    EXPECT_EQ(tool.wait(), 125);
    EXPECT_EQ(
        tool.error_line(),
        "dibs exec: the lease of pool \"one\" is lost (the lease was not kept alive in time): "
        "ending the command");
    await_end_of(command);
}

TEST_F(Exec, SaysWhatItWasDoing) {
    EXPECT_EQ(run({"gpu:2", "-v", "--", "true"}), 0);
    EXPECT_NE(said_.find("of pool \"gpu\", fence 1, 2 slots"), std::string::npos) << said_;
}

TEST_F(Exec, MakesACountedPoolOnTheSpot) {
    for (int i = 0; i < 2; ++i) {  // the second time it is there
        EXPECT_EQ(run({"job:3", "--create", "job=3", "--", "sh", "-c", "echo $DIBS_SLOT"}), 0);
        EXPECT_EQ(out_, "0,1,2\n") << said_;
    }
    EXPECT_EQ(run({"big:256", "-c", "big=1000", "--", "true"}), 0) << said_;
    EXPECT_EQ(run({"job", "--create", "job=4", "--", "true"}), 6);
    EXPECT_EQ(said_, "dibs exec: --create job=4: it has 3 slots already\n");
    EXPECT_EQ(run({"x", "--create", "x=900000", "--", "true"}), 6);
    EXPECT_NE(said_.find("900000 more slots do not fit the slot table"), std::string::npos)
        << said_;
    EXPECT_EQ(run({"x", "--create", "x=0", "--", "true"}), 2);
    EXPECT_EQ(said_, "dibs exec: --create x=0: \"0\" is not a number from 1 to 1048576\n");
    EXPECT_EQ(run({"x", "--create", "x=many", "--", "true"}), 2);
    EXPECT_EQ(run({"x", "--create", "x", "--", "true"}), 2);
}

struct Mistake {
    Words words;
    int exit_code;
    std::string said;  // all of it, behind the command's name
};

TEST_F(Exec, SaysWhatIsWrong) {
    const std::string plain = folder_.write("plain", "no program\n");
    const std::string empty = folder_.write("empty.sh", "");
    const std::string see_help = "\nSee dibs exec --help.";
    const Mistake mistakes[] = {
        {{"gpuu", "--", "true"},
         4,
         "there is no pool \"gpuu\"; did you mean \"gpu\"? There are: gpu, one, patient"},
        {{"browsers", "--", "true"},
         4,
         "there is no pool \"browsers\"; there are: gpu, one, patient"},
        {{"one", "--", "no-such-command"},
         127,
         "there is no command \"no-such-command\" in the folders of PATH"},
        {{"one", "--", "/no/such/file"}, 127, "there is no command /no/such/file"},
        {{"one", "--", plain},
         126,
         "cannot execute " + plain + ": it is no executable file for you"},
        {{"one", "--", folder_.path()},
         126,
         "cannot execute " + folder_.path() + ": it is no executable file for you"},
        {{"gpu:3", "--", "true"},
         6,
         "did not get 3 slots of pool \"gpu\": too many at once; the pool has 2 and gives one "
         "claim "
         "at most 256"},
        {{"gpu:0", "--", "true"}, 2, "\"gpu:0\": behind the colon stands a number from 1 to 256"},
        {{"gpu:x", "--", "true"}, 2, "\"gpu:x\": behind the colon stands a number from 1 to 256"},
        {{":1", "--", "true"},
         2,
         "\":1\": a pool's name has 1 to 63 letters, digits, \".\", \"_\" and \"-\", a letter "
         "first"},
        {{"one", "true"},
         2,
         "write -- before the command, as in: dibs exec POOL -- true" + see_help},
        {{"one", "--"}, 2, "there is no command behind --" + see_help},
        {{"one"}, 2, "there is no command behind --" + see_help},
        {{"--", "true"},
         2,
         "POOL is required: the pool's name, or a pool set's; POOL:N for N slots at once; several "
         "pools for slots of each, all or none" +
             see_help},
        {{"one", "-t", "5", "--", "true"},
         2,
         "\"5\" is not a duration: write a number with ns, us, ms, s, min or h, such as \"250ms\"" +
             see_help},
        {{"one", "-n", "-t", "5s", "--", "true"},
         2,
         "--now does not wait, so it goes without --timeout"},
        {{"one", "-E", "256", "--", "true"},
         2,
         "--conflict-exit: \"256\" is not a number from 0 to 255" + see_help},
        {{"one", "-e", "A", "--", "true"}, 2, "--env A: write VARIABLE=ATTRIBUTE"},
        {{"gpu", "-e", "A=bus", "--", "true"},
         125,
         "--env A=bus: slot 0 of pool \"gpu\" has no attribute \"bus\"; it has: device, "
         "env.CUDA_VISIBLE_DEVICES"},
        {{"one", "--socket", "/no/such.sock", "--", "true"},
         3,
         "no broker answers at /no/such.sock (No such file or directory): start dibsd, or "
         "name its socket with --socket or DIBS_SOCKET"},
    };
    for (const Mistake& mistake : mistakes) {
        SCOPED_TRACE(testing::PrintToString(mistake.words));
        EXPECT_EQ(run(mistake.words), mistake.exit_code);
        EXPECT_EQ(said_, "dibs exec: " + mistake.said + "\n");
        EXPECT_EQ(out_, "");
    }
}

TEST_F(Exec, NeedsNoStandardOutput) {
    Tool tool({"exec", "one", "--", "sh", "-c", "exit 4"}, {dibsd_.socket(), {}, "", true});
    EXPECT_EQ(tool.wait(), 4);
}

}  // namespace
}  // namespace dibs::test
