// broker/ctl/output/sheet.cpp -- prints sheets as tables with fitting columns, and as records.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/output/sheet.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <set>

#include "broker/config/quantity.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/spelling.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kPlain = "\x1b[0m";
constexpr size_t kGap = 2;

// What was named by a client goes to a terminal: no control characters.
template <class Items, class Text>
std::string joined(const Items& items, const Text& text) {
    std::string line;
    for (const auto& item : items)
        line += (line.empty() ? "" : ",") + text(item);
    return line.empty() ? "-" : line;
}

std::string money_text(std::vector<int64_t> micros) {
    while (micros.size() > 1 && micros.back() == 0)
        micros.pop_back();
    return joined(micros, [](int64_t amount) { return show_micros(amount); });
}

std::string cell_text(const Cell& cell) {
    switch (cell.kind) {
        case Cell::Kind::kNothing:
            return "-";
        case Cell::Kind::kText:
            return cell.text.empty() ? "-" : harmless(cell.text);
        case Cell::Kind::kNumber:
            return std::to_string(cell.number);
        case Cell::Kind::kTruth:
            return cell.number != 0 ? "yes" : "no";
        case Cell::Kind::kDuration:
            return duration_text(cell.number);
        case Cell::Kind::kTexts:
            return joined(cell.texts, [](const std::string& text) { return harmless(text); });
        case Cell::Kind::kNumbers:
            return joined(cell.numbers, [](uint64_t number) { return std::to_string(number); });
        case Cell::Kind::kMoney:
            return money_text(cell.micros);
        case Cell::Kind::kRows:
            return std::to_string(cell.rows->rows.size());
        case Cell::Kind::kNamed:
            return cell.text + std::to_string(cell.number);
        case Cell::Kind::kInstant:
            return instant_text(cell.number);
    }
    return "-";
}

bool is_right(const Cell& cell) {
    return cell.kind == Cell::Kind::kNumber || cell.kind == Cell::Kind::kDuration ||
           cell.kind == Cell::Kind::kNamed;
}

class Table {
  public:
    Table(const Sheet& sheet, size_t width) : sheet_(sheet) {
        for (const std::vector<Cell>& row : sheet.rows) {
            std::vector<std::string>& line = lines_.emplace_back();
            for (const Cell& cell : row)
                line.push_back(cell_text(cell));
        }
        for (size_t i = 0; i < sheet.columns.size(); ++i) {
            size_t most = width_of(sheet.columns[i].title);
            for (const auto& line : lines_)
                most = std::max(most, width_of(line[i]));
            widths_.push_back(most);
            shown_.push_back(!sheet.columns[i].title.empty());
        }
        while (width != 0 && total() > width && drop_one()) {
        }
    }

    std::string text(bool bold) const {
        std::vector<std::string> titles;
        for (const Column& column : sheet_.columns)
            titles.emplace_back(column.title);
        std::string all = (bold ? std::string(kBold) : "") + line_of(titles, nullptr) +
                          (bold ? std::string(kPlain) : "") + "\n";
        for (size_t i = 0; i < lines_.size(); ++i)
            all += line_of(lines_[i], &sheet_.rows[i]) + "\n";
        return all;
    }

  private:
    [[nodiscard]] size_t total() const {
        size_t sum = 0;
        for (size_t i = 0; i < widths_.size(); ++i)
            sum += shown_[i] ? widths_[i] + (sum == 0 ? 0 : kGap) : 0;
        return sum;
    }

    bool drop_one() {
        size_t worst = widths_.size();
        for (size_t i = 0; i < widths_.size(); ++i) {
            if (!shown_[i] || sheet_.columns[i].rank == 0) continue;
            if (worst == widths_.size() || sheet_.columns[i].rank >= sheet_.columns[worst].rank) {
                worst = i;
            }
        }
        if (worst == widths_.size()) return false;
        shown_[worst] = false;
        return true;
    }

    // A column stands at the right where its cells do: the heading looks at the first row.
    std::string line_of(const std::vector<std::string>& words, const std::vector<Cell>* row) const {
        std::string line;
        for (size_t i = 0; i < words.size(); ++i) {
            if (!shown_[i]) continue;
            if (!line.empty()) line.append(kGap, ' ');
            const std::vector<Cell>* model =
                row != nullptr ? row : (sheet_.rows.empty() ? nullptr : &sheet_.rows.front());
            const size_t space = widths_[i] - width_of(words[i]);
            const bool right = model != nullptr && is_right((*model)[i]);
            line += right ? std::string(space, ' ') + words[i] : words[i] + std::string(space, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        return line;
    }

    const Sheet& sheet_;
    std::vector<std::vector<std::string>> lines_;
    std::vector<size_t> widths_;
    std::vector<bool> shown_;
};

std::string time_text(uint64_t ns, const char* form, struct tm* (*broken)(const time_t*, tm*)) {
    const auto seconds = static_cast<time_t>(ns / 1'000'000'000);
    struct tm parts = {};
    std::array<char, 64> text{};
    if (broken(&seconds, &parts) == nullptr) return "-";
    (void)std::strftime(text.data(), text.size(), form, &parts);
    return text.data();
}

}  // namespace

std::string instant_text(uint64_t ns) {
    return time_text(ns, "%Y-%m-%d %H:%M:%S", localtime_r);
}

std::string instant_json(uint64_t ns) {
    std::array<char, 8> millis{};
    const auto value = static_cast<unsigned>(ns / 1'000'000 % 1000);
    std::snprintf(millis.data(), millis.size(), ".%03uZ", value);
    return time_text(ns, "%Y-%m-%dT%H:%M:%S", gmtime_r) + millis.data();
}

Cell Cell::duration(uint64_t ns) {
    if (ns == ~uint64_t{0}) return {};
    return {Kind::kDuration, {}, ns};
}

Cell Cell::of(Sheet rows) {
    Cell cell;
    cell.kind = Kind::kRows;
    cell.rows = std::make_shared<const Sheet>(std::move(rows));
    return cell;
}

std::string id_text(Letter letter, uint64_t id) {
    std::array<char, 24> text{};
    const auto shown = static_cast<unsigned long long>(id);
    std::snprintf(text.data(), text.size(), "%c0x%llx", static_cast<char>(letter), shown);
    return text.data();
}

std::string number_text(Letter letter, uint64_t number) {
    return static_cast<char>(letter) + std::to_string(number);
}

Form form_of(const std::string& word) {
    if (word == "table") return Form::kTable;
    if (word == "json") return Form::kJson;
    if (word == "jsonl") return Form::kJsonLines;
    std::string text = "-o " + word + ": there are table, json and jsonl";
    if (const auto near = nearest_word(word, {"table", "json", "jsonl"})) {
        text += "; did you mean " + std::string(*near) + "?";
    }
    throw Failure(kExitUsage, text);
}

std::string table_text(const Sheet& sheet, size_t width, bool bold) {
    return Table(sheet, width).text(bold);
}

std::string record_text(const Sheet& sheet, size_t width, bool bold) {
    size_t widest = 0;
    for (const Column& column : sheet.columns)
        widest = std::max(widest, width_of(column.title));
    std::string all;
    for (size_t i = 0; i < sheet.columns.size(); ++i) {
        const std::string_view title = sheet.columns[i].title;
        if (title.empty()) continue;
        const std::string space(widest - width_of(title) + kGap, ' ');
        all += (bold ? std::string(kBold) : "") + std::string(title) +
               (bold ? std::string(kPlain) : "") + space +
               wrapped(cell_text(sheet.rows.front()[i]),
                       width <= widest + kGap ? 0 : width - widest - kGap,
                       widest + kGap) +
               "\n";
    }
    return all;
}

std::string duration_text(uint64_t ns) {
    struct Unit {
        uint64_t ns;
        const char* name;
    };
    static constexpr Unit kUnits[] = {{86'400'000'000'000, "d"},
                                      {3'600'000'000'000, "h"},
                                      {60'000'000'000, "min"},
                                      {1'000'000'000, "s"}};
    for (size_t i = 0; i + 1 < std::size(kUnits); ++i) {
        if (ns < kUnits[i].ns) continue;
        const uint64_t rest = ns % kUnits[i].ns / kUnits[i + 1].ns;
        std::string text = std::to_string(ns / kUnits[i].ns) + kUnits[i].name;
        if (rest != 0) text += std::to_string(rest) + kUnits[i + 1].name;
        return text;
    }
    struct Small {
        uint64_t ns;
        const char* name;
    };
    static constexpr Small kSmall[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}};
    for (const Small& unit : kSmall) {
        if (ns < unit.ns) continue;
        const uint64_t tenths = ns % unit.ns * 10 / unit.ns;
        std::string text = std::to_string(ns / unit.ns);
        if (tenths != 0) text += "." + std::to_string(tenths);
        return text + unit.name;
    }
    return std::to_string(ns) + "ns";
}

}  // namespace dibs::ctl
