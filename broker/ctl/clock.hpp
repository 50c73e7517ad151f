// broker/ctl/clock.hpp -- monotonic nanoseconds, signed as dibs/dibs.h counts them; the wall clock.
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

// Since 1970.
inline uint64_t wall_ns() {
    timespec now = {};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// An instant that far ahead; for ever stays for ever.
inline int64_t after(int64_t now_ns, int64_t span_ns) {
    return span_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + span_ns;
}

}  // namespace dibs::ctl
