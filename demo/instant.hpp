// demo/instant.hpp -- the demo's clock: monotonic nanoseconds, and exact waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>
#include <ctime>

namespace dibs::ctl::demo {

inline uint64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The kernel may end a wait up to 50 us late to save wake-ups; a player would measure that.
inline void ask_for_exact_waits() {
    prctl(PR_SET_TIMERSLACK, 1);
}

// poll() with a timeout in nanoseconds; a signal ends it early.
inline int poll_for(pollfd* watched, size_t count, uint64_t timeout_ns) {
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
    return ppoll(watched, count, &timeout, nullptr);
}

}  // namespace dibs::ctl::demo
