// tests/shm/histogram_test.cpp -- buckets and percentiles.
// SPDX-License-Identifier: Apache-2.0
#include "shm/histogram.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace dibs::shm {
namespace {

TEST(Histogram, GivesSmallValuesABucketEach) {
    EXPECT_EQ(histogram_bucket(0), 0U);
    EXPECT_EQ(histogram_bucket(15), 15U);
    EXPECT_EQ(histogram_bucket(16), 16U);
    EXPECT_EQ(histogram_bucket(31), 31U);
}

TEST(Histogram, HasSixteenBucketsPerOctave) {
    EXPECT_EQ(histogram_bucket(32), 32U);
    EXPECT_EQ(histogram_bucket(33), 32U);
    EXPECT_EQ(histogram_bucket(34), 33U);
    EXPECT_EQ(histogram_bucket(1000), 111U);  // 992 .. 1023
    EXPECT_EQ(histogram_lower_bound(111), 992U);
    EXPECT_EQ(histogram_lower_bound(112), 1024U);
}

TEST(Histogram, PutsEveryLowerBoundIntoItsOwnBucketAndTheValueBeforeIntoTheOneBefore) {
    for (uint32_t bucket = 1; bucket < kHistogramBuckets; ++bucket) {
        ASSERT_EQ(histogram_bucket(histogram_lower_bound(bucket)), bucket);
        ASSERT_EQ(histogram_bucket(histogram_lower_bound(bucket) - 1), bucket - 1);
    }
}

TEST(Histogram, CountsWhatIsTooLongInTheLastBucket) {
    EXPECT_EQ(histogram_lower_bound(640), uint64_t{1} << 43);
    EXPECT_EQ(histogram_bucket((uint64_t{1} << 43) - 1), 639U);
    EXPECT_EQ(histogram_bucket(uint64_t{1} << 43), 639U);
    EXPECT_EQ(histogram_bucket(~uint64_t{0}), 639U);
}

TEST(Histogram, RecordsIntoTheBucketOfTheValue) {
    auto histogram = std::make_unique<UpHistogram>();
    histogram_record(histogram->bucket, 1000);
    histogram_record(histogram->bucket, 1010);
    EXPECT_EQ(histogram->bucket[111].load(), 2U);
}

TEST(Histogram, ReadsPercentilesAsTheEndOfTheBucketThatReachesThem) {
    uint64_t counts[kHistogramBuckets] = {};
    EXPECT_EQ(histogram_percentile(counts, 500'000), 0U);
    counts[3] = 50;    // 3 ns
    counts[111] = 49;  // 992 .. 1023 ns
    counts[639] = 1;
    EXPECT_EQ(histogram_percentile(counts, 0), 3U);
    EXPECT_EQ(histogram_percentile(counts, 500'000), 3U);
    EXPECT_EQ(histogram_percentile(counts, 510'000), 1023U);
    EXPECT_EQ(histogram_percentile(counts, 990'000), 1023U);
    EXPECT_EQ(histogram_percentile(counts, 1'000'000), (uint64_t{1} << 43) - 1);
}

}  // namespace
}  // namespace dibs::shm
