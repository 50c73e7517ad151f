// broker/terminal_text.cpp -- UTF-8, character by character.
// SPDX-License-Identifier: Apache-2.0
#include "broker/terminal_text.hpp"

#include <algorithm>
#include <cstdint>

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

bool is_control(std::string_view character) {
    const auto first = static_cast<unsigned char>(character[0]);
    if (character.size() == 1) return first < 0x20 || first == 0x7f;
    return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

std::string harmless(std::string_view text) {
    std::string clean;
    while (!text.empty()) {
        const size_t size = utf8_size(text);
        const std::string_view one = text.substr(0, std::max<size_t>(size, 1));
        if (size == 0 || is_control(one)) {
            clean += '?';
        } else {
            clean += one;
        }
        text.remove_prefix(one.size());
    }
    return clean;
}

}  // namespace dibs
