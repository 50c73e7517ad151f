// benchmarks/tick_clock.hpp -- the tick counter as nanoseconds: 10 ns a reading, where the
// monotonic clock takes 23.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "clientlib/clock.hpp"
#include "shm/pause.hpp"

namespace dibs::bench {

using client::ticks;

inline double measured_tick_ns() {
    constexpr uint64_t kLongEnough = 20'000'000;
    const uint64_t first_ns = client::monotonic_ns();
    const uint64_t first = ticks();
    while (client::monotonic_ns() - first_ns < kLongEnough)
        shm::pause();
    const uint64_t last = ticks();
    return static_cast<double>(client::monotonic_ns() - first_ns) /
           static_cast<double>(last - first);
}

inline double tick_ns() {
    static const double length = measured_tick_ns();
    return length;
}

inline double elapsed_ns(uint64_t first_ticks, uint64_t last_ticks) {
    return static_cast<double>(last_ticks - first_ticks) * tick_ns();
}

// Nanoseconds as ticks.
inline uint64_t as_ticks(double ns) {
    return static_cast<uint64_t>(ns / tick_ns());
}

// What lies between two paced operations of whatever spins: the other side is back in its poll.
inline void short_gap() {
    for (int i = 0; i < 16; ++i)
        shm::pause();
}

// What lies between two paced operations of whatever sleeps, across cores: the other CPU halts.
inline void long_gap() {
    constexpr double kGapNs = 20'000;
    const uint64_t until = ticks() + as_ticks(kGapNs);
    while (ticks() < until)
        shm::pause();
}

}  // namespace dibs::bench
