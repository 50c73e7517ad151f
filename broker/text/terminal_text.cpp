// broker/text/terminal_text.cpp -- escapes text for a terminal, one UTF-8 character at a time.
// SPDX-License-Identifier: Apache-2.0
#include "broker/text/terminal_text.hpp"

#include <algorithm>
#include <iterator>

namespace dibs {

namespace {

// How many bytes follow the first one of a character; -1: it cannot be a first one.
int followers(unsigned char first) {
    if (first < 0x80) return 0;
    if (first >= 0xc2 && first < 0xe0) return 1;
    if (first >= 0xe0 && first < 0xf0) return 2;
    return first >= 0xf0 && first < 0xf5 ? 3 : -1;
}

}  // namespace

size_t utf8_size(std::string_view bytes) {
    if (bytes.empty()) return 0;
    const auto first = static_cast<unsigned char>(bytes[0]);
    const int count = followers(first);
    if (count < 0 || bytes.size() <= static_cast<size_t>(count)) return 0;
    uint32_t point = count == 0 ? first : first & (0x3fU >> count);
    for (int k = 1; k <= count; ++k) {
        const auto next = static_cast<unsigned char>(bytes[static_cast<size_t>(k)]);
        if ((next & 0xc0) != 0x80) return 0;
        point = point << 6 | (next & 0x3f);
    }
    const bool overlong = (count == 2 && point < 0x800) || (count == 3 && point < 0x10000);
    const bool none = point > 0x10ffff || (point >= 0xd800 && point < 0xe000);
    return overlong || none ? 0 : static_cast<size_t>(count) + 1;
}

uint32_t code_point(std::string_view character) {
    const auto first = static_cast<unsigned char>(character[0]);
    if (character.size() == 1) return first;
    uint32_t point = first & (0x7fU >> character.size());
    for (const char next : character.substr(1))
        point = point << 6 | (static_cast<unsigned char>(next) & 0x3fU);
    return point;
}

bool is_unprintable(std::string_view character) {
    struct Range {
        uint32_t first;
        uint32_t last;
    };
    // Unicode 15: categories Cc, Cf, Zl and Zp, and Default_Ignorable_Code_Point.
    static constexpr Range kRanges[] = {
        {0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},
        {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},
        {0x890, 0x891},     {0x8e2, 0x8e2},     {0x115f, 0x1160},   {0x17b4, 0x17b5},
        {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
        {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
        {0xfff0, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},
        {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    const uint32_t point = code_point(character);
    return std::any_of(std::begin(kRanges), std::end(kRanges), [&](const Range& range) {
        return point >= range.first && point <= range.last;
    });
}

std::string harmless(std::string_view text) {
    std::string clean;
    while (!text.empty()) {
        const size_t size = utf8_size(text);
        const std::string_view one = text.substr(0, std::max<size_t>(size, 1));
        if (size == 0 || is_unprintable(one)) {
            clean += '?';
        } else {
            clean += one;
        }
        text.remove_prefix(one.size());
    }
    return clean;
}

std::string harmless_lines(std::string_view text) {
    std::string clean;
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
        clean += harmless(text.substr(0, end)) + '\n';
        text.remove_prefix(end + 1);
    }
    return clean + harmless(text);
}

}  // namespace dibs
