// tests/broker/standby_test.cpp -- when the next broker is started ahead, and when not.
// SPDX-License-Identifier: Apache-2.0
#include "broker/standby.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "broker/head_start.hpp"

namespace dibs {
namespace {

constexpr uint64_t kNow = 1'000'000'000'000;
constexpr uint64_t kSecond = 1'000'000'000;

const OwnProgram kNone{"/nonexistent/dibsd", {}};

TEST(StandbyTest, IsDueAMomentAfterABrokerServes) {
    Standby standby;
    EXPECT_EQ(standby.due_ns(), shm::kNever);
    standby.plan(kNow);
    EXPECT_GT(standby.due_ns(), kNow);
    EXPECT_LT(standby.due_ns(), kNow + kSecond);
    standby.cancel();
    EXPECT_EQ(standby.due_ns(), shm::kNever);
}

TEST(StandbyTest, IsTriedAgainEverMoreSeldom) {
    Standby standby;
    standby.plan(kNow);
    uint64_t pause = kSecond;
    for (int attempt = 0; attempt < 10; ++attempt) {
        standby.start(kNone, true, Process(), kNow);
        EXPECT_EQ(standby.due_ns(), kNow + pause) << attempt;
        pause = std::min(2 * pause, 64 * kSecond);
    }
    EXPECT_EQ(standby.pidfd(), -1);
    standby.plan(kNow);  // another broker serves
    standby.start(kNone, true, Process(), kNow);
    EXPECT_EQ(standby.due_ns(), kNow + kSecond);
}

TEST(StandbyTest, IsNotThereToBeTaken) {
    Standby standby;
    standby.plan(kNow);
    EXPECT_FALSE(standby.take(kNone, true));
    EXPECT_EQ(standby.due_ns(), shm::kNever);  // whoever is started instead begins anew
    standby.let_go();
}

// A program that takes any option and waits to be killed.
class Patient {
  public:
    Patient() {
        const int fd = mkstemp(path_.data());
        const std::string text = "#!/bin/sh\nexec sleep 1000\n";
        EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        EXPECT_EQ(fchmod(fd, 0700), 0);
        close(fd);
    }
    ~Patient() { unlink(path_.c_str()); }
    Patient(const Patient&) = delete;
    Patient& operator=(const Patient&) = delete;
    [[nodiscard]] OwnProgram program() const { return {path_, {}}; }

  private:
    std::string path_ = testing::TempDir() + "/dibs-standby-XXXXXX";
};

TEST(StandbyTest, IsReplacedWhenItsBrokerHasGrown) {
    const Patient patient;
    const Process self(Process::own_pidfd());
    Standby standby;
    standby.plan(kNow);
    standby.start(patient.program(), true, self, kNow);
    const pid_t first = pid_of(standby.pidfd()).value_or(0);
    ASSERT_GT(first, 0);
    standby.look(self, kNow + 60 * kSecond);
    EXPECT_EQ(standby.due_ns(), shm::kNever) << "it has not grown";
    const std::vector<char> grown(2 * (own_memory_kib(getpid()) + 4096) * 1024, 'x');
    standby.look(self, kNow + 61 * kSecond);
    EXPECT_EQ(standby.due_ns(), shm::kNever) << "a second later nobody looks";
    standby.look(self, kNow + 120 * kSecond);
    ASSERT_EQ(standby.due_ns(), kNow + 120 * kSecond);
    EXPECT_EQ(standby.pidfd(), -1);
    standby.start(patient.program(), true, self, kNow + 120 * kSecond);
    EXPECT_NE(pid_of(standby.pidfd()).value_or(first), first);
    EXPECT_EQ(grown.back(), 'x');
    standby.let_go();
    standby.settle();
    EXPECT_EQ(waitpid(-1, nullptr, __WALL | WNOHANG), -1) << "a child is left";
}

TEST(StandbyTest, IsTriedAgainSoonWhereTheLastOneHasLivedForLong) {
    const Patient patient;
    const Process self(Process::own_pidfd());
    Standby standby;
    uint64_t now = kNow;
    const auto live = [&](uint64_t ns) {
        standby.start(patient.program(), true, self, now);
        kill(pid_of(standby.pidfd()).value_or(0), SIGKILL);
        EXPECT_TRUE(Process(shm::Descriptor(dup(standby.pidfd()))).await_death(-1));
        now += ns;
        const auto ending = standby.ended(now);
        EXPECT_TRUE(ending && ending->by_signal && ending->number == SIGKILL);
        return standby.due_ns() - now;
    };
    EXPECT_EQ(live(0), kSecond);
    EXPECT_EQ(live(0), 2 * kSecond);
    EXPECT_EQ(live(kSecond), 4 * kSecond);
    EXPECT_EQ(live(5 * kSecond), kSecond);
}

}  // namespace
}  // namespace dibs
