// tests/demo/private_broker_test.cpp -- temporary folders, child processes, and the configuration
// that the demo's broker is given.
// SPDX-License-Identifier: Apache-2.0
#include "demo/private_broker.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace dibs::ctl::demo {
namespace {

// A shell script in the place of the broker, for as long as this lives.
class FakeBroker {
  public:
    explicit FakeBroker(const std::string& script) {
        const std::string file = folder_.path() + "/dibsd";
        std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
        setenv("DIBS_DIBSD", file.c_str(), 1);
    }
    ~FakeBroker() { unsetenv("DIBS_DIBSD"); }
    FakeBroker(const FakeBroker&) = delete;
    FakeBroker& operator=(const FakeBroker&) = delete;
    [[nodiscard]] const std::string& folder() const { return folder_.path(); }

  private:
    TemporaryFolder folder_;
};

std::string failure_of(const std::string& script) {
    const FakeBroker fake(script);
    try {
        const PrivateBroker broker(fake.folder(), {});
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "none";
}

TEST(TemporaryFolder, GoesAwayWithWhatIsInIt) {
    std::string path;
    {
        const TemporaryFolder folder;
        path = folder.path();
        std::filesystem::create_directories(path + "/a/b");
        std::ofstream(path + "/a/b/c") << "x";
        EXPECT_TRUE(std::filesystem::exists(path));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(BrokerConfiguration, DescribesACountedPool) {
    BrokerSizes sizes;
    sizes.shape = PoolShape::kCounted;
    sizes.slots = 240;
    sizes.sessions = 20;
    sizes.claims = 3145;
    EXPECT_EQ(broker_configuration(sizes, "/run/x.sock"),
              "socket = \"/run/x.sock\"\n"
              "log_level = \"info\"\n"
              "[limits]\n"
              "pools = 1\n"
              "sessions = 20\n"
              "slots = 241\n"
              "claims = 3145\n"
              "leases = 3145\n"
              "arena = \"1765888B\"\n"
              "[[pool]]\n"
              "name = \"demo\"\n"
              "backlog_max = 3145\n"
              "kind = \"counted\"\n"
              "slots = 240\n");
}

TEST(PrivateBroker, WaitsForTheReadyLineAndKeepsTheLastWords) {
    const FakeBroker fake("echo starting; echo \"dibsd: ready on $3\"; exec tail -f /dev/null");
    PrivateBroker broker(fake.folder(), {});
    EXPECT_EQ(broker.output().last_words(),
              "  | starting\n  | dibsd: ready on " + fake.folder() + "/dibsd.toml\n");
    EXPECT_FALSE(broker.process().wait(0));
    broker.process().signal(SIGTERM);
    const auto status = broker.process().wait(10'000);
    ASSERT_TRUE(status);
    EXPECT_EQ(shown_status(*status), "killed by signal 15");
}

TEST(PrivateBroker, SaysWhyTheBrokerDidNotStart) {
    EXPECT_EQ(failure_of("echo no such pool is ready >&2; exit 3"),
              "the broker ended before it was ready (exit code 3); it said:\n  | no such pool is "
              "ready\n");
    setenv("DIBS_DIBSD", "/nowhere/dibsd", 1);
    const TemporaryFolder folder;
    EXPECT_THROW(PrivateBroker(folder.path(), {}), std::runtime_error);
    unsetenv("DIBS_DIBSD");
}

TEST(Child, IsKilledWhenItIsForgotten) {
    pid_t pid = 0;
    {
        ChildConfig config;
        config.command = {"/usr/bin/tail", "-f", "/dev/null"};
        config.output = -1;
        std::array<int, 2> pipe{};
        ASSERT_EQ(::pipe(pipe.data()), 0);
        config.output = pipe[1];
        const Child child("tail", config);
        pid = child.pid();
        EXPECT_TRUE(child.running());
        close(pipe[0]);
        close(pipe[1]);
    }
    EXPECT_EQ(kill(pid, 0), -1);
    EXPECT_EQ(children_left(), 0U);
}

TEST(Child, ReportsAProgramThatIsNotThere) {
    ChildConfig config;
    config.command = {"/nowhere/program"};
    Child child("nothing", config);
    const auto status = child.wait(10'000);
    ASSERT_TRUE(status);
    EXPECT_EQ(shown_status(*status), "exit code 127 (it could not be started)");
}

TEST(Child, SeesWhatIsAddedToTheEnvironment) {
    ChildConfig config;
    config.command = {"/bin/sh", "-c", "test \"$DIBS_SOCKET\" = here"};
    config.environment = {"DIBS_SOCKET=here"};
    Child child("sh", config);
    const auto status = child.wait(10'000);
    ASSERT_TRUE(status);
    EXPECT_EQ(shown_status(*status), "exit code 0");
}

}  // namespace
}  // namespace dibs::ctl::demo
