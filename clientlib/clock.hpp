// clientlib/clock.hpp -- the library's two clocks: nanoseconds for deadlines, ticks for latencies.
//
// Reading the monotonic clock takes 23 ns, the tick counter 10; a claim takes 150. Ticks are never
// compared across sessions; connect measures how long one is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dibs/dibs.h>
#include <time.h>

#include <cstdint>

namespace dibs::client {

// Of the broker; what is longer than can be said is for ever.
inline int64_t public_duration(uint64_t ns) {
    return ns > static_cast<uint64_t>(DIBS_FOREVER) ? DIBS_FOREVER : static_cast<int64_t>(ns);
}

inline uint64_t monotonic_ns() {
    struct timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t value = 0;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#endif
}

// Nanoseconds per tick, as a fraction of 2^32. What it is measured by may have taken long: 2^32 ns
// are 4.3 s, which a handshake with a broker that is not there yet may well take.
class TickLength {
  public:
    TickLength() = default;
    TickLength(uint64_t elapsed_ticks, uint64_t elapsed_ns)
        : scale_(elapsed_ticks == 0
                     ? uint64_t{1} << 32
                     : static_cast<uint64_t>((Wide{elapsed_ns} << 32) / elapsed_ticks)) {}
    [[nodiscard]] uint64_t to_ns(uint64_t elapsed_ticks) const {
        return static_cast<uint64_t>((Wide{elapsed_ticks} * scale_) >> 32);
    }

    [[nodiscard]] uint64_t of_ns(uint64_t ns) const {
        return scale_ == 0 ? ns : static_cast<uint64_t>((Wide{ns} << 32) / scale_);
    }

  private:
    using Wide = unsigned __int128;

    uint64_t scale_ = uint64_t{1} << 32;
};

}  // namespace dibs::client
