// broker/config/config_section.hpp -- reads one table of the file, and reports lines outside TOML.
//
// Each read names its key, so that in the end the section knows which keys exist and can suggest
// the one that an unknown key was probably meant to be. In a file with lines that are not TOML each
// such line is reported, and the mistakes in the other lines too. Included by three
// sources alone: TOML is slow to compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <toml++/toml.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/config/quantity.hpp"
#include "broker/text/spelling.hpp"

namespace dibs {

// In the order of the file, whatever is read first.
struct Mistakes {
    std::string file;
    std::vector<std::string> lines = {};
    std::vector<std::pair<uint32_t, uint32_t>> places = {};  // of the lines: line, column
    bool parts_are_missing = false;  // lines outside TOML were left out: no key is reported as
                                     // missing
    toml::source_position no_toml_at = {};  // the last place

    void add(const toml::source_position& at, const std::string& what) {
        std::ostringstream line;
        line << file << ':' << at.line << ':' << at.column << ": " << what;
        const std::pair<uint32_t, uint32_t> place(at.line, at.column);
        const auto behind = std::upper_bound(places.begin(), places.end(), place) - places.begin();
        if (behind != 0 && lines[static_cast<size_t>(behind) - 1] == line.str()) return;
        lines.insert(lines.begin() + behind, line.str());
        places.insert(places.begin() + behind, place);
    }
    void add(const toml::node& node, const std::string& what) { add(node.source().begin, what); }
};

inline std::string in_quotes(std::string_view text) {
    return "\"" + std::string(text) + "\"";
}

inline std::string type_of(const toml::node& node) {
    switch (node.type()) {
        case toml::node_type::table:
            return "a table";
        case toml::node_type::array:
            return "an array";
        case toml::node_type::string:
            return "a string";
        case toml::node_type::integer:
            return "an integer";
        case toml::node_type::floating_point:
            return "a float";
        case toml::node_type::boolean:
            return "a boolean";
        default:
            return "a date or time";
    }
}

class Section {
  public:
    Section(const toml::table& table, std::string what, Mistakes& mistakes)
        : table_(table), what_(std::move(what)), mistakes_(mistakes) {}

    const toml::node* find(std::string_view key) {
        known_.insert(key);
        return table_.get(key);
    }
    bool has(std::string_view key) { return find(key) != nullptr; }

    // Whether there is one, and it is a string.
    bool text(std::string_view key, std::string& out) {
        const toml::node* node = find(key);
        if (node == nullptr) return false;
        const auto value = node->value_exact<std::string>();
        if (value) {
            out = *value;
        } else {
            wrong_type(key, *node, "a string");
        }
        return value.has_value();
    }
    void flag(std::string_view key, bool& out) {
        const toml::node* node = find(key);
        if (node == nullptr) return;
        if (const auto value = node->value_exact<bool>())
            out = *value;
        else
            wrong_type(key, *node, "true or false");
    }
    void count(std::string_view key, uint32_t& out, uint32_t least, uint32_t most) {
        const toml::node* node = find(key);
        if (node == nullptr) return;
        const auto value = node->value_exact<int64_t>();
        if (!value) return wrong_type(key, *node, "an integer");
        if (*value < least || *value > most) {
            return out_of_range(key, *node, std::to_string(least), std::to_string(most));
        }
        out = static_cast<uint32_t>(*value);
    }
    void duration(std::string_view key, uint64_t& out, uint64_t least, uint64_t most) {
        const toml::node* node = find(key);
        if (node == nullptr) return;
        const auto text = node->value_exact<std::string>();
        if (!text) return wrong_type(key, *node, "a duration in quotes, such as \"2s\"");
        const auto value = parse_duration(*text);
        if (!value) {
            return mistakes_.add(*node,
                                 std::string(key) + ": " + in_quotes(*text) +
                                     " is not a duration: write a number with ns, us, ms, s, min "
                                     "or h, such as \"250ms\"");
        }
        if (*value < least || *value > most) {
            return out_of_range(key, *node, show_duration(least), show_duration(most));
        }
        out = *value;
    }
    void size(std::string_view key, uint64_t& out, uint64_t least, uint64_t most) {
        const toml::node* node = find(key);
        if (node == nullptr) return;
        std::optional<uint64_t> value;
        if (const auto bytes = node->value_exact<int64_t>()) {
            if (*bytes >= 0) value = static_cast<uint64_t>(*bytes);
        } else if (const auto text = node->value_exact<std::string>()) {
            value = parse_size(*text);
            if (!value) {
                return mistakes_.add(*node,
                                     std::string(key) + ": " + in_quotes(*text) +
                                         " is not a size: write bytes, or a number with B, KiB or "
                                         "MiB");
            }
        } else {
            return wrong_type(key, *node, "a size in bytes, or text such as \"64KiB\"");
        }
        if (!value || *value < least || *value > most) {
            return out_of_range(key, *node, show_size(least), show_size(most));
        }
        out = *value;
    }
    void size(std::string_view key, uint32_t& out, uint32_t least, uint32_t most) {
        uint64_t wide = out;
        size(key, wide, uint64_t{least}, uint64_t{most});
        out = static_cast<uint32_t>(wide);
    }
    // True if a word of the list was there.
    template <typename Enum>
    bool word(std::string_view key,
              Enum& out,
              std::initializer_list<std::pair<std::string_view, Enum>> words) {
        const toml::node* node = find(key);
        if (node == nullptr) return false;
        const auto text = node->value_exact<std::string>();
        if (!text) {
            wrong_type(key, *node, "a string");
            return false;
        }
        std::string allowed;
        for (const auto& [name, value] : words) {
            if (name == *text) {
                out = value;
                return true;
            }
            allowed += (allowed.empty() ? "" : ", ") + in_quotes(name);
        }
        mistakes_.add(*node, std::string(key) + ": " + in_quotes(*text) + " is none of " + allowed);
        return false;
    }

    // A key that makes no sense here, with the reason.
    void forbid(std::string_view key, const std::string& why) {
        if (const toml::node* node = find(key)) {
            mistakes_.add(key_position(key, *node), std::string(key) + ": " + why);
        }
    }
    void missing(std::string_view key) {
        if (!mistakes_.parts_are_missing)
            mistakes_.add(table_, what_ + " has no " + in_quotes(key));
    }
    void mistake(std::string_view key, const std::string& what) {
        const toml::node* node = table_.get(key);
        mistakes_.add(node != nullptr ? *node : static_cast<const toml::node&>(table_),
                      std::string(key) + ": " + what);
    }

    // Reports the keys that no read has named.
    void finish() {
        for (const auto& [key, node] : table_) {
            if (known_.count(key.str()) != 0) continue;
            std::string what = "unknown key " + in_quotes(key.str()) + " in " + what_;
            if (const auto near = nearest_word(key.str(), known_))
                what += "; did you mean " + in_quotes(*near) + "?";
            mistakes_.add(key.source().begin, what);
        }
    }

  private:
    toml::source_position key_position(std::string_view name, const toml::node& node) const {
        for (const auto& [key, value] : table_) {
            if (key.str() == name) return key.source().begin;
        }
        return node.source().begin;
    }
    void wrong_type(std::string_view key, const toml::node& node, const std::string& wanted) {
        mistakes_.add(node, std::string(key) + ": must be " + wanted + ", is " + type_of(node));
    }
    void out_of_range(std::string_view key,
                      const toml::node& node,
                      const std::string& least,
                      const std::string& most) {
        mistakes_.add(node, std::string(key) + ": must be between " + least + " and " + most);
    }

    const toml::table& table_;
    std::string what_;
    Mistakes& mistakes_;
    std::set<std::string_view> known_;
};

// Each costs a look at the whole text, and a file with so many such lines is not a configuration.
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

// A key whose line is not TOML by itself is left out, and the other lines are read. Where the
// mistake reaches further than its line, its consequences would be reported as further mistakes:
// then nothing is read, nor where the line is a table's heading.
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
