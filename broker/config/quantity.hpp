// broker/config/quantity.hpp -- parses and prints durations, sizes, money and whole numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dibs {

// "250ms", "1min30s"; units ns, us, ms, s, min, h. Nothing if it is not one, or beyond 64 bits.
std::optional<uint64_t> parse_duration(std::string_view text);
// Why parse_duration, or an int64_t of nanoseconds, does not take it: a sentence without its end.
std::string no_duration(std::string_view text);
std::string show_duration(uint64_t ns);  // in the largest unit that divides it

// "4096", "64KiB", "4MiB"; units B, KiB, MiB, GiB.
std::optional<uint64_t> parse_size(std::string_view text);
std::string show_size(uint64_t bytes);
// Why parse_size does not take it, or it is above `most`: a sentence without its end. Empty: it is
// not a number at all.
std::string no_size(std::string_view text, uint64_t most);
// Of a resource: a size where it is a whole number of KiB, else the number alone.
std::string show_amount(uint64_t amount);

// "3", "-0.5": millionths, exactly. Nothing if it is no number, has more than six decimals, or is
// beyond 64 bits.
std::optional<int64_t> parse_micros(std::string_view text);
std::string show_micros(int64_t micros);

// The whole numbers that an option takes.
struct NumberRange {
    uint64_t least = 0;
    uint64_t most = INT64_MAX;  // far above whatever is counted, and can be read
};
// "17": digits alone. Nothing if it is anything else, a sign before it too, or outside.
std::optional<uint64_t> parse_number(std::string_view text, NumberRange range);
// What to say then, behind the option: "\"-5\" is not a number from 0 to 65535".
std::string no_number(std::string_view text, NumberRange range);

}  // namespace dibs
