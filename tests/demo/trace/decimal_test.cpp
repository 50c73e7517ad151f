// tests/demo/trace/decimal_test.cpp -- numbers and dates of trace files.
// SPDX-License-Identifier: Apache-2.0
#include "demo/trace/decimal.hpp"

#include <gtest/gtest.h>

namespace dibs::ctl::demo {
namespace {

TEST(Decimal, ReadsSecondsAsNanoseconds) {
    EXPECT_EQ(parse_seconds("0"), 0);
    EXPECT_EQ(parse_seconds("12"), 12'000'000'000);
    EXPECT_EQ(parse_seconds("0.078"), 78'000'000);
    EXPECT_EQ(parse_seconds(".5"), 500'000'000);
    EXPECT_EQ(parse_seconds("5."), 5'000'000'000);
    EXPECT_EQ(parse_seconds("-1"), -1'000'000'000);
}

TEST(Decimal, CutsDigitsThatItCannotKeep) {
    EXPECT_EQ(parse_seconds("0.07949090003967285"), 79'490'900);
    EXPECT_EQ(parse_seconds("57.15786004066467"), 57'157'860'040);
    EXPECT_EQ(parse_decimal("-1.29", 1), -12);
    EXPECT_EQ(parse_decimal("0.00000000000000000000000019", 9), 0);
}

TEST(Decimal, UnderstandsExponents) {
    EXPECT_EQ(parse_seconds("1e-05"), 10'000);
    EXPECT_EQ(parse_seconds("2.5E3"), 2'500'000'000'000);
    EXPECT_EQ(parse_seconds("1e"), std::nullopt);
    EXPECT_EQ(parse_seconds("1e+"), std::nullopt);
    EXPECT_EQ(parse_seconds("1e9999"), std::nullopt);
}

TEST(Decimal, RefusesWhatIsNotANumber) {
    for (const char* text :
         {"", "-", ".", "abc", "1x", "1 2", "0x10", "--1", "1.2.3", "nan", "inf"}) {
        EXPECT_EQ(parse_seconds(text), std::nullopt) << text;
    }
}

TEST(Decimal, RefusesWhatDoesNotFit) {
    EXPECT_EQ(parse_seconds("4611686018"), 4'611'686'018'000'000'000);
    EXPECT_EQ(parse_seconds("4611686019"), std::nullopt);
    EXPECT_EQ(parse_seconds("99999999999999999999999999"), std::nullopt);
    EXPECT_EQ(parse_decimal("1e99", 0), std::nullopt);
}

TEST(Decimal, TakesWholeNumbersOnly) {
    EXPECT_EQ(parse_whole("240"), 240);
    EXPECT_EQ(parse_whole("-1"), -1);
    EXPECT_EQ(parse_whole("3.0"), 3);
    EXPECT_EQ(parse_whole("3.5"), std::nullopt);
    EXPECT_EQ(parse_whole("-0.5"), std::nullopt);
}

TEST(Timestamp, CountsNanosecondsSince1970) {
    EXPECT_EQ(parse_timestamp("1970-01-01 00:00:00"), 0);
    EXPECT_EQ(parse_timestamp("1970-01-02 00:00:00.000000001"), 86'400'000'000'001);
    EXPECT_EQ(parse_timestamp("2000-03-01 00:00:00"), 951'868'800'000'000'000);
    EXPECT_EQ(parse_timestamp("2023-11-16 18:17:03.9799600"), 1'700'158'623'979'960'000);
    EXPECT_EQ(parse_timestamp("2023-11-16T18:17:03Z"), 1'700'158'623'000'000'000);
}

TEST(Timestamp, RefusesDatesThatDoNotExist) {
    for (const char* text : {"2023-02-29 00:00:00",
                             "2023-13-01 00:00:00",
                             "2023-00-01 00:00:00",
                             "2023-11-16 24:00:00",
                             "2023-11-16 00:60:00",
                             "2023-11-16",
                             "2023-11-16 18:17",
                             "2023/11/16 18:17:03",
                             "2023-11-16 18:17:03.12x",
                             "2023-11-16 18:17:03 pm",
                             "1700158623",
                             ""}) {
        EXPECT_EQ(parse_timestamp(text), std::nullopt) << text;
    }
    EXPECT_TRUE(parse_timestamp("2024-02-29 00:00:00"));
}

TEST(ScaleInteger, NeedsNoRoomInBetween) {
    EXPECT_EQ(scale_integer(4'000'000'000'000'000'000, 60'000'000'000, 4'000'000'000'000'000'000),
              60'000'000'000);
    EXPECT_EQ(scale_integer(7, 1, 2), 3);
    EXPECT_EQ(scale_integer(UINT64_MAX, UINT64_MAX, 1), kScaledMax);
}

}  // namespace
}  // namespace dibs::ctl::demo
