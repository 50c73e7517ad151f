// broker/ctl/output/sheet.hpp -- rows of named values, to be shown as a table, JSON or JSON lines.
//
// A value has one meaning in all three: a duration is a number of nanoseconds under a key that ends
// in _ns, and "1.5s" in a table; an unknown value is null, and "-". The JSON names its schema:
// while the schema's number stays, keys may be added, and none disappears or changes its meaning.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::ctl {

// What a number or id is of stands before it wherever people read it, and where they type it: the
// claim that came 12th is c12, the lease that it was granted l12; ids are l0x100000000.
enum class Letter : char { kClaim = 'c', kLease = 'l', kSlot = 's' };

std::string id_text(Letter letter, uint64_t id);          // "l0x100000000"
std::string number_text(Letter letter, uint64_t number);  // "l12"

struct Sheet;

struct Cell {
    enum class Kind : uint8_t {
        kNothing,
        kText,
        kNumber,
        kTruth,
        kDuration,
        kTexts,
        kNumbers,
        kMoney,
        kNamed,
        kInstant,
        kRows
    };
    Kind kind = Kind::kNothing;
    std::string text = {};
    uint64_t number = 0;
    std::vector<std::string> texts = {};
    std::vector<uint64_t> numbers = {};
    std::vector<int64_t> micros = {};
    std::shared_ptr<const Sheet> rows = {};

    static Cell of(std::string text) { return {Kind::kText, std::move(text)}; }
    static Cell of(std::string_view text) { return {Kind::kText, std::string(text)}; }
    static Cell of(const char* text) { return {Kind::kText, text}; }
    static Cell of(uint64_t number) { return {Kind::kNumber, {}, number}; }
    static Cell of(uint32_t number) { return {Kind::kNumber, {}, number}; }
    static Cell of(bool truth) { return {Kind::kTruth, {}, truth ? uint64_t{1} : 0}; }
    static Cell duration(uint64_t ns);  // all ones: nothing
    // Nanoseconds of the wall clock since 1970: local time, and in JSON text, by UTC.
    static Cell instant(uint64_t ns) { return {Kind::kInstant, {}, ns}; }
    // "l0x100000000", in JSON too, so that it can be typed as it is read.
    static Cell identifier(Letter letter, uint64_t id) { return of(id_text(letter, id)); }
    // The number of a claim, or of its lease: "l12", and in JSON 12.
    static Cell numbered(Letter letter, uint64_t number) {
        return {Kind::kNamed, std::string(1, static_cast<char>(letter)), number};
    }
    static Cell of(std::vector<std::string> texts) {
        return {Kind::kTexts, {}, 0, std::move(texts)};
    }
    static Cell of(std::vector<uint64_t> numbers) {
        return {Kind::kNumbers, {}, 0, {}, std::move(numbers)};
    }
    static Cell of(Sheet rows);  // in JSON a list of objects, in a table how many
    // By class, P0 first. In a table as slots or slot-seconds, "3,0.5", up to the last that is not
    // 0.
    static Cell money(std::vector<int64_t> micros) {
        Cell cell;
        cell.kind = Kind::kMoney;
        cell.micros = std::move(micros);
        return cell;
    }
};

struct Column {
    std::string_view key;    // in JSON; empty: table only
    std::string_view title;  // in a table; empty: JSON only
    uint32_t rank = 0;  // 0 stays; of the rest the highest goes first where a table is too wide
};

struct Sheet {
    std::string_view schema;  // "dibs.status/1"
    std::vector<Column> columns;
    std::vector<std::vector<Cell>> rows = {};
    std::optional<uint64_t> stamp = {};  // in JSON beside the rows, of which there may be none
};

enum class Form : uint8_t { kTable, kJson, kJsonLines };

// What -o says; Failure (usage).
Form form_of(const std::string& word);

// As text. `width`: of the terminal; 0 = as wide as it gets. What stays beyond it is not cut: half
// a number, or half a name, is another one. `bold`: the heading stands out.
std::string table_text(const Sheet& sheet, size_t width, bool bold);
// The first row, one value a line.
std::string record_text(const Sheet& sheet, size_t width, bool bold);
std::string json_text(const Sheet& sheet, bool is_record);
std::string json_lines_text(const Sheet& sheet);

// Nanoseconds for people, two units at most: "1.5s", "2min5s", "3h2min".
std::string duration_text(uint64_t ns);

// Local time, "2026-11-27 19:04:29"; "2026-11-27T19:04:29.123Z".
std::string instant_text(uint64_t ns);
std::string instant_json(uint64_t ns);

}  // namespace dibs::ctl
