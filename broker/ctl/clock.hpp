// broker/ctl/clock.hpp -- monotonic nanoseconds, signed as dibs/dibs.h counts them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

namespace dibs::ctl {

inline int64_t monotonic_ns() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace dibs::ctl
