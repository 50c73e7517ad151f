// broker/clock.hpp -- the broker's time: STATE's time, going on.
//
// Broker time is CLOCK_MONOTONIC plus an offset that is fixed when a broker takes over a STATE:
// its first instant is the last one that STATE saw. So time never goes back, and the time that
// nobody was serving does not exist for anybody's deadline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <cstdint>

namespace dibs {

class Clock {
  public:
    explicit Clock(uint64_t state_time_ns) : offset_(state_time_ns - monotonic()) {}

    [[nodiscard]] uint64_t now() const { return monotonic() + offset_; }

  private:
    static uint64_t monotonic() {
        struct timespec time = {};
        clock_gettime(CLOCK_MONOTONIC, &time);
        return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
               static_cast<uint64_t>(time.tv_nsec);
    }

    uint64_t offset_;  // modulo 2^64
};

}  // namespace dibs
