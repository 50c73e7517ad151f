// broker/ctl/json_text.cpp -- JSON as text: commas, quotes, escapes.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/json_text.hpp"

namespace dibs::ctl {

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

// Bytes from 0x80 on are passed through: names are UTF-8 as far as their author made them so.
void JsonText::quoted(std::string_view value) {
    static constexpr char kHex[] = "0123456789abcdef";
    line_ += '"';
    for (char c : value) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            line_ += '\\';
            line_ += c;
        } else if (c == '\n') {
            line_ += "\\n";
        } else if (c == '\t') {
            line_ += "\\t";
        } else if (byte < 0x20 || byte == 0x7f) {
            line_ += "\\u00";
            line_ += kHex[byte >> 4];
            line_ += kHex[byte & 15];
        } else {
            line_ += c;
        }
    }
    line_ += '"';
}

}  // namespace dibs::ctl
