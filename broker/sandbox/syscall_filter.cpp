// broker/sandbox/syscall_filter.cpp -- restricts with seccomp which system calls the broker makes.
//
// The list has names: libseccomp knows their numbers on each architecture, and skips those that an
// architecture does not have. A keeper that a filtered broker starts runs under the same list, and
// starts brokers under it, so the calls of their start are on it too (broker/takeover/keeper.hpp).
// SPDX-License-Identifier: Apache-2.0
#include <asm/ioctls.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "broker/sandbox/hardening.hpp"
#include "shm/descriptor.hpp"

namespace dibs {

namespace {

const char* const kAllowed[] = {
    // memory
    "brk",
    "madvise",
    "membarrier",
    "memfd_create",
    "mlock",
    "mmap",
    "mprotect",
    "mremap",
    "munlock",
    "munmap",
    // files
    "access",
    "close",
    "close_range",
    "dup",
    "dup2",
    "dup3",
    "faccessat",
    "faccessat2",
    "fallocate",
    "fchmod",
    "fcntl",
    "fdatasync",
    "flock",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "getcwd",
    "getdents64",
    "lseek",
    "lstat",
    "mkdir",
    "mkdirat",
    "newfstatat",
    "open",
    "openat",
    "pread64",
    "pwrite64",
    "read",
    "readlink",
    "readlinkat",
    "readv",
    "rename",
    "renameat",
    "renameat2",
    "stat",
    "statfs",
    "statx",
    "umask",
    "unlink",
    "unlinkat",
    "write",
    "writev",
    // sockets
    "accept",
    "accept4",
    "bind",
    "connect",
    "getpeername",
    "getsockname",
    "getsockopt",
    "listen",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    // waiting
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd2",
    "poll",
    "ppoll",
    "pselect6",
    "select",
    "signalfd4",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    // time
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "gettimeofday",
    "nanosleep",
    "time",
    // threads
    "exit",
    "exit_group",
    "futex",
    "get_robust_list",
    "getcpu",
    "gettid",
    "restart_syscall",
    "rseq",
    "sched_getaffinity",
    "sched_setaffinity",  // sets a second thread's CPU (second_thread.cpp)
    "sched_yield",
    "set_robust_list",
    "set_tid_address",
    // signals
    "kill",
    "pidfd_open",
    "pidfd_send_signal",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigtimedwait",
    "sigaltstack",
    "tgkill",
    // processes
    "arch_prctl",
    "execve",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getrandom",
    "getresgid",
    "getresuid",
    "getrlimit",
    "getrusage",
    "getsid",
    "getuid",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "prctl",
    "prlimit64",
    "seccomp",
    "setpgid",
    "setrlimit",
    "setsid",
    "sysinfo",
    "uname",
    "vfork",
    "wait4",
    "waitid",
};

constexpr uint64_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

// 0, or what is wrong: a name that this architecture does not have is not wrong.
int allow(scmp_filter_ctx filter, const char* name) {
    const int number = seccomp_syscall_resolve_name(name);
    return number < 0 ? 0 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

int allow_if(scmp_filter_ctx filter, const char* name, const scmp_arg_cmp& condition) {
    const int number = seccomp_syscall_resolve_name(name);
    return number < 0 ? 0 : seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, 1, &condition);
}

// With a mask: none of its bits.
scmp_arg_cmp argument(unsigned int index, scmp_compare how, uint64_t value) {
    return {index, how, value, 0};
}

// Calls that are allowed only so.
int allow_some(scmp_filter_ctx filter, bool strict) {
    int wrong = 0;
    const auto keep = [&](int result) {
        if (wrong == 0) wrong = result;
    };
    keep(allow_if(filter, "socket", argument(0, SCMP_CMP_EQ, AF_UNIX)));
    keep(allow_if(filter, "socketpair", argument(0, SCMP_CMP_EQ, AF_UNIX)));
    keep(allow_if(filter, "ioctl", argument(1, SCMP_CMP_EQ, TCGETS)));  // is it a terminal?
    keep(allow_if(filter, "clone", argument(0, SCMP_CMP_MASKED_EQ, kNewNamespaces)));
    keep(allow_if(filter, "sched_getattr", argument(0, SCMP_CMP_EQ, 0)));  // its own
    keep(allow_if(filter, "sched_setattr", argument(0, SCMP_CMP_EQ, 0)));
    // Its flags are out of a filter's sight. libc then uses clone.
    if (strict) keep(seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0));
    return wrong;
}

}  // namespace

SystemCalls write_down_system_calls(bool strict) {
    SystemCalls calls;
    calls.strict = strict;
    const auto fail = [&](int error) {
        calls.program.clear();
        calls.wrong = std::strerror(error);
        return calls;
    };
    const uint32_t otherwise = strict ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(ENOSYS);
    const Filter filter(seccomp_init(otherwise), &seccomp_release);
    if (filter == nullptr) return fail(ENOMEM);
    calls.logged = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_LOG, 1) == 0;
    (void)seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a tree of comparisons
    int wrong = allow_some(filter.get(), strict);
    for (const char* name : kAllowed) {
        if (wrong == 0) wrong = allow(filter.get(), name);
    }
    if (wrong != 0) return fail(-wrong);
    const shm::Descriptor file(memfd_create("dibs-system-calls", MFD_CLOEXEC));
    if (!file.valid()) return fail(errno);
    wrong = seccomp_export_bpf(filter.get(), file.get());
    if (wrong != 0) return fail(-wrong);
    const off_t size = lseek(file.get(), 0, SEEK_END);
    if (size < 0) return fail(errno);
    calls.program.resize(static_cast<size_t>(size) / sizeof(calls.program[0]));
    if (pread(file.get(), calls.program.data(), static_cast<size_t>(size), 0) != size) {
        return fail(EIO);
    }
    return calls;
}

std::string restrict_system_calls(const SystemCalls& calls) {
    if (!calls.wrong.empty()) return calls.wrong;
    auto code = calls.program;
    struct sock_fprog program = {};
    program.len = static_cast<unsigned short>(code.size());
    program.filter = code.data();
    const unsigned int flags = calls.logged ? SECCOMP_FILTER_FLAG_LOG : 0;
    const long set = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return set == 0 ? "" : std::strerror(errno);
}

}  // namespace dibs
