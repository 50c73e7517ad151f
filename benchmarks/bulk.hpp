// benchmarks/bulk.hpp -- how much is measured at once, and how much of a round is not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dibs::bench {

inline constexpr uint32_t kBulk = 256;
// Of a round, not counted: the session is polled again by then.
inline constexpr uint32_t kFirst = 32;

}  // namespace dibs::bench
