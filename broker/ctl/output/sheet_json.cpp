// broker/ctl/output/sheet_json.cpp -- prints sheets as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/output/sheet.hpp"
#include "broker/journal/json_text.hpp"

namespace dibs::ctl {

namespace {

void write_row(JsonText& json, const Sheet& sheet, size_t row);

void write_rows(JsonText& json, std::string_view key, const Sheet& sheet) {
    json.open_list(key);
    for (size_t row = 0; row < sheet.rows.size(); ++row) {
        json.open_object();
        write_row(json, sheet, row);
        json.close_object();
    }
    json.close_list();
}

void write_cell(JsonText& json, std::string_view key, const Cell& cell) {
    switch (cell.kind) {
        case Cell::Kind::kNothing:
            return json.nothing(key);
        case Cell::Kind::kText:
            return json.text(key, cell.text);
        case Cell::Kind::kInstant:
            return json.text(key, instant_json(cell.number));
        case Cell::Kind::kNumber:
        case Cell::Kind::kDuration:
        case Cell::Kind::kNamed:
            return json.number(key, cell.number);
        case Cell::Kind::kTruth:
            return json.truth(key, cell.number != 0);
        case Cell::Kind::kTexts:
            json.open_list(key);
            for (const std::string& text : cell.texts)
                json.text({}, text);
            return json.close_list();
        case Cell::Kind::kNumbers:
            json.open_list(key);
            for (const uint64_t number : cell.numbers)
                json.number({}, number);
            return json.close_list();
        case Cell::Kind::kRows:
            return write_rows(json, key, *cell.rows);
        case Cell::Kind::kMoney:
            json.open_list(key);
            for (const int64_t amount : cell.micros)
                json.signed_number({}, amount);
            return json.close_list();
    }
}

void write_row(JsonText& json, const Sheet& sheet, size_t row) {
    for (size_t i = 0; i < sheet.columns.size(); ++i) {
        if (!sheet.columns[i].key.empty()) {
            write_cell(json, sheet.columns[i].key, sheet.rows[row][i]);
        }
    }
}

}  // namespace

std::string json_lines_text(const Sheet& sheet) {
    std::string all;
    for (size_t row = 0; row < sheet.rows.size(); ++row) {
        JsonText json;
        json.open_object();
        json.text("schema", sheet.schema);
        write_row(json, sheet, row);
        json.close_object();
        all += json.line() + "\n";
    }
    return all;
}

std::string json_text(const Sheet& sheet, bool is_record) {
    if (is_record) return json_lines_text(sheet);
    JsonText json;
    json.open_object();
    json.text("schema", sheet.schema);
    if (sheet.stamp) json.number("stamp", *sheet.stamp);
    write_rows(json, "rows", sheet);
    json.close_object();
    return json.line() + "\n";
}

}  // namespace dibs::ctl
