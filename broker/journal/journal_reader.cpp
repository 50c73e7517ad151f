// broker/journal/journal_reader.cpp -- parses and verifies lines, with rules no schema can state.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/journal_reader.hpp"

#include <flatbuffers/idl.h>

#include <charconv>

#include "broker/journal/expectation.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/journal/strict_json.hpp"
#include "schemas/journal_bfbs_generated.h"
#include "schemas/journal_generated.h"

namespace dibs::ctl {
namespace {

constexpr size_t kVerifierDepth = 16;
constexpr size_t kVerifierTables = 1'000'000;
constexpr std::string_view kFormat = kJournalMagic.substr(0, 3);
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // may begin a file, nothing else

flatbuffers::IDLOptions parser_options() {
    flatbuffers::IDLOptions options;
    options.strict_json = true;
    options.indent_step = -1;  // one line, no blanks between members
    return options;
}

// The parser says "1: 23: error: what"; its line is always 1 here.
JournalError parser_error(const std::string& message) {
    static constexpr std::string_view kMark = ": error: ";
    const size_t mark = message.find(kMark);
    if (mark == std::string::npos) return JournalError(message);
    const std::string what = message.substr(mark + kMark.size());
    const size_t blank = message.rfind(' ', mark);
    uint32_t column = 0;
    if (blank != std::string::npos) {
        std::from_chars(message.data() + blank + 1, message.data() + mark, column);
    }
    return JournalError(what, column);
}

// The value of a field whose type is an enum: those have one or two bytes.
int64_t value_of(const flatbuffers::Table& table, const flatbuffers::FieldDef& field) {
    const flatbuffers::voffset_t place = field.value.offset;
    switch (field.value.type.base_type) {
        case flatbuffers::BASE_TYPE_CHAR:
            return table.GetField<int8_t>(place, 0);
        case flatbuffers::BASE_TYPE_SHORT:
            return table.GetField<int16_t>(place, 0);
        default:
            return table.GetField<uint8_t>(place, 0);
    }
}

// Throws if `table` or a table in it has a field that is marked (later), or an enum field with an
// invalid number.
void refuse_unfit(const flatbuffers::Table& table,
                  const flatbuffers::StructDef& definition,
                  const std::string& path);

void refuse_unfit_in_list(const flatbuffers::Table& table,
                          const flatbuffers::FieldDef& field,
                          const std::string& path) {
    using Offsets = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::Table>>;
    const auto* list = table.GetPointer<const Offsets*>(field.value.offset);
    for (const flatbuffers::Table* member : *list) {
        refuse_unfit(*member, *field.value.type.struct_def, path);
    }
}

void refuse_unfit(const flatbuffers::Table& table,
                  const flatbuffers::StructDef& definition,
                  const std::string& path) {
    for (const flatbuffers::FieldDef* field : definition.fields.vec) {
        if (!table.CheckField(field->value.offset)) continue;
        const std::string name = path.empty() ? field->name : path + "." + field->name;
        if (field->attributes.Lookup("later") != nullptr) {
            throw JournalError(json_string(name) + " is not supported by this version");
        }
        const flatbuffers::Type& type = field->value.type;
        if (type.base_type == flatbuffers::BASE_TYPE_STRUCT) {
            const auto* inner = table.GetPointer<const flatbuffers::Table*>(field->value.offset);
            refuse_unfit(*inner, *type.struct_def, name);
        } else if (type.base_type == flatbuffers::BASE_TYPE_VECTOR) {
            if (type.element == flatbuffers::BASE_TYPE_STRUCT) {
                refuse_unfit_in_list(table, *field, name);
            }
        } else if (type.enum_def != nullptr) {
            const int64_t value = value_of(table, *field);
            if (type.enum_def->ReverseLookup(value) != nullptr) continue;
            throw JournalError(json_string(name) + " is " + std::to_string(value) +
                               ", which is none of its values");
        }
    }
}

// `members`: what they are.
void refuse_all_but_one_field(const flatbuffers::Table& line,
                              const flatbuffers::StructDef& definition,
                              const std::string& members,
                              const std::string& where) {
    const flatbuffers::FieldDef* first = nullptr;
    for (const flatbuffers::FieldDef* field : definition.fields.vec) {
        if (!line.CheckField(field->value.offset)) continue;
        if (first != nullptr) {
            throw JournalError("two " + members + "s in one " + where + ": " +
                               json_string(first->name) + " and " + json_string(field->name));
        }
        first = field;
    }
    if (first == nullptr) throw JournalError("no " + members + " in this " + where);
}

std::string_view trimmed(std::string_view line) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return {};
    return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

struct JournalReader::Parts {
    Parts() : parser(parser_options()) {
        using Schema = journal::LineBinarySchema;
        if (!parser.Deserialize(Schema::data(), Schema::size())) {
            throw JournalError("the built-in schema cannot be read: " + parser.error_);
        }
    }

    bool next_json();
    bool next_binary();
    void check(const flatbuffers::Table& table) const {
        const flatbuffers::StructDef& words = *parser.root_struct_def_;
        refuse_all_but_one_field(table, words, "command", "line");
        refuse_all_but_one_field_in(table, "expect", "decision");
        refuse_all_but_one_field_in(table, "given", "command");
        refuse_unfit(table, *parser.root_struct_def_, {});
    }

    void refuse_all_but_one_field_in(const flatbuffers::Table& table,
                                     const std::string& name,
                                     const std::string& members) const {
        const flatbuffers::FieldDef& field = *parser.root_struct_def_->fields.Lookup(name);
        const auto* inner = table.GetPointer<const flatbuffers::Table*>(field.value.offset);
        if (inner == nullptr) return;
        refuse_all_but_one_field(*inner, *field.value.type.struct_def, members, json_string(name));
    }

    std::string bytes;
    flatbuffers::Parser parser;
    bool binary = false;
    size_t place = 0;
    uint32_t line = 0;
    std::string_view buffer;       // of the last line
    std::vector<uint8_t> aligned;  // a copy of it, where the journal is binary
};

bool JournalReader::Parts::next_json() {
    std::string_view text;
    do {
        if (place >= bytes.size()) return false;
        const size_t end = std::min(bytes.find('\n', place), bytes.size());
        text = trimmed(std::string_view(bytes).substr(place, end - place));
        place = end + 1;
        ++line;
    } while (text.empty() || text.starts_with('#') || text.starts_with("//"));
    if (text.find('\0') != std::string_view::npos) throw JournalError("a zero byte in the line");
    if (text.starts_with(kByteOrderMark)) throw JournalError("a byte order mark in the line");
    const std::string object = with_slot_numbers_as_text(std::string(text));
    if (!parser.ParseJson(object.c_str())) throw parser_error(parser.error_);
    refuse_lax(text, *parser.root_struct_def_, text.find("\"expect") != std::string_view::npos);
    buffer = {reinterpret_cast<const char*>(parser.builder_.GetBufferPointer()),
              parser.builder_.GetSize()};
    return true;
}

bool JournalReader::Parts::next_binary() {
    if (place >= bytes.size()) return false;
    ++line;
    const size_t left = bytes.size() - place;
    if (left < sizeof(flatbuffers::uoffset_t)) throw JournalError("the journal ends inside a size");
    const auto size = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(bytes.data() + place);
    if (size > left - sizeof size) {
        throw JournalError("the journal ends inside a command: " + std::to_string(size) +
                           " bytes announced, " + std::to_string(left - sizeof size) + " left");
    }
    buffer = std::string_view(bytes).substr(place + sizeof size, size);
    place += sizeof size + size;
    // The verifier wants the alignment that the writer gave.
    aligned.assign(buffer.begin(), buffer.end());
    buffer = {reinterpret_cast<const char*>(aligned.data()), aligned.size()};
    flatbuffers::Verifier verifier(aligned.data(), aligned.size(), kVerifierDepth, kVerifierTables);
    if (!verifier.VerifyBuffer<journal::Line>(nullptr)) throw JournalError("not a command");
    return true;
}

bool is_binary_journal(std::string_view bytes) {
    return bytes.starts_with(kFormat) && bytes.size() > kFormat.size() &&
           bytes[kFormat.size()] >= '0' && bytes[kFormat.size()] <= '9';
}

JournalReader::JournalReader() : parts_(std::make_unique<Parts>()) {}

JournalReader::JournalReader(std::string bytes, JournalForm form) : JournalReader() {
    open(std::move(bytes), form);
}

void JournalReader::open(std::string bytes, JournalForm form) {
    parts_->bytes = std::move(bytes);
    rewind();
    const bool marked = parts_->bytes.starts_with(kJournalMagic);
    if (!marked && (form == JournalForm::kBinary || is_binary_journal(parts_->bytes))) {
        parts_->line = 1;
        const bool is_other = is_binary_journal(parts_->bytes);
        throw JournalError(is_other ? "it has version " + parts_->bytes.substr(kFormat.size(), 1) +
                                          ", this program reads " + kJournalMagic[kFormat.size()]
                                    : "not a binary journal: it does not begin with \"DJN2\"");
    }
    parts_->binary = marked && form != JournalForm::kJson;
    rewind();
}

JournalReader::~JournalReader() = default;

const journal::Line* JournalReader::next() {
    const bool more = parts_->binary ? parts_->next_binary() : parts_->next_json();
    if (!more) return nullptr;
    const auto* line = flatbuffers::GetRoot<journal::Line>(parts_->buffer.data());
    parts_->check(reinterpret_cast<const flatbuffers::Table&>(*line));
    return line;
}

uint32_t JournalReader::line() const {
    return parts_->line;
}

bool JournalReader::is_binary() const {
    return parts_->binary;
}

void JournalReader::rewind() {
    parts_->place = parts_->binary ? kJournalMagic.size() : 0;
    if (parts_->bytes.starts_with(kByteOrderMark)) parts_->place = kByteOrderMark.size();
    parts_->line = 0;
}

std::string JournalReader::json() const {
    std::string text;
    flatbuffers::GenerateText(parts_->parser, parts_->buffer.data(), &text);
    return text;
}

std::string_view JournalReader::buffer() const {
    return parts_->buffer;
}

}  // namespace dibs::ctl
