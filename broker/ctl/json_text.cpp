// broker/ctl/json_text.cpp -- JSON as text: commas, quotes, escapes.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/json_text.hpp"

namespace dibs::ctl {

std::string json_string(std::string_view value) {
    JsonText text;
    text.text({}, value);
    return text.line();
}

void JsonText::text(std::string_view key, std::string_view value) {
    name(key);
    quoted(value);
}

void JsonText::number(std::string_view key, uint64_t value) {
    name(key);
    line_ += std::to_string(value);
}

void JsonText::signed_number(std::string_view key, int64_t value) {
    name(key);
    line_ += std::to_string(value);
}

void JsonText::truth(std::string_view key, bool value) {
    name(key);
    line_ += value ? "true" : "false";
}

void JsonText::nothing(std::string_view key) {
    name(key);
    line_ += "null";
}

void JsonText::open(std::string_view key, char bracket) {
    name(key);
    line_ += bracket;
}

void JsonText::close(char bracket) {
    line_ += bracket;
}

void JsonText::name(std::string_view key) {
    if (!line_.empty() && line_.back() != '{' && line_.back() != '[') line_ += ',';
    if (key.empty()) return;
    quoted(key);
    line_ += ':';
}

void JsonText::quoted(std::string_view value) {
    static constexpr char kHex[] = "0123456789abcdef";
    line_ += '"';
    for (size_t i = 0; i < value.size(); ++i) {
        const char c = value[i];
        if (c == '"' || c == '\\') {
            line_ += '\\';
            line_ += c;
        } else if (c == '\n') {
            line_ += "\\n";
        } else if (c == '\t') {
            line_ += "\\t";
        } else if (const size_t size = utf8_size(value.substr(i)); size == 0) {
            line_ += "\\ufffd";
        } else if (const std::string_view one = value.substr(i, size); is_control(one)) {
            const auto point =
                static_cast<unsigned char>(one.back());  // its last byte is its number
            line_ += "\\u00";
            line_ += kHex[point >> 4];
            line_ += kHex[point & 15];
            i += size - 1;
        } else {
            line_ += one;
            i += size - 1;
        }
    }
    line_ += '"';
}

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

}  // namespace dibs::ctl
