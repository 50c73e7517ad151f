// broker/journal/strict_json.cpp -- parses a line a second time, strictly, beside the schema.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/strict_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "broker/journal/journal_error.hpp"
#include "broker/journal/json_text.hpp"

namespace dibs::ctl {
namespace {

using Json = nlohmann::ordered_json;

enum class Kind { kNothing, kTruth, kWhole, kFraction, kText, kObject, kList };

std::string_view name_of(Kind kind) {
    switch (kind) {
        case Kind::kNothing:
            return "null";
        case Kind::kTruth:
            return "true or false";
        case Kind::kWhole:
            return "a whole number";
        case Kind::kFraction:
            return "a fraction";
        case Kind::kText:
            return "text";
        case Kind::kObject:
            return "an object";
        case Kind::kList:
            break;
    }
    return "a list";
}

Kind wanted_for(const flatbuffers::Type& type) {
    switch (type.base_type) {
        case flatbuffers::BASE_TYPE_BOOL:
            return Kind::kTruth;
        case flatbuffers::BASE_TYPE_STRING:
            return Kind::kText;
        case flatbuffers::BASE_TYPE_STRUCT:
            return Kind::kObject;
        case flatbuffers::BASE_TYPE_VECTOR:
            return Kind::kList;
        default:
            return Kind::kWhole;
    }
}

// Told of each value in the order of the text; stands in one object or list at a time.
class Strict : public nlohmann::json_sax<Json> {
  public:
    Strict(const flatbuffers::StructDef& root, bool numbers_of_slots)
        : root_(root), numbers_of_slots_(numbers_of_slots) {}

    bool null() override { return take(Kind::kNothing); }
    bool boolean(bool) override { return take(Kind::kTruth); }
    bool number_integer(number_integer_t) override { return take(Kind::kWhole); }
    bool number_unsigned(number_unsigned_t) override { return take(Kind::kWhole); }
    bool number_float(number_float_t, const string_t&) override { return take(Kind::kFraction); }
    bool binary(binary_t&) override { return true; }  // no JSON has it
    bool string(string_t& text) override {
        if (const flatbuffers::EnumDef* words = words_wanted()) return take_word(text, *words);
        return take(Kind::kText);
    }

    bool start_object(size_t) override {
        if (levels_.empty()) {
            levels_.push_back({&root_});
            return true;
        }
        take(Kind::kObject);
        levels_.push_back({type_wanted().struct_def});
        return true;
    }
    bool key(string_t& name) override {
        Level& level = levels_.back();
        if (std::find(level.seen.begin(), level.seen.end(), name) != level.seen.end()) {
            throw JournalError(json_string(name) + " is given twice");
        }
        level.seen.push_back(name);
        level.field = level.object == nullptr ? nullptr : level.object->fields.Lookup(name);
        if (level.field == nullptr) throw JournalError("unknown field: " + json_string(name));
        return true;
    }
    bool end_object() override { return leave(); }
    bool start_array(size_t) override {
        take(Kind::kList);
        levels_.push_back({nullptr, levels_.back().field, true, {}});
        return true;
    }
    bool end_array() override { return leave(); }

    bool parse_error(size_t position,
                     const std::string&,
                     const nlohmann::detail::exception& error) override {
        // "[…] parse error at line 1, column 7: what"
        const std::string_view all = error.what();
        const size_t column = all.find("column");
        const size_t end = all.find(": ", column == std::string_view::npos ? 0 : column);
        const auto what = end == std::string_view::npos ? all : all.substr(end + 2);
        throw JournalError(std::string(what), static_cast<uint32_t>(position));
    }

  private:
    struct Level {
        const flatbuffers::StructDef* object = nullptr;
        const flatbuffers::FieldDef* field = nullptr;  // of the object; of the list: its own
        bool is_list = false;
        std::vector<std::string> seen = {};
    };

    bool leave() {
        levels_.pop_back();
        return true;
    }
    [[nodiscard]] flatbuffers::Type type_wanted() const {
        const Level& level = levels_.back();
        const flatbuffers::Type& type = level.field->value.type;
        return level.is_list ? type.VectorType() : type;
    }
    [[nodiscard]] const flatbuffers::EnumDef* words_wanted() const {
        if (levels_.empty()) return nullptr;
        const flatbuffers::Type type = type_wanted();
        return wanted_for(type) == Kind::kWhole ? type.enum_def : nullptr;
    }
    [[nodiscard]] std::string place() const {
        std::string path;
        for (const Level& level : levels_) {
            if (level.is_list) continue;
            path += (path.empty() ? "" : ".") + level.field->name;
        }
        return json_string(path);
    }
    [[nodiscard]] bool may_be_number_of_slot() const {
        const std::string& name = levels_.back().field->name;
        return numbers_of_slots_ && (name == "slot" || name == "slots" || name == "ready");
    }

    bool take(Kind kind) const {
        if (levels_.empty()) throw JournalError("a line is an object");
        const Kind wanted = wanted_for(type_wanted());
        if (kind == wanted) return true;
        if (kind == Kind::kWhole && wanted == Kind::kText && may_be_number_of_slot()) return true;
        throw JournalError(place() + " is " + std::string(name_of(kind)) + ", not " +
                           std::string(name_of(wanted)));
    }
    bool take_word(const std::string& text, const flatbuffers::EnumDef& words) const {
        if (words.Lookup(text) != nullptr) return true;
        throw JournalError(place() + " is " + json_string(text) + ", which is none of its values");
    }

    const flatbuffers::StructDef& root_;
    bool numbers_of_slots_;
    std::vector<Level> levels_;
};

}  // namespace

void refuse_lax(std::string_view line,
                const flatbuffers::StructDef& definition,
                bool numbers_of_slots) {
    Strict strict(definition, numbers_of_slots);
    (void)Json::sax_parse(line.begin(), line.end(), &strict);
}

}  // namespace dibs::ctl
