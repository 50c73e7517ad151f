// broker/turn/clock.hpp -- gives broker time: the time of STATE, continued.
//
// Broker time is CLOCK_MONOTONIC plus an offset, which changes when a broker takes over a STATE,
// and where one was stopped and goes on (broker/turn/clock_stop.hpp). So time never goes back, and
// downtime counts towards no deadline. A broker that does not know its predecessor's time of death
// continues from the last instant that STATE saw.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <cstdint>

namespace dibs {

class Clock {
  public:
    explicit Clock(uint64_t time_ns) { go_on_from(time_ns); }
    // It is `time_ns` now.
    void go_on_from(uint64_t time_ns) { offset_ = time_ns - monotonic(); }
    [[nodiscard]] uint64_t offset() const { return offset_; }

    [[nodiscard]] uint64_t now() const { return monotonic() + offset_; }

    static uint64_t monotonic() {
        struct timespec time = {};
        clock_gettime(CLOCK_MONOTONIC, &time);
        return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
               static_cast<uint64_t>(time.tv_nsec);
    }

  private:
    uint64_t offset_ = 0;  // modulo 2^64
};

}  // namespace dibs
