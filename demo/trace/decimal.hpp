// demo/trace/decimal.hpp -- parses numbers and dates of trace files into integers.
// Without floating point, a trace means the same on every machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dibs::ctl::demo {

inline constexpr int64_t kNsPerSecond = 1'000'000'000;
inline constexpr int64_t kNsPerMillisecond = 1'000'000;

// A number in units of 10^-decimals, cut (not rounded) towards zero: parse_decimal("1.25", 1) is
// 12. Sign, fraction and exponent are understood; spaces are not. Nothing if `text` is anything
// else or the result needs more than 62 bits.
std::optional<int64_t> parse_decimal(std::string_view text, int decimals);

// Seconds as nanoseconds.
inline std::optional<int64_t> parse_seconds(std::string_view text) {
    return parse_decimal(text, 9);
}

// A whole number: "3", "-1", "3.0", but not "3.5".
std::optional<int64_t> parse_whole(std::string_view text);

// "2023-11-16 18:17:03.9799600" (or with a T, or with a Z behind) as nanoseconds since 1970 UTC.
std::optional<int64_t> parse_timestamp(std::string_view text);

// value × numerator / denominator, without overflow in between and cut to kScaledMax.
// denominator > 0.
inline constexpr uint64_t kScaledMax = uint64_t{1} << 62;
uint64_t scale_integer(uint64_t value, uint64_t numerator, uint64_t denominator);

}  // namespace dibs::ctl::demo
