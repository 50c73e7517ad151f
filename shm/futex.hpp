// shm/futex.hpp -- sleeps on a word that two processes map, and wakes its sleeper.
//
// The raw system call without FUTEX_PRIVATE_FLAG: std::atomic::wait keeps its waiters in the
// process's own table and does not cross processes. A sleeper may map the word read-only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace dibs::shm {

enum class FutexWait { kWoken, kChanged, kTimedOut, kInterrupted };

// Sleeps while `word` holds `seen`, at most `timeout_ns` (monotonic). Spurious wake-ups happen:
// the caller looks at what it waits for, whatever this returns. Pairs with futex_wake.
inline FutexWait futex_wait(const std::atomic<uint32_t>& word, uint32_t seen, uint64_t timeout_ns) {
    struct timespec timeout = {};
    timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
    const long result = syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
    if (result == 0) return FutexWait::kWoken;
    if (errno == EAGAIN) return FutexWait::kChanged;
    if (errno == ETIMEDOUT) return FutexWait::kTimedOut;
    return FutexWait::kInterrupted;
}

// Wakes at most `sleepers`. The word's new value was stored before. Returns how many woke.
inline int futex_wake(std::atomic<uint32_t>& word, int sleepers) {
    return static_cast<int>(syscall(SYS_futex, &word, FUTEX_WAKE, sleepers, nullptr, nullptr, 0));
}

}  // namespace dibs::shm
