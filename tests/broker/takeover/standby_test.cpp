// tests/broker/takeover/standby_test.cpp -- when the next broker is started ahead, and when not.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/standby.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

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
        const std::string text = "#!/bin/sh\nexec sleep 1000 >/dev/null 2>&1\n";
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

// A process that has 8 MiB more at a word.
class Growing {
  public:
    Growing() {
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(ends_[1], STDIN_FILENO);
            dup2(ends_[1], STDOUT_FILENO);
            execl("/bin/sh",
                  "sh",
                  "-c",
                  "echo; read word; x=$(head -c 8388608 /dev/zero | tr '\\0' x); echo; read word",
                  nullptr);
            _exit(1);
        }
        await();
    }
    ~Growing() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        close(ends_[0]);
        close(ends_[1]);
    }
    Growing(const Growing&) = delete;
    Growing& operator=(const Growing&) = delete;
    void grow() const {
        EXPECT_EQ(write(ends_[0], "\n", 1), 1);
        await();
    }
    [[nodiscard]] Process process() const {
        return Process(shm::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0))));
    }

  private:
    void await() const {
        char word = 0;
        EXPECT_EQ(read(ends_[0], &word, 1), 1);
    }
    int ends_[2] = {-1, -1};
    pid_t pid_ = -1;
};

TEST(StandbyTest, IsReplacedWhenItsBrokerHasGrown) {
    const Patient patient;
    const Growing broker;
    const Process self = broker.process();
    Standby standby;
    standby.plan(kNow);
    standby.start(patient.program(), true, self, kNow);
    const pid_t first = pid_of(standby.pidfd()).value_or(0);
    ASSERT_GT(first, 0);
    standby.look(self, kNow + 60 * kSecond);
    EXPECT_EQ(standby.due_ns(), shm::kNever) << "it has not grown";
    broker.grow();
    standby.look(self, kNow + 61 * kSecond);
    EXPECT_EQ(standby.due_ns(), shm::kNever) << "a second later nobody looks";
    standby.look(self, kNow + 120 * kSecond);
    const uint64_t due = standby.due_ns();  // a moment later: the first has ended by then
    ASSERT_GT(due, kNow + 120 * kSecond);
    ASSERT_LE(due, kNow + 121 * kSecond);
    EXPECT_EQ(standby.pidfd(), -1);
    standby.start(patient.program(), true, self, due);
    EXPECT_NE(pid_of(standby.pidfd()).value_or(first), first);
    const shm::Descriptor second(dup(standby.pidfd()));
    standby.let_go();
    standby.settle();
    EXPECT_TRUE(Process(shm::Descriptor(dup(second.get()))).dead());
    EXPECT_FALSE(Process(shm::Descriptor(dup(second.get()))).ending())
        << "nobody has waited for it";
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
