// benchmarks/tick_clock.hpp -- the tick counter as nanoseconds, read in the order of the program.
//
// By itself a processor reads the counter as soon as it gets there: on a path that it has guessed,
// while the load that ends the operation is still on its way. A round trip through a ring then
// seems to be shorter than the mean of as many that nobody timed, by a tenth or more, and a second
// reading behind it, which waits for the first, seems to cost what was missing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "clientlib/clock.hpp"
#include "shm/pause.hpp"

namespace dibs::bench {

// What stands before it has been carried out, loads included (a store may still be on its way to
// others), what stands behind it has not begun.
inline uint64_t ticks() {
#if defined(__x86_64__)
    __builtin_ia32_lfence();
    const uint64_t now = client::ticks();
    __builtin_ia32_lfence();
#else
    __asm__ __volatile__("dsb ld\n\tisb" ::: "memory");  // isb alone waits for no load
    const uint64_t now = client::ticks();
    __asm__ __volatile__("isb" ::: "memory");
#endif
    return now;
}

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
