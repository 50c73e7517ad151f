// broker/config/config_lines.hpp -- a configuration of which some lines are no TOML: each of them
// is told, and what is wrong with the others too.
//
// Included by config_text.cpp alone: TOML is slow to compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <toml++/toml.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

#include "broker/config/config_section.hpp"

namespace dibs {

// Each costs a look at the whole text, and who has written so many has written something else.
constexpr size_t kNoTomlMax = 16;

inline bool is_toml(std::string_view text) {
    try {
        (void)toml::parse(text);
        return true;
    } catch (const toml::parse_error&) {
        return false;
    }
}

// The lines of a text, as places in it.
inline std::string_view line_at(std::string_view text, uint32_t number) {
    size_t at = 0;
    for (uint32_t line = 1; line < number && at < text.size(); ++line)
        at = std::min(text.find('\n', at), text.size() - 1) + 1;
    return text.substr(at, std::min(text.find('\n', at), text.size()) - at);
}

// "; text needs quotes: name = \"gpu\"" of a line such as name = gpu. One such as live = true is
// TOML: what is wrong with it is something else.
inline std::string unquoted(std::string_view line) {
    const std::regex form(R"(\s*([A-Za-z0-9_-]+)\s*=\s*([A-Za-z][A-Za-z0-9_.-]*)\s*(#.*)?)");
    std::cmatch found;
    if (!std::regex_match(line.data(), line.data() + line.size(), found, form)) return "";
    if (is_toml(line)) return "";
    return "; text needs quotes: " + found[1].str() + " = " + in_quotes(found[2].str());
}

// A file's mode is text, and looks like a number that TOML does not have.
inline std::string unquoted_mode(std::string_view line) {
    const std::regex form(R"(\s*([A-Za-z0-9_-]*mode)\s*=\s*(0[0-7]+)\s*(#.*)?)");
    std::cmatch found;
    if (!std::regex_match(line.data(), line.data() + line.size(), found, form)) return "";
    return "; it wants quotes: " + found[1].str() + " = " + in_quotes(found[2].str());
}

// A text that is not closed goes on to the end of its line, or of the file.
inline std::string unclosed(std::string_view line, std::string_view description) {
    const bool at_end = description.find("control characters") != std::string_view::npos ||
                        description.find("end-of-file") != std::string_view::npos;
    char open = '\0';
    for (size_t at = 0; at < line.size() && at_end; ++at) {
        if (open == '\0' && line[at] == '#') break;
        if (open == '"' && line[at] == '\\') {
            ++at;
        } else if (line[at] == open) {
            open = '\0';
        } else if (open == '\0' && (line[at] == '"' || line[at] == '\'')) {
            open = line[at];
        }
    }
    return open == '\0' ? "" : std::string("; a closing ") + open + " is missing on this line";
}

inline std::string hint_for(std::string_view line, std::string_view description) {
    const std::string text = unquoted(line);
    const std::string mode = text.empty() ? unquoted_mode(line) : text;
    return mode.empty() ? unclosed(line, description) : mode;
}

// Nothing where the text is no TOML: the first mistake has been added.
inline std::optional<toml::table> parsed(const std::string& text, Mistakes& mistakes) {
    try {
        return toml::parse(text, mistakes.file);
    } catch (const toml::parse_error& error) {
        const auto number = static_cast<uint32_t>(error.source().begin.line);
        mistakes.add(error.source().begin,
                     std::string(error.description()) +
                         hint_for(line_at(text, number), error.description()));
        mistakes.no_toml_at = error.source().begin;
        return std::nullopt;
    }
}

// A key whose line is no TOML by itself is left out, and the others are looked at. Where the
// mistake reaches further than its line, what follows from it would be told as mistakes of their
// own: nothing then, and nothing where the line is a table's heading.
inline std::optional<toml::table> parsed_without_mistakes(std::string& text, Mistakes& mistakes) {
    std::optional<toml::table> table;
    uint32_t last = 0;
    while (!table) {
        if (mistakes.lines.size() == kNoTomlMax) {
            mistakes.lines.back() += "; what stands behind it is not looked at";
            return std::nullopt;
        }
        const uint32_t number = static_cast<uint32_t>(mistakes.no_toml_at.line);
        const std::string_view line = line_at(text, number);
        const size_t begin = line.find_first_not_of(" \t");
        const bool is_key = begin != std::string_view::npos && line[begin] != '[';
        const bool twice = mistakes.lines.back().find("redefine") != std::string::npos;
        if (number <= last || !is_key || (is_toml(line) && !twice)) return std::nullopt;
        last = number;
        std::fill_n(text.begin() + (line.data() - text.data()), line.size(), ' ');
        table = parsed(text, mistakes);
    }
    return table;
}

}  // namespace dibs
