// broker/turn/time_slice.cpp -- shortens the scheduler's time slice of this process.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/time_slice.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dibs {

namespace {

// As sched_setattr(2) has it: libc has no name for it, and the kernel's header its own sched_param.
struct Scheduling {
    uint32_t size = sizeof(Scheduling);
    uint32_t policy = 0;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime_ns = 0;  // the slice, where the policy is SCHED_OTHER
    uint64_t deadline_ns = 0;
    uint64_t period_ns = 0;
};
static_assert(sizeof(Scheduling) == 48);  // SCHED_ATTR_SIZE_VER0

// Of one that is scheduled as processes are by default.
std::optional<Scheduling> ordinary(pid_t pid) {
    Scheduling about;
    if (syscall(SYS_sched_getattr, pid, &about, sizeof about, 0) != 0) return std::nullopt;
    if (about.policy != SCHED_OTHER) return std::nullopt;
    return about;
}

}  // namespace

bool shorten_time_slice() {
    std::optional<Scheduling> now = ordinary(0);
    if (!now) return false;
    now->runtime_ns = kShortSliceNs;
    return syscall(SYS_sched_setattr, 0, &*now, 0) == 0;
}

std::optional<uint64_t> time_slice_ns(pid_t pid) {
    const std::optional<Scheduling> about = ordinary(pid);
    return about ? std::optional(about->runtime_ns) : std::nullopt;
}

}  // namespace dibs
