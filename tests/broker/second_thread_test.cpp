// tests/broker/second_thread_test.cpp -- work in two halves, whoever has the CPU for them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/second_thread.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <thread>

namespace dibs::test {
namespace {

// This thread may run on one CPU alone while it lives.
class OneCpu {
  public:
    OneCpu() {
        sched_getaffinity(0, sizeof(before_), &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
        sched_setaffinity(0, sizeof(one), &one);
    }
    ~OneCpu() { sched_setaffinity(0, sizeof(before_), &before_); }
    OneCpu(const OneCpu&) = delete;
    OneCpu& operator=(const OneCpu&) = delete;

  private:
    cpu_set_t before_ = {};
};

bool has_two_cpus() {
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) > 1;
}

TEST(SecondThread, RunsOnAnotherCpu) {
    if (!has_two_cpus()) GTEST_SKIP() << "this process may use one CPU";
    const auto here = std::this_thread::get_id();
    std::thread::id there;
    SecondThread thread([&] { there = std::this_thread::get_id(); });
    ASSERT_TRUE(thread.started());
    thread.join();
    EXPECT_FALSE(thread.started());
    EXPECT_NE(there, std::thread::id());
    EXPECT_NE(there, here);
}

TEST(SecondThread, IsNotStartedWhereThereIsOneCpuOrNothingToDo) {
    const OneCpu one;
    EXPECT_FALSE(SecondThread([] { FAIL(); }).started());
    EXPECT_FALSE(SecondThread({}).started());
}

// From here on no thread of this process is told its CPU.
void refuse_to_place_threads() {
    std::array<sock_filter, 4> filter = {
        {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
    const sock_fprog program = {filter.size(), filter.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(2);
    }
}

// Under the filter of an older broker, say, whose keeper has started this one.
TEST(InTwo, DoesBothHalvesWhereNoThreadMayBePlaced) {
    const pid_t child = fork();
    if (child == 0) {
        refuse_to_place_threads();
        std::array<int, 2> done = {};
        in_two(true, [&](unsigned half) { ++done[half]; });
        _exit(done == std::array<int, 2>{1, 1} ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(InTwo, DoesBothHalvesWhereverTheyRun) {
    for (const bool worth : {true, false}) {
        std::array<int, 2> done = {};
        in_two(worth, [&](unsigned half) { ++done[half]; });
        EXPECT_EQ(done, (std::array<int, 2>{1, 1})) << worth;
    }
    const OneCpu one;
    std::array<int, 2> done = {};
    in_two(true, [&](unsigned half) { ++done[half]; });
    EXPECT_EQ(done, (std::array<int, 2>{1, 1}));
}

TEST(InTwo, ThrowsWhatAHalfHasThrown) {
    for (const unsigned bad : {0U, 1U}) {
        for (const bool worth : {true, false}) {
            const auto throwing = [&](unsigned half) {
                if (half == bad) throw std::runtime_error("half");
            };
            EXPECT_THROW(in_two(worth, throwing), std::runtime_error) << bad << worth;
        }
    }
}

}  // namespace
}  // namespace dibs::test
