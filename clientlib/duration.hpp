// clientlib/duration.hpp -- converts the broker's durations to those of dibs/dibs.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dibs/dibs.h>

namespace dibs::client {

// What is longer than can be said is for ever.
inline int64_t public_duration(uint64_t ns) {
    return ns > static_cast<uint64_t>(DIBS_FOREVER) ? DIBS_FOREVER : static_cast<int64_t>(ns);
}

}  // namespace dibs::client
