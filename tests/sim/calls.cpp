// tests/sim/calls.cpp -- what the kernel would do: the linker sends our system calls here.
//
// Descriptors are the kernel's own, and never waited for: whoever would wait goes to the world, and
// looks again when something was written. The clock, the futex and the CPU are the world's.
// SPDX-License-Identifier: Apache-2.0
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "tests/sim/house.hpp"
#include "tests/sim/world.hpp"

using dibs::sim::House;
using dibs::sim::kForever;
using dibs::sim::World;

namespace {

World* world() {
    World* here = World::here;
    return here != nullptr && here->running() != nullptr ? here : nullptr;
}

uint64_t until(World& here, const struct timespec* timeout) {
    if (timeout == nullptr) return kForever;
    return here.now() + static_cast<uint64_t>(timeout->tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(timeout->tv_nsec);
}

// Lost, once, or twice.
int times(World& here) {
    if (here.dice.one_in(here.weather.lose_one_in)) {
        ++here.faults;
        return 0;
    }
    if (!here.dice.one_in(here.weather.double_one_in)) return 1;
    ++here.faults;
    return 2;
}

// A process that is killed dies where it stands, at its next moment.
long send_signal(World& here, int lifeline, int signal) {
    dibs::sim::Task* owner = here.owner(lifeline);
    if (owner == nullptr) {
        errno = ESRCH;
        return -1;
    }
    if (signal == 0) return 0;
    if (here.dice.one_in(here.weather.spare_one_in)) {
        ++here.faults;
        errno = EPERM;
        return -1;
    }
    ++here.kills;
    here.kill(*owner);
    return 0;
}

}  // namespace

namespace dibs {

using Uids = std::optional<std::array<uint32_t, 3>>;
Uids real_uids_now(uint32_t pid, int pidfd) __asm__("__real__ZN4dibs8uids_nowEji");
Uids uids_now_here(uint32_t pid, int pidfd) __asm__("__wrap__ZN4dibs8uids_nowEji");

// The world has no /proc.
Uids uids_now_here(uint32_t pid, int pidfd) {
    World* here = world();
    if (here == nullptr) return real_uids_now(pid, pidfd);
    const sim::Task* owner = here->owner(pidfd);
    if (owner == nullptr) return std::nullopt;
    return std::array{owner->uid, owner->uid, owner->uid};
}

}  // namespace dibs

extern "C" {

int __real_clock_gettime(clockid_t clock, struct timespec* out);
int __real_epoll_pwait2(
    int epoll, struct epoll_event* out, int most, const struct timespec* timeout, const sigset_t*);
ssize_t __real_recvmsg(int socket, struct msghdr* message, int flags);
int __real_sched_yield();
int __real_getrusage(int who, struct rusage* usage);
ssize_t __real_send(int socket, const void* bytes, size_t size, int flags);
ssize_t __real_write(int fd, const void* bytes, size_t size);

int __wrap_clock_gettime(clockid_t clock, struct timespec* out) {
    World* here = World::here;
    if (here == nullptr) return __real_clock_gettime(clock, out);
    out->tv_sec = static_cast<time_t>(here->now() / 1'000'000'000);
    out->tv_nsec = static_cast<long>(here->now() % 1'000'000'000);
    return 0;
}

// Nobody is pushed aside: whoever asks goes on to spin.
int __wrap_getrusage(int who, struct rusage* usage) {
    if (World::here == nullptr) return __real_getrusage(who, usage);
    *usage = {};
    return 0;
}

int __wrap_epoll_pwait2(int epoll,
                        struct epoll_event* out,
                        int most,
                        const struct timespec* timeout,
                        const sigset_t* mask) {
    const struct timespec at_once = {};
    World* here = world();
    if (here == nullptr) return __real_epoll_pwait2(epoll, out, most, timeout, mask);
    const uint64_t end = until(*here, timeout);
    here->moment();
    for (;;) {
        const int count = __real_epoll_pwait2(epoll, out, most, &at_once, mask);
        if (count != 0 || here->now() >= end) return count;
        (void)here->wait_descriptors(end);
    }
}

ssize_t __wrap_recvmsg(int socket, struct msghdr* message, int flags) {
    World* here = world();
    if (here == nullptr || (flags & MSG_DONTWAIT) != 0)
        return __real_recvmsg(socket, message, flags);
    const uint64_t end = here->now() + 1'000'000'000;
    for (;;) {
        const ssize_t size = __real_recvmsg(socket, message, flags | MSG_DONTWAIT);
        if (size >= 0 || errno != EAGAIN || here->now() >= end) return size;
        (void)here->wait_descriptors(end);
    }
}

int __wrap_sched_yield() {
    World* here = world();
    if (here == nullptr) return __real_sched_yield();
    here->moment();
    return 0;
}

ssize_t __wrap_send(int socket, const void* bytes, size_t size, int flags) {
    World* here = world();
    if (here == nullptr) return __real_send(socket, bytes, size, flags);
    if (size == 1 && times(*here) == 0) return 1;  // the datagram for an event loop
    const ssize_t sent = __real_send(socket, bytes, size, flags);
    here->stir();
    return sent;
}

// The bells of sessions; and what nothing happens to: the broker's own eventfds.
ssize_t __wrap_write(int fd, const void* bytes, size_t size) {
    World* here = world();
    if (here == nullptr || size != sizeof(uint64_t)) return __real_write(fd, bytes, size);
    here->moment();
    for (int left = House::here->owns(fd) ? 1 : times(*here); left > 0; --left)
        (void)!__real_write(fd, bytes, size);
    here->stir();
    return static_cast<ssize_t>(size);
}

// The futex, and pidfd_send_signal.
long __wrap_syscall(long number, ...) {
    World* here = world();
    if (here == nullptr) std::abort();
    va_list list;
    va_start(list, number);
    if (number == SYS_pidfd_send_signal) {
        const int lifeline = va_arg(list, int);
        const int signal = va_arg(list, int);
        va_end(list);
        return send_signal(*here, lifeline, signal);
    }
    if (number != SYS_futex) std::abort();
    auto* word = va_arg(list, std::atomic<uint32_t>*);
    const int operation = va_arg(list, int);
    const uint32_t value = va_arg(list, uint32_t);
    const auto* timeout = va_arg(list, const struct timespec*);
    va_end(list);
    if (operation == FUTEX_WAKE) {
        long woken = 0;
        for (int left = times(*here); left > 0; --left)
            woken += here->wake(word, static_cast<int>(value));
        return woken;
    }
    const uint64_t end = until(*here, timeout);
    here->moment();
    if (word->load() != value) {
        errno = EAGAIN;
        return -1;
    }
    if (here->wait_word(word, end)) return 0;
    errno = ETIMEDOUT;
    return -1;
}

int __wrap_socket(int, int, int) {
    return House::here->call();
}

int __wrap_connect(int, const struct sockaddr*, socklen_t) {
    if (House::here->open()) return 0;
    errno = ECONNREFUSED;
    return -1;
}
}
