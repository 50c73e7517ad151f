// tests/broker/control/epoll_test.cpp -- what is waited for, and for how long, with epoll_pwait2
// and where it is refused.
// SPDX-License-Identifier: Apache-2.0
#include "broker/control/epoll.hpp"

#include <gtest/gtest.h>
#include <seccomp.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <span>

#include "broker/turn/clock.hpp"
#include "shm/layout.hpp"

namespace dibs {

namespace {

constexpr uint64_t kWaitNs = 1'500'000;

bool is_only(std::span<const epoll_event> happened, uint64_t word) {
    return happened.size() == 1 && happened[0].data.u64 == word;
}

// What fails first; 0: nothing.
int tried() {
    Epoll epoll;
    const shm::Descriptor bell(eventfd(1, EFD_CLOEXEC));
    const shm::Descriptor silent(eventfd(0, EFD_CLOEXEC));
    const uint64_t begun = Clock::monotonic();
    if (!epoll.wait(kWaitNs).empty()) return 1;
    if (Clock::monotonic() - begun < kWaitNs) return 2;
    if (!epoll.add(bell.get(), EPOLLIN | EPOLLET, uint64_t{7} << 32U)) return 3;
    if (!epoll.add(silent.get(), EPOLLIN, 8)) return 4;
    if (!is_only(epoll.wait(shm::kNever), uint64_t{7} << 32U)) return 5;
    if (!epoll.wait(0).empty()) return 6;  // an edge is told once
    const uint64_t one = 1;
    if (write(silent.get(), &one, sizeof one) != sizeof one) return 7;
    if (!is_only(epoll.wait(0), 8)) return 8;
    epoll.remove(silent.get());
    return epoll.wait(0).empty() ? 0 : 9;
}

// The same in a process whose epoll_pwait2 fails so.
int tried_refused(int error) {
    const pid_t child = fork();
    if (child == 0) {
        const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
        const auto action = SCMP_ACT_ERRNO(static_cast<uint16_t>(error));
        if (filter == nullptr || seccomp_rule_add(filter, action, SCMP_SYS(epoll_pwait2), 0) != 0 ||
            seccomp_load(filter) != 0) {
            _exit(100);
        }
        if (syscall(SYS_epoll_pwait2, -1, nullptr, 0, nullptr, nullptr, 0) == 0 || errno != error) {
            _exit(101);
        }
        _exit(tried());
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Epoll, WaitsForWhatHappensAndAtMostSoLong) {
    EXPECT_EQ(tried(), 0);
}

TEST(Epoll, WaitsAsWellWhereEpollPwait2IsRefused) {
    EXPECT_EQ(tried_refused(ENOSYS), 0);  // as by older kernels
    EXPECT_EQ(tried_refused(EPERM), 0);   // as by containers' filters that do not know it
    EXPECT_EQ(tried_refused(EACCES), 0);  // as by a filter that says whatever it was told to
}

}  // namespace

}  // namespace dibs
