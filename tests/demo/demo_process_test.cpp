// tests/demo/demo_process_test.cpp -- `dibs demo` as a whole: with a broker, workers and mishaps.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "demo/child.hpp"
#include "demo/private_broker.hpp"

namespace dibs::ctl::demo {
namespace {

constexpr int kPatienceMs = 60'000;

// The tool under test, its output, and a folder that stands in for /tmp.
class Demo {
  public:
    explicit Demo(const std::vector<std::string>& arguments) : Demo(arguments, {}) {}
    // An installed tool finds its broker itself.
    Demo(const std::vector<std::string>& arguments, const std::string& installed) {
        std::array<int, 2> pipe{};
        if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
        ChildConfig config;
        config.command = {installed.empty() ? std::getenv("DIBS_TOOL") : installed, "demo"};
        config.command.insert(config.command.end(), arguments.begin(), arguments.end());
        config.environment = {"TMPDIR=" + folder_.path(), "COLUMNS=80"};
        if (!installed.empty()) config.environment.emplace_back("DIBS_DIBSD=");
        config.output = pipe[1];
        child_.emplace("demo", config);
        close(pipe[1]);
        output_ = pipe[0];
    }
    ~Demo() { close(output_); }
    Demo(const Demo&) = delete;
    Demo& operator=(const Demo&) = delete;

    // Reads until `text` has been said; false if the demo ends first, or takes too long.
    bool await(const std::string& text) {
        std::array<char, 4096> buffer{};
        while (said_.find(text) == std::string::npos) {
            pollfd waiting = {output_, POLLIN, 0};
            if (poll(&waiting, 1, kPatienceMs) <= 0) return false;
            const ssize_t size = read(output_, buffer.data(), buffer.size());
            if (size <= 0) return false;
            said_.append(buffer.data(), static_cast<size_t>(size));
        }
        return true;
    }

    // Reads to the end; the exit code, -1 if there is none.
    int end() {
        await(std::string(1, '\0'));
        const auto status = child_->wait(kPatienceMs);
        return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
    }

    // The number behind a text that was said.
    pid_t number_behind(const std::string& text) const {
        return std::atoi(said_.c_str() + said_.find(text) + text.size());
    }

    [[nodiscard]] const std::string& said() const { return said_; }
    [[nodiscard]] size_t longest_line() const {
        size_t longest = 0;
        std::istringstream lines(said_);
        for (std::string line; std::getline(lines, line);)
            longest = std::max(longest, line.size());
        return longest;
    }
    [[nodiscard]] const Child& child() const { return *child_; }
    [[nodiscard]] bool left_nothing() const { return std::filesystem::is_empty(folder_.path()); }

  private:
    TemporaryFolder folder_;
    std::optional<Child> child_;
    int output_ = -1;
    std::string said_;
};

class TraceFile {
  public:
    TraceFile(const std::string& name, const std::string& text)
        : path_(folder_.path() + "/" + name) {
        std::ofstream(path_) << text;
    }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    TemporaryFolder folder_;
    std::string path_;
};

TEST(Demo, PlaysAGeneratedWorkloadWithWorkers) {
    Demo demo({"--claims", "60", "--seconds", "0.5"});
    EXPECT_EQ(demo.end(), 0) << demo.said();
    EXPECT_NE(demo.said().find("ok   every valid row granted: 60 of 60\n"), std::string::npos);
    EXPECT_NE(demo.said().find("\n10 passed, 0 failed, 0 skipped\n"), std::string::npos);
    EXPECT_LE(demo.longest_line(), 80U) << demo.said();
    EXPECT_TRUE(demo.left_nothing());
}

TEST(Demo, FindsTheBrokerBesideTheTool) {
    const TemporaryFolder folder;
    const std::string tool = folder.path() + "/dibs";
    std::filesystem::copy_file(std::getenv("DIBS_TOOL"), tool);
    {
        Demo alone({"--claims", "10", "--seconds", "0.1"}, tool);
        EXPECT_EQ(alone.end(), 2);
        EXPECT_NE(alone.said().find("neither " + folder.path() + "/dibsd nor "), std::string::npos)
            << alone.said();
    }
    std::filesystem::copy_file(std::getenv("DIBS_DIBSD"), folder.path() + "/dibsd");
    Demo demo({"--claims", "10", "--seconds", "0.1"}, tool);
    EXPECT_EQ(demo.end(), 0) << demo.said();
}

TEST(Demo, GrantsSeveralWorkersToOneClaim) {
    Demo demo({"--claims", "40", "--seconds", "0.5", "--units", "5", "--slots", "6"});
    EXPECT_EQ(demo.end(), 0) << demo.said();
}

TEST(Demo, PlaysJobsOnACountedPoolAndNamesTheBrokenOnes) {
    const TraceFile trace("jobs.swf",
                          "; MaxProcs: 16\n"
                          "1 0 0 60 16 -1 -1 16 60 -1 1 3 1 -1 1 -1 -1 -1\n"
                          "2 10 0 -1 8 -1 -1 8 60 -1 1 3 1 -1 1 -1 -1 -1\n"
                          "3 20 0 30 17 -1 -1 17 60 -1 1 4 1 -1 1 -1 -1 -1\n"
                          "4 20 0\n"
                          "5 120 0 0 1 -1 -1 1 60 -1 1 4 1 -1 1 -1 -1 -1\n");
    const TraceFile report("broken.txt", "");
    const TraceFile json("figures.json", "");
    Demo demo({"--trace",
               trace.path(),
               "--seconds",
               "0.2",
               "--report",
               report.path(),
               "--json",
               json.path()});
    EXPECT_EQ(demo.end(), 0) << demo.said();
    EXPECT_NE(demo.said().find("ok   every valid row granted: 2 of 2\n"), std::string::npos);
    std::ifstream in(report.path());
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    EXPECT_EQ(text,
              "line 3: run time is -1 (unknown)\n"
              "line 4: wants 17 units, at most 16 can be had\n"
              "line 5: 3 columns where 18 are needed\n");
    EXPECT_NE(demo.said().find("3 broken rows:\n" + text), std::string::npos);
    EXPECT_GT(std::filesystem::file_size(json.path()), 100U);
}

// More claims at one instant than a session may have outstanding.
TEST(Demo, HoldsBackWhatASessionHasNoPlaceFor) {
    std::string rows = "arrival_s,hold_s\n";
    for (int i = 0; i < 1500; ++i)
        rows += "0,0.0001\n";
    const TraceFile trace("burst.csv", rows);
    Demo demo({"--trace", trace.path(), "--pool", "counted"});
    EXPECT_EQ(demo.end(), 0) << demo.said();
    EXPECT_NE(demo.said().find("; up to "), std::string::npos);
    EXPECT_NE(demo.said().find("ok   every valid row granted: 1500 of 1500\n"), std::string::npos);
}

TEST(Demo, EndsInOrderWhenItIsInterrupted) {
    Demo demo({"--seconds", "50"});
    ASSERT_TRUE(demo.await("sessions that claim\n")) << demo.said();
    const pid_t broker = demo.number_behind("broker process ");
    ASSERT_EQ(kill(broker, 0), 0);
    demo.child().signal(SIGINT);
    EXPECT_EQ(demo.end(), 130) << demo.said();
    EXPECT_EQ(kill(broker, 0), -1);
    EXPECT_TRUE(demo.left_nothing());
}

TEST(Demo, SaysThatTheBrokerDied) {
    Demo demo({"--seconds", "50"});
    ASSERT_TRUE(demo.await("sessions that claim\n")) << demo.said();
    kill(demo.number_behind("broker process "), SIGKILL);
    EXPECT_EQ(demo.end(), 1) << demo.said();
    EXPECT_NE(demo.said().find("the run was ended: the broker ended: killed by signal 9"),
              std::string::npos)
        << demo.said();
    EXPECT_TRUE(demo.left_nothing());
}

TEST(Demo, SaysWhatIsWrongWithItsArguments) {
    Demo demo({"--slots", "many"});
    EXPECT_EQ(demo.end(), 2);
    EXPECT_NE(demo.said().find("--slots \"many\""), std::string::npos);
    Demo missing({"--trace", "/nowhere/a.csv"});
    EXPECT_EQ(missing.end(), 2);
    EXPECT_NE(missing.said().find("cannot read /nowhere/a.csv"), std::string::npos);
}

}  // namespace
}  // namespace dibs::ctl::demo
