// tests/broker/takeover/second_thread_test.cpp -- work in two halves, whoever has the CPU for them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/second_thread.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <future>
#include <stdexcept>
#include <thread>

#include "tests/broker/cpus.hpp"

namespace dibs::test {
namespace {

// This thread may run on one CPU alone while it lives: where it is, or on none of those.
class OneCpu {
  public:
    OneCpu() : OneCpu(static_cast<size_t>(sched_getcpu())) {}
    explicit OneCpu(const cpu_set_t& others) : OneCpu(first_but(others)) {}
    ~OneCpu() { sched_setaffinity(0, sizeof(before_), &before_); }
    OneCpu(const OneCpu&) = delete;
    OneCpu& operator=(const OneCpu&) = delete;

  private:
    explicit OneCpu(size_t cpu) {
        sched_getaffinity(0, sizeof(before_), &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof(one), &one);
    }
    static size_t first_but(const cpu_set_t& others) {
        cpu_set_t own;
        sched_getaffinity(0, sizeof(own), &own);
        size_t cpu = 0;
        while (!CPU_ISSET(cpu, &own) || CPU_ISSET(cpu, &others))
            ++cpu;
        return cpu;
    }

    cpu_set_t before_ = {};
};

cpu_set_t own_cpus() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    (void)sched_getaffinity(0, sizeof(cpus), &cpus);
    return cpus;
}

TEST(SecondThread, RunsOnAnotherCpu) {
    if (!has_two_cpus()) GTEST_SKIP() << "this process may use one CPU";
    cpu_set_t before = own_cpus();
    std::promise<cpu_set_t> there;
    SecondThread thread([&] { there.set_value(own_cpus()); });
    ASSERT_TRUE(thread.started());
    const cpu_set_t cpus = there.get_future().get();
    EXPECT_EQ(CPU_COUNT(&cpus), CPU_COUNT(&before) - 1);
    EXPECT_FALSE(thread.take_back());
    thread.join();
    EXPECT_FALSE(thread.started());
}

TEST(SecondThread, IsNotStartedWhereThereIsNothingToDo) {
    EXPECT_FALSE(SecondThread({}).started());
}

TEST(SecondThread, IsNotStartedWhereThereIsOneCpu) {
    const OneCpu one;
    EXPECT_FALSE(SecondThread([] { FAIL(); }).started());
}

// Whoever takes it back runs it himself: nobody else does.
TEST(SecondThread, RunsOnceWhetherItIsTakenBackOrNot) {
    if (!has_two_cpus()) GTEST_SKIP() << "this process may use one CPU";
    int taken_back = 0;
    // Most are, as soon after their start; few, where a sanitizer sees to it first.
    for (int round = 0; round < 1000 || taken_back == 0; ++round) {
        std::atomic<int> runs = 0;
        SecondThread thread([&] { ++runs; });
        const bool here = thread.take_back();
        if (here) ++taken_back;
        thread.join();
        ASSERT_EQ(runs, here ? 0 : 1);
    }
}

// It has been kept from its CPU, and ends all the same, on the one of who waits for it.
TEST(SecondThread, IsFetchedByWhoWaitsForIt) {
    if (!has_two_cpus()) GTEST_SKIP() << "this process may use one CPU";
    std::promise<cpu_set_t> begun;
    std::atomic<bool> waited_for = false;
    SecondThread thread([&] {
        const cpu_set_t before = own_cpus();
        begun.set_value(before);
        for (cpu_set_t now = before; CPU_EQUAL(&now, &before); now = own_cpus()) {
        }
        waited_for = true;
    });
    ASSERT_TRUE(thread.started());
    const OneCpu elsewhere(begun.get_future().get());
    thread.join();
    EXPECT_TRUE(waited_for);
}

// It may have ended in the very moment in which it would be fetched.
TEST(SecondThread, LeavesTheCpusOfWhoWaitsForItAlone) {
    if (!has_two_cpus()) GTEST_SKIP() << "this process may use one CPU";
    const cpu_set_t before = own_cpus();
    for (int i = 0; i < 20'000; ++i) {
        {
            SecondThread thread([] {});
        }
        const cpu_set_t now = own_cpus();
        ASSERT_TRUE(CPU_EQUAL(&now, &before)) << "after thread " << i;
    }
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
    if (!has_two_cpus()) GTEST_SKIP() << "this process may use one CPU";
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

TEST(InTwo, HasTheHalvesBesideEachOther) {
    if (!has_two_cpus()) GTEST_SKIP() << "this process may use one CPU";
    std::promise<void> begun;  // one after the other they would wait for ever
    std::thread::id there;
    in_two(true, [&](unsigned half) {
        if (half == 0) return begun.get_future().get();
        there = std::this_thread::get_id();
        begun.set_value();
    });
    EXPECT_NE(there, std::this_thread::get_id());
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
