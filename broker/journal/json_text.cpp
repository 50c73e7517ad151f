// broker/journal/json_text.cpp -- writes JSON text: commas, quotes, escapes.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/json_text.hpp"

#include "broker/text/terminal_text.hpp"

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

// Beyond U+FFFF as JSON has it: two halves.
void JsonText::escaped(uint32_t point) {
    static constexpr char kHex[] = "0123456789abcdef";
    if (point > 0xffff) {
        escaped(0xd800 + ((point - 0x10000) >> 10U));
        return escaped(0xdc00 + ((point - 0x10000) & 0x3ffU));
    }
    line_ += "\\u";
    for (const uint32_t shift : {12U, 8U, 4U, 0U})
        line_ += kHex[point >> shift & 15U];
}

void JsonText::quoted(std::string_view value) {
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
        } else if (const std::string_view one = value.substr(i, size); is_unprintable(one)) {
            escaped(code_point(one));
            i += size - 1;
        } else {
            line_ += one;
            i += size - 1;
        }
    }
    line_ += '"';
}

}  // namespace dibs::ctl
