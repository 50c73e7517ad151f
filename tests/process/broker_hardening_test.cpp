// tests/process/broker_hardening_test.cpp -- what a hardened process can no longer do.
//
// Each case hardens a child of this test and lets it try. What this kernel does not have is
// skipped with the reason that the broker itself would give.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "broker/sandbox/hardening.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

bool sanitized() {
    return std::string(DIBS_SANITIZERS) != "none";
}

#define DIBS_NEEDS_HARDENING() \
    if (sanitized()) GTEST_SKIP() << "a sanitizer's runtime needs more than the broker"

// The exit code of a child that tries after it was hardened; 128 + the signal that ended it.
int tried(const HardeningPlan& plan, const std::function<int()>& body) {
    const pid_t pid = fork();
    if (pid == 0) {
        (void)harden(plan);
        _exit(body());
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Why it is missing; empty if it is there.
std::string missing(const std::string& what, HardeningPlan plan) {
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    (void)tried(plan, [&] {
        plan.mode = HardeningMode::kOn;
        for (const std::string& line : harden(plan).missing) {
            if (line.rfind(what, 0) == 0) (void)!write(ends[1], line.data(), line.size());
        }
        return 0;
    });
    close(ends[1]);
    char line[256];
    const ssize_t size = read(ends[0], line, sizeof(line));
    close(ends[0]);
    return {line, size > 0 ? static_cast<size_t>(size) : 0};
}

std::string status_of(pid_t pid, const std::string& key) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::string line;
    while (std::getline(status, line)) {
        if (line.rfind(key + ":\t", 0) == 0) return line.substr(key.size() + 2);
    }
    return "";
}

TEST(Hardening, IsInForceOnceTheBrokerIsReady) {
    DIBS_NEEDS_HARDENING();
    const Folder folder;
    const Dibsd hardened(folder, "");
    ASSERT_TRUE(hardened.ready());
    EXPECT_EQ(status_of(hardened.pid(), "NoNewPrivs"), "1");
    EXPECT_EQ(status_of(hardened.pid(), "Seccomp"), "2");
    const Folder milder;
    const Dibsd on(milder, "hardening = \"on\"\n");
    EXPECT_EQ(status_of(on.pid(), "Seccomp"), "2");
    const Folder other;
    const Dibsd open(other, "hardening = \"off\"\n");
    for (const char* what : {"NoNewPrivs", "Seccomp"})  // as whoever started it: a container's
        EXPECT_EQ(status_of(open.pid(), what), status_of(getpid(), what));
}

TEST(Hardening, SaysWhatIsInForceAndWhatIsNot) {
    const Hardening hardening{{"no new privileges", "not dumpable"}, {"Landlock (none)"}};
    EXPECT_EQ(hardening.text(), "no new privileges, not dumpable; missing: Landlock (none)");
    EXPECT_EQ(harden({.mode = HardeningMode::kOff}).text(),
              "none; missing: all of it (hardening = \"off\")");
}

TEST(Hardening, RefusesASystemCallAsAKernelWithoutItOrKillsWhereItIsStrict) {
    DIBS_NEEDS_HARDENING();
    const auto call = [] { return unshare(CLONE_NEWNS) == 0 ? 0 : errno; };
    EXPECT_EQ(tried({.mode = HardeningMode::kOn}, call), ENOSYS);
    EXPECT_EQ(tried({.mode = HardeningMode::kStrict}, call), 128 + SIGSYS);
}

TEST(Hardening, LeavesSocketsOfTheUnixFamilyOnly) {
    DIBS_NEEDS_HARDENING();
    const auto errno_of = [](int family) {
        return tried({}, [=] { return socket(family, SOCK_STREAM, 0) >= 0 ? 0 : errno; });
    };
    EXPECT_EQ(errno_of(AF_UNIX), 0);
    EXPECT_EQ(errno_of(AF_INET), ENOSYS);
    EXPECT_EQ(errno_of(AF_NETLINK), ENOSYS);
}

TEST(Hardening, LeavesThreads) {
    DIBS_NEEDS_HARDENING();
    EXPECT_EQ(tried({.mode = HardeningMode::kStrict},
                    [] {
                        int seen = 1;
                        std::thread([&] { seen = 0; }).join();
                        return seen;
                    }),
              0);
}

TEST(Hardening, ReachesNoFilesButThoseOfThePlan) {
    DIBS_NEEDS_HARDENING();
    const Folder readable;
    const Folder writable;
    const Folder neither;
    const HardeningPlan plan{.readable = {readable.path()}, .writable = {writable.path()}};
    if (const std::string why = missing("Landlock", plan); !why.empty()) GTEST_SKIP() << why;
    const auto errno_of = [&](const std::string& path, int flags) {
        return tried(plan,
                     [&] { return open(path.c_str(), flags | O_CLOEXEC, 0600) >= 0 ? 0 : errno; });
    };
    for (const Folder* folder : {&readable, &writable, &neither})
        (void)folder->write("file", "text");
    EXPECT_EQ(errno_of(readable.path() + "/file", O_RDONLY), 0);
    EXPECT_EQ(errno_of(readable.path() + "/file", O_WRONLY), EACCES);
    EXPECT_EQ(errno_of(readable.path() + "/new", O_WRONLY | O_CREAT), EACCES);
    EXPECT_EQ(errno_of(writable.path() + "/file", O_RDWR | O_TRUNC), 0);
    EXPECT_EQ(errno_of(writable.path() + "/new", O_WRONLY | O_CREAT), 0);
    EXPECT_EQ(errno_of(neither.path() + "/file", O_RDONLY), EACCES);
}

TEST(Hardening, ReachesAConfigurationThatIsALink) {
    DIBS_NEEDS_HARDENING();
    const Folder folder;
    const Folder elsewhere;
    const std::string real = elsewhere.write("real.toml", "");
    const std::string link = folder.path() + "/dibsd.toml";
    ASSERT_EQ(symlink(real.c_str(), link.c_str()), 0);
    const HardeningPlan plan = hardening_plan(HardeningMode::kOn, link, "/run/x/y", "/run/z");
    EXPECT_EQ(
        tried(plan, [&] { return open(link.c_str(), O_RDONLY | O_CLOEXEC) >= 0 ? 0 : errno; }), 0);
}

TEST(Hardening, ExecutesNoProgramButThoseOfThePlan) {
    DIBS_NEEDS_HARDENING();
    HardeningPlan plan = hardening_plan(HardeningMode::kOn, "", "/run/x", "/run/y");
    if (const std::string why = missing("Landlock", plan); !why.empty()) GTEST_SKIP() << why;
    const auto run = [&] {
        return tried(plan, [] {
            execl("/bin/true", "true", nullptr);
            return errno;
        });
    };
    EXPECT_EQ(run(), EACCES);
    plan.executable.emplace_back("/bin/true");
    EXPECT_EQ(run(), 0);
}

TEST(Hardening, LeavesTheBrokerItsReloadAndItsOrderlyEnd) {
    const Folder folder;
    Dibsd dibsd(folder, "[[pool]]\nname = \"a\"\nkind = \"counted\"\nslots = 1\n");
    const RawClient client(dibsd.socket());
    EXPECT_EQ(client.board().pools.load(), 1U);
    (void)folder.write("dibsd.toml",
                       "log_level = \"warning\"\nhardening = \"strict\"\n"
                       "[[policy]]\nuser = \"root\"\nleases = 5\n"
                       "[[pool]]\nname = \"a\"\nkind = \"counted\"\nslots = 1\n"
                       "[[pool]]\nname = \"b\"\nkind = \"counted\"\nslots = 1\n");
    dibsd.signal(SIGHUP);
    while (client.board().pools.load() < 2)
        sched_yield();
    dibsd.signal(SIGTERM);
    EXPECT_EQ(dibsd.wait(), 0);
    EXPECT_NE(access(dibsd.socket().c_str(), F_OK), 0);  // its name is gone
}

}  // namespace
}  // namespace dibs::test
