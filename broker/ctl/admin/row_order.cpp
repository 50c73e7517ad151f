// broker/ctl/admin/row_order.cpp -- sorts by one column and filters one user's rows.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/row_order.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <string_view>
#include <tuple>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/spelling.hpp"

namespace dibs::ctl {

namespace {

std::string lower(std::string_view text) {
    std::string word;
    for (const char letter : text)
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return word;
}

std::string key_of(const Column& column) {
    std::string_view key = column.key;
    if (key.ends_with("_ns")) key.remove_suffix(3);
    return std::string(key);
}

bool is_number(const Cell& cell) {
    switch (cell.kind) {
        case Cell::Kind::kNumber:
        case Cell::Kind::kTruth:
        case Cell::Kind::kDuration:
        case Cell::Kind::kNamed:
        case Cell::Kind::kInstant:
            return true;
        default:
            return false;
    }
}

// Of cells of one column.
bool before(const Cell& left, const Cell& right) {
    if (is_number(left) && is_number(right)) return left.number > right.number;
    return std::tie(left.text, left.texts, left.numbers, left.micros) <
           std::tie(right.text, right.texts, right.numbers, right.micros);
}

bool is_users(const Cell& cell, uint32_t uid) {
    if (cell.kind == Cell::Kind::kNumber) return cell.number == uid;
    return cell.kind == Cell::Kind::kText && cell.text == "uid:" + std::to_string(uid);
}

}  // namespace

size_t column_named(const Sheet& sheet, const std::string& word) {
    const std::string wanted = lower(word);
    std::set<std::string> known;
    for (size_t i = 0; i < sheet.columns.size(); ++i) {
        const Column& column = sheet.columns[i];
        const bool is_it = wanted == column.key || wanted == key_of(column);
        if (!wanted.empty() && (is_it || wanted == lower(column.title))) return i;
        known.insert(column.title.empty() ? key_of(column) : lower(column.title));
    }
    std::string text = "--sort: there is no column \"" + word + "\"";
    const std::set<std::string_view> names(known.begin(), known.end());
    if (const auto near = nearest_word(wanted, names)) {
        text += "; did you mean " + std::string(*near) + "? There are ";
    } else {
        text += "; there are ";
    }
    for (const std::string& one : known)
        text += (&one == &*known.begin() ? "" : ", ") + one;
    throw Failure(kExitUsage, text);
}

void sort_rows(Sheet* sheet, size_t column, bool reversed) {
    auto& rows = sheet->rows;
    const auto unknown = std::stable_partition(rows.begin(), rows.end(), [&](const auto& row) {
        return row[column].kind != Cell::Kind::kNothing;
    });
    std::stable_sort(rows.begin(), unknown, [&](const auto& left, const auto& right) {
        return reversed ? before(right[column], left[column]) : before(left[column], right[column]);
    });
}

void keep_user(Sheet* sheet, uint32_t uid) {
    const auto column = [&](std::string_view key) {
        const auto found = std::find_if(sheet->columns.begin(),
                                        sheet->columns.end(),
                                        [&](const Column& one) { return one.key == key; });
        return static_cast<size_t>(std::distance(sheet->columns.begin(), found));
    };
    const size_t by_uid = column("uid");
    const size_t by_account = column("account");
    std::erase_if(sheet->rows, [&](const auto& row) {
        const bool known = row[by_uid].kind != Cell::Kind::kNothing;
        return !is_users(row[known ? by_uid : by_account], uid);
    });
}

}  // namespace dibs::ctl
