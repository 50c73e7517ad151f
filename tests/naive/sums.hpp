// tests/naive/sums.hpp -- two sums that are done without saying: times that do not come stay so,
// and bytes lie in arena blocks of 508.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/layout.hpp"

namespace dibs::naive {

inline uint64_t later(uint64_t now, uint64_t span_ns) {
    return span_ns >= shm::kNever - now ? shm::kNever : now + span_ns;
}

inline uint32_t blocks_for(size_t bytes) {
    return static_cast<uint32_t>((bytes + 507) / 508);
}

}  // namespace dibs::naive
