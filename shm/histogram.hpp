// shm/histogram.hpp -- counts nanoseconds in the buckets of a log-linear histogram.
//
// Sixteen buckets per octave, so a bucket is at most 1/16 wide of its value. Values below 16 have a
// bucket each; the 640 buckets reach to 2^43 ns (2.4 hours), longer values count in the last. A
// histogram has one writer, which adds by load and store; readers see each count untorn.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/layout.hpp"

namespace dibs::shm {

constexpr uint32_t histogram_bucket(uint64_t value) {
    if (value < 16) return static_cast<uint32_t>(value);
    const auto octave = static_cast<uint32_t>(63 - __builtin_clzll(value));
    const auto part = static_cast<uint32_t>(value >> (octave - 4)) & 15U;
    const uint32_t bucket = (octave - 3) * 16 + part;
    return bucket < kHistogramBuckets ? bucket : kHistogramBuckets - 1;
}

// The smallest value of a bucket; of kHistogramBuckets the first value that is too long.
constexpr uint64_t histogram_lower_bound(uint32_t bucket) {
    if (bucket < 16) return bucket;
    return (16ULL + bucket % 16) << (bucket / 16 - 1);
}

// Adds one. Single writer; pairs with nothing: counts are statistics, their order says nothing.
template <typename Count>
void histogram_record(std::atomic<Count> (&buckets)[kHistogramBuckets], uint64_t value) {
    std::atomic<Count>& bucket = buckets[histogram_bucket(value)];
    bucket.store(static_cast<Count>(bucket.load(std::memory_order_relaxed) + 1),
                 std::memory_order_relaxed);
}

// The largest value of the bucket in which the given share of all values (in millionths: 500000 is
// the median) is reached; 0 if there are none. `counts` are the caller's own copy.
constexpr uint64_t histogram_percentile(const uint64_t (&counts)[kHistogramBuckets],
                                        uint32_t millionths) {
    uint64_t total = 0;
    for (const uint64_t count : counts)
        total += count;
    if (total == 0) return 0;
    // The rank is rounded up; split, so that large totals do not overflow.
    uint64_t rank =
        total / 1'000'000 * millionths + (total % 1'000'000 * millionths + 999'999) / 1'000'000;
    if (rank == 0) rank = 1;
    uint64_t below = 0;
    for (uint32_t bucket = 0; bucket < kHistogramBuckets; ++bucket) {
        below += counts[bucket];
        if (below >= rank) return histogram_lower_bound(bucket + 1) - 1;
    }
    return histogram_lower_bound(kHistogramBuckets) - 1;
}

}  // namespace dibs::shm
