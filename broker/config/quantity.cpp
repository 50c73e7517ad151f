// broker/config/quantity.cpp -- parses and prints durations, sizes, money and whole numbers.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/quantity.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <utility>

namespace dibs {

namespace {

constexpr size_t kMicroDigits = 6;

struct Unit {
    std::string_view name;
    uint64_t factor;
};

// Largest first.
constexpr std::array<Unit, 6> kTimes = {{{"h", 3'600'000'000'000},
                                         {"min", 60'000'000'000},
                                         {"s", 1'000'000'000},
                                         {"ms", 1'000'000},
                                         {"us", 1'000},
                                         {"ns", 1}}};
constexpr std::array<Unit, 5> kSizes = {
    {{"TiB", 1ULL << 40}, {"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}, {"B", 1}}};

// Takes "<digits><unit>" from the front of `text`.
std::optional<uint64_t> take_part(std::string_view& text, std::span<const Unit> units) {
    uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(stop - text.data()));
    const size_t letters = std::min(text.find_first_of("0123456789"), text.size());
    const std::string_view name = text.substr(0, letters);
    for (const Unit& unit : units) {
        if (unit.name != name) continue;
        if (number > std::numeric_limits<uint64_t>::max() / unit.factor) return std::nullopt;
        text.remove_prefix(letters);
        return number * unit.factor;
    }
    return std::nullopt;
}

std::string show(uint64_t value, std::span<const Unit> units) {
    for (const Unit& unit : units) {
        if (value != 0 && value % unit.factor == 0) {
            return std::to_string(value / unit.factor) + std::string(unit.name);
        }
    }
    return "0" + std::string(units.back().name);
}

std::optional<uint64_t> parse(std::string_view text, std::span<const Unit> units) {
    if (text.empty()) return std::nullopt;
    uint64_t sum = 0;
    while (!text.empty()) {
        const auto part = take_part(text, units);
        if (!part || *part > std::numeric_limits<uint64_t>::max() - sum) return std::nullopt;
        sum += *part;
    }
    return sum;
}

// The same with numbers that cannot be too large.
std::string with_ones(std::string_view text) {
    std::string ones;
    for (const char letter : text) {
        const bool digit = letter >= '0' && letter <= '9';
        if (!digit || ones.empty() || ones.back() != '1') ones += digit ? '1' : letter;
    }
    return ones;
}

}  // namespace

std::optional<uint64_t> parse_duration(std::string_view text) {
    return parse(text, kTimes);
}

std::string no_duration(std::string_view text) {
    const std::string ones = with_ones(text);
    const std::string start = "\"" + std::string(text) + "\" is ";
    if (parse_duration(ones)) {
        const auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
        return start + "too long: at most " + std::to_string(most / kTimes.front().factor) + "h";
    }
    return start + "not a duration: write a number with ns, us, ms, s, min or h, such as \"250ms\"";
}

std::string show_duration(uint64_t ns) {
    return show(ns, kTimes);
}

std::optional<uint64_t> parse_size(std::string_view text) {
    if (!text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos) {
        return parse(std::string(text) + "B", kSizes);
    }
    return parse(text, kSizes);
}

std::string no_size(std::string_view text, uint64_t most) {
    if (text.starts_with('-') && parse_size(with_ones(text.substr(1)))) return "it is negative";
    if (parse_size(with_ones(text)))
        return "it is too large: " + std::to_string(most) + " is the most";
    const size_t letters = text.find_first_not_of("0123456789");
    if (letters == 0 || letters == std::string_view::npos || text[letters] == '.') return "";
    return "\"" + std::string(text.substr(letters)) +
           "\" is not a unit: write KiB, MiB, GiB or TiB, or a number alone";
}

std::string show_size(uint64_t bytes) {
    return show(bytes, kSizes);
}

std::string show_amount(uint64_t amount) {
    return amount != 0 && amount % 1024 == 0 ? show_size(amount) : std::to_string(amount);
}

std::optional<int64_t> parse_micros(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    const size_t point = std::min(text.find('.'), text.size());
    const std::string_view whole = text.substr(0, point);
    const std::string_view part = point < text.size() ? text.substr(point + 1) : "0";
    const auto digits = [](std::string_view word) {
        return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
    };
    if (!digits(whole) || !digits(part) || whole.size() > 12 || part.size() > kMicroDigits) {
        return std::nullopt;
    }
    int64_t micros = 0;
    for (const char digit : whole)
        micros = micros * 10 + (digit - '0');
    for (size_t i = 0; i < kMicroDigits; ++i)
        micros = micros * 10 + (i < part.size() ? part[i] - '0' : 0);
    return negative ? -micros : micros;
}

std::string show_micros(int64_t micros) {
    const auto size =
        micros < 0 ? 0 - static_cast<uint64_t>(micros) : static_cast<uint64_t>(micros);
    std::string part = std::to_string(size % 1'000'000 + 1'000'000).substr(1);
    part.erase(part.find_last_not_of('0') + 1);
    const std::string whole = (micros < 0 ? "-" : "") + std::to_string(size / 1'000'000);
    return part.empty() ? whole : whole + "." + part;
}

std::optional<uint64_t> parse_number(std::string_view text, NumberRange range) {
    uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end) return std::nullopt;
    if (number < range.least || number > range.most) return std::nullopt;
    return number;
}

std::string no_number(std::string_view text, NumberRange range) {
    return "\"" + std::string(text) + "\" is not a number from " + std::to_string(range.least) +
           " to " + std::to_string(range.most);
}

}  // namespace dibs
