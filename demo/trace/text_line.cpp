// demo/trace/text_line.cpp -- splits text into lines and lines into fields.
// SPDX-License-Identifier: Apache-2.0
#include "demo/trace/text_line.hpp"

#include <cstddef>

namespace dibs::ctl::demo {

namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr size_t kShownMax = 32;

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

LineWalk::LineWalk(std::string_view text) : rest_(text) {
    if (rest_.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
        rest_.remove_prefix(kByteOrderMark.size());
    }
}

bool LineWalk::next(std::string_view* line) {
    if (rest_.empty()) return false;
    ++number_;
    const size_t end = rest_.find('\n');
    *line = trimmed(rest_.substr(0, end));
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    return true;
}

std::vector<std::string_view> split_blanks(std::string_view line) {
    std::vector<std::string_view> fields;
    size_t place = line.find_first_not_of(kBlanks);
    while (place != std::string_view::npos) {
        const size_t end = line.find_first_of(kBlanks, place);
        fields.push_back(line.substr(place, end - place));
        place = line.find_first_not_of(kBlanks, end);
    }
    return fields;
}

std::vector<std::string> split_commas(std::string_view line) {
    std::vector<std::string> fields;
    std::string field;
    bool quoted = false;
    for (size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (c == '"') {
            const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
            if (doubled) field.push_back(line[++i]);
            if (!doubled) quoted = !quoted;
        } else if (c == ',' && !quoted) {
            fields.emplace_back(trimmed(field));
            field.clear();
        } else {
            field.push_back(c);
        }
    }
    fields.emplace_back(trimmed(field));
    return fields;
}

std::string shown(std::string_view field) {
    std::string text = "\"";
    for (const char c : field.substr(0, kShownMax)) {
        text.push_back(c >= ' ' && c <= '~' ? c : '?');
    }
    if (field.size() > kShownMax) text += "...";
    return text + "\"";
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
        if (lower(a[i]) != lower(b[i])) return false;
    }
    return true;
}

}  // namespace dibs::ctl::demo
