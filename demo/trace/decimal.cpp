// demo/trace/decimal.cpp -- parses decimal digits into integers.
// SPDX-License-Identifier: Apache-2.0
#include "demo/trace/decimal.hpp"

#include <array>
#include <cassert>
#include <cstddef>

namespace dibs::ctl::demo {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kLargest = uint64_t{1} << 62;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

uint64_t digit(char c) {
    return static_cast<uint64_t>(c - '0');
}

// The significant digits of a number and how many places its point stands to their right.
struct Digits {
    uint64_t value = 0;
    int places = 0;
    size_t seen = 0;
};

// Takes the mantissa off the front of `text`. Digits beyond the eighteenth only move the point.
Digits take_mantissa(std::string_view* text) {
    Digits digits;
    bool fraction = false;
    size_t i = 0;
    for (; i < text->size(); ++i) {
        const char c = (*text)[i];
        if (c == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (!is_digit(c)) break;
        ++digits.seen;
        if (digits.value < kLargest / 10) {
            digits.value = digits.value * 10 + digit(c);
            digits.places -= fraction ? 1 : 0;
        } else {
            digits.places += fraction ? 0 : 1;
        }
    }
    text->remove_prefix(i);
    return digits;
}

bool take_sign(std::string_view* text) {
    if (text->empty() || (text->front() != '-' && text->front() != '+')) return false;
    const bool negative = text->front() == '-';
    text->remove_prefix(1);
    return negative;
}

// An exponent such as "e-05", or nothing at all (0). No value if it is malformed or absurd.
std::optional<int> take_exponent(std::string_view text) {
    if (text.empty()) return 0;
    if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
    text.remove_prefix(1);
    const bool negative = take_sign(&text);
    if (text.empty() || text.size() > 3) return std::nullopt;
    int value = 0;
    for (const char c : text) {
        if (!is_digit(c)) return std::nullopt;
        value = value * 10 + static_cast<int>(digit(c));
    }
    return negative ? -value : value;
}

// Reads exactly `count` digits at `place`; advances it.
std::optional<int64_t> take_digits(std::string_view text, size_t* place, size_t count) {
    if (text.size() < *place + count) return std::nullopt;
    int64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
        const char c = text[*place + i];
        if (!is_digit(c)) return std::nullopt;
        value = value * 10 + static_cast<int64_t>(digit(c));
    }
    *place += count;
    return value;
}

bool is_leap(int64_t year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int64_t days_in_month(int64_t year, int64_t month) {
    static constexpr std::array<int64_t, 12> kDays = {
        31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return kDays[static_cast<size_t>(month - 1)] + (month == 2 && is_leap(year) ? 1 : 0);
}

int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
    const int64_t past = year - 1;
    int64_t days = past * 365 + past / 4 - past / 100 + past / 400 - 719'162;
    for (int64_t m = 1; m < month; ++m)
        days += days_in_month(year, m);
    return days + day - 1;
}

}  // namespace

std::optional<int64_t> parse_decimal(std::string_view text, int decimals) {
    const bool negative = take_sign(&text);
    const Digits digits = take_mantissa(&text);
    const std::optional<int> exponent = take_exponent(text);
    if (digits.seen == 0 || !exponent) return std::nullopt;
    uint64_t value = digits.value;
    int shift = digits.places + *exponent + decimals;
    for (; shift > 0 && value != 0; --shift) {
        if (value > kLargest / 10) return std::nullopt;
        value *= 10;
    }
    for (; shift < 0 && value != 0; ++shift)
        value /= 10;
    const auto result = static_cast<int64_t>(value);
    return negative ? -result : result;
}

std::optional<int64_t> parse_whole(std::string_view text) {
    const std::optional<int64_t> value = parse_decimal(text, 0);
    const std::optional<int64_t> billionths = parse_decimal(text, 9);
    if (!value || !billionths || *billionths != *value * kNsPerSecond) return std::nullopt;
    return value;
}

std::optional<int64_t> parse_timestamp(std::string_view text) {
    if (!text.empty() && text.back() == 'Z') text.remove_suffix(1);
    constexpr std::array<size_t, 6> kWidths = {4, 2, 2, 2, 2, 2};
    constexpr std::string_view kBehind = "--*::";
    std::array<int64_t, 6> part{};
    size_t place = 0;
    for (size_t i = 0; i < kWidths.size(); ++i) {
        const std::optional<int64_t> value = take_digits(text, &place, kWidths[i]);
        if (!value) return std::nullopt;
        part[i] = *value;
        if (i == kBehind.size()) break;
        if (place >= text.size()) return std::nullopt;
        const char c = text[place++];
        if (kBehind[i] == '*' ? (c != ' ' && c != 'T') : c != kBehind[i]) return std::nullopt;
    }
    const auto [year, month, day, hour, minute, second] = part;
    if (year < 1970 || year > 2100 || month < 1 || month > 12 || day < 1 ||
        day > days_in_month(year, month) || hour > 23 || minute > 59 || second > 60) {
        return std::nullopt;
    }
    int64_t fraction_ns = 0;
    if (place < text.size()) {
        if (text[place] != '.') return std::nullopt;
        for (const char c : text.substr(place + 1)) {
            if (!is_digit(c)) return std::nullopt;
        }
        const std::optional<int64_t> value = parse_decimal(text.substr(place), 9);
        if (!value) return std::nullopt;
        fraction_ns = *value;
    }
    const int64_t days = days_since_1970(year, month, day);
    return ((days * 24 + hour) * 3600 + minute * 60 + second) * kNsPerSecond + fraction_ns;
}

uint64_t scale_integer(uint64_t value, uint64_t numerator, uint64_t denominator) {
    assert(denominator > 0);
    const Wide result = static_cast<Wide>(value) * numerator / denominator;
    return result > kScaledMax ? kScaledMax : static_cast<uint64_t>(result);
}

}  // namespace dibs::ctl::demo
