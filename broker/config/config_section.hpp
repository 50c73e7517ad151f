// broker/config/config_section.hpp -- the keys of one table of the configuration file, read with
// their types and ranges, and everything wrong with them.
//
// Each read names its key, so that in the end the section knows which keys exist and can say which
// one an unknown key was probably meant to be. Included by config_text.cpp alone: TOML is slow to
// compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <toml++/toml.h>
#include <initializer_list>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/config/quantity.hpp"
#include "broker/text/spelling.hpp"

namespace dibs {

struct Mistakes {
    std::string file;
    std::vector<std::string> lines;
    bool parts_are_missing = false;  // what is no TOML was left out: nothing is told as missing
    toml::source_position no_toml_at = {};  // the last place

    void add(const toml::source_position& at, const std::string& what) {
        std::ostringstream line;
        line << file << ':' << at.line << ':' << at.column << ": " << what;
        if (lines.empty() || lines.back() != line.str()) lines.push_back(line.str());
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

    // Says which keys nobody asked for.
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

}  // namespace dibs
