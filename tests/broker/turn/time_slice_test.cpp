// tests/broker/turn/time_slice_test.cpp -- short slices: asked for, inherited, and done without.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/time_slice.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace dibs {

namespace {

// In a process of its own: what is asked for stays.
int tried(int (*what)()) {
    const pid_t child = fork();
    if (child == 0) _exit(what());
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int kept_by_a_child() {
    if (!shorten_time_slice()) return 1;
    return tried([] { return time_slice_ns(0) == kShortSliceNs ? 0 : 1; }) == 0 ? 0 : 2;
}

// What else there is of its scheduling stays as it is.
int nothing_else() {
    if (setpriority(PRIO_PROCESS, 0, 5) != 0) return 1;
    if (!shorten_time_slice()) return 2;
    errno = 0;
    return getpriority(PRIO_PROCESS, 0) == 5 && errno == 0 ? 0 : 3;
}

int scheduled_otherwise() {
    const sched_param none = {};
    if (sched_setscheduler(0, SCHED_BATCH, &none) != 0) return 1;
    if (shorten_time_slice() || time_slice_ns(0)) return 2;
    return sched_getscheduler(0) == SCHED_BATCH ? 0 : 3;
}

int refused() {
    const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == nullptr) return 1;
    for (const int call : {SCMP_SYS(sched_setattr), SCMP_SYS(sched_getattr)}) {
        if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0) != 0) return 2;
    }
    if (seccomp_load(filter) != 0) return 3;
    return shorten_time_slice() || time_slice_ns(0) ? 4 : 0;
}

TEST(TimeSlice, IsShortWhereTheKernelHasOne) {
    const auto before = time_slice_ns(0);
    ASSERT_TRUE(before);
    if (*before == 0) GTEST_SKIP() << "a kernel before 6.12 has none of a process's own";
    EXPECT_EQ(tried(kept_by_a_child), 0);
}

TEST(TimeSlice, IsAllThatChanges) {
    EXPECT_EQ(tried(nothing_else), 0);
}

TEST(TimeSlice, IsLeftToWhoIsScheduledOtherwise) {
    EXPECT_EQ(tried(scheduled_otherwise), 0);
}

TEST(TimeSlice, IsDoneWithoutWhereNobodyMayAsk) {
    EXPECT_EQ(tried(refused), 0);
}

}  // namespace

}  // namespace dibs
