// broker/turn/waits.hpp -- counts how long claims waited until they were granted.
//
// It keeps few numbers, enough for a reader that looks every few seconds: seventeen counts and a
// sum for each way to a grant.
//
// The first bound is about a microsecond, each further one four times the one before, the last one
// 18 minutes; longer waits have a count of their own. The BOARD has the same waits sixteen to the
// octave, of all ways together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace dibs {

// The way of a claim to its grant.
enum class Path : uint8_t {
    kFast,    // answered before the turn that grants it
    kAtOnce,  // granted in the turn in which it came
    kQueued,  // it waited, for a slot or for a worker's word
};
inline constexpr size_t kPaths = 3;

struct Waits {
    static constexpr uint32_t kFirstShift = 10;
    static constexpr size_t kBounds = 16;

    std::array<uint64_t, kBounds + 1> counts = {};  // not summed up; the last: longer than all
    uint64_t sum_ns = 0;

    // A wait of exactly so long is within the bound.
    static constexpr uint64_t bound_ns(size_t index) {
        return uint64_t{1} << (kFirstShift + 2 * index);
    }
    static constexpr size_t index_of(uint64_t waited_ns) {
        const auto width = static_cast<uint32_t>(std::bit_width(waited_ns - (waited_ns != 0)));
        if (width <= kFirstShift) return 0;
        return std::min<size_t>((width - kFirstShift + 1) / 2, kBounds);
    }

    void record(uint64_t waited_ns, uint64_t times = 1) {
        counts[index_of(waited_ns)] += times;
        sum_ns += waited_ns * times;
    }
};

using PoolWaits = std::array<Waits, kPaths>;

}  // namespace dibs
