// demo/trace/row_reader.cpp -- reads the columns of each trace format.
// SPDX-License-Identifier: Apache-2.0
#include "demo/trace/row_reader.hpp"

#include <algorithm>
#include <optional>

#include "demo/trace/decimal.hpp"
#include "demo/trace/text_line.hpp"

namespace dibs::ctl::demo {

namespace {

// What a token costs: reading the prompt, then one step for each token that is made.
constexpr int64_t kNsPerContextToken = kNsPerMillisecond / 4;
constexpr int64_t kNsPerGeneratedToken = 20 * kNsPerMillisecond;
constexpr int64_t kTokensMax = 1'000'000'000;
constexpr int64_t kUnitsWithinReason = 1'000'000'000;

std::string not_a_number(std::string_view what, std::string_view field) {
    if (field.empty()) return std::string(what) + " is missing";
    return std::string(what) + " " + shown(field) + " is not a number";
}

std::string check_units(int64_t units) {
    if (units == 0) return "zero processors";
    if (units < 0) return "processors is " + std::to_string(units);
    if (units > kUnitsWithinReason) return "processors is out of range";
    return {};
}

std::string check_hold(std::string_view what, int64_t hold_ns, std::string_view field) {
    if (hold_ns >= 0) return {};
    const bool unknown = hold_ns == -kNsPerSecond;
    return std::string(what) + " is " + std::string(field) + (unknown ? " (unknown)" : "");
}

// Standard Workload Format: 18 columns, counted from 1 as its definition does.
class SwfReader : public RowReader {
  public:
    bool is_head(std::string_view line, bool /*first*/) override {
        if (line.empty() || line.front() != ';') return false;
        constexpr std::string_view kMaxProcs = "MaxProcs:";
        const std::string_view note = trimmed(line.substr(1));
        if (note.substr(0, kMaxProcs.size()) == kMaxProcs) {
            const auto units = parse_whole(trimmed(note.substr(kMaxProcs.size())));
            if (units && *units > 0) pool_units_ = static_cast<uint64_t>(*units);
        }
        return true;
    }

    std::string read(std::string_view line, RowDraft* draft) override {
        constexpr size_t kColumns = 18;
        const std::vector<std::string_view> field = split_blanks(line);
        if (field.size() < kColumns) {
            return std::to_string(field.size()) + " columns where 18 are needed";
        }
        const auto submit = parse_seconds(field[1]);
        const auto run = parse_seconds(field[3]);
        const auto user = parse_whole(field[11]);
        if (!submit) return not_a_number("submit time", field[1]);
        if (!run) return not_a_number("run time", field[3]);
        if (!user) return not_a_number("user", field[11]);
        if (*submit < 0) return "submit time is " + std::string(field[1]);
        if (std::string why = check_hold("run time", *run, field[3]); !why.empty()) return why;
        draft->arrival_ns = *submit;
        draft->hold_ns = *run;
        draft->tenant = *user < 0 ? "unknown" : "user " + std::to_string(*user);
        return read_processors(field[4], field[7], draft);
    }

    [[nodiscard]] uint64_t pool_units() const override { return pool_units_; }

  private:
    // What the job got; if that is unknown, what it asked for.
    static std::string read_processors(std::string_view got,
                                       std::string_view wanted,
                                       RowDraft* draft) {
        auto units = parse_whole(got);
        if (!units) return not_a_number("processors", got);
        if (*units == -1) {
            units = parse_whole(wanted);
            if (!units) return not_a_number("requested processors", wanted);
            if (*units == -1) return "processors and requested processors are both unknown";
        }
        draft->units = *units;
        return check_units(*units);
    }

    uint64_t pool_units_ = 0;
};

// The common part of the CSV forms: where each column stands.
class CsvReader : public RowReader {
  public:
    explicit CsvReader(const CsvForm& form) : form_(form) {
        for (size_t i = 0; i < form.columns.size(); ++i)
            place_.push_back(i);
    }

    bool is_head(std::string_view line, bool first) override {
        if (!line.empty() && line.front() == '#') return true;
        if (!first || !is_csv_header(form_, line)) return false;
        const std::vector<std::string> names = split_commas(line);
        for (size_t i = 0; i < form_.columns.size(); ++i) {
            const auto found = std::find_if(names.begin(), names.end(), [&](const auto& name) {
                return equal_ignoring_case(name, form_.columns[i]);
            });
            place_[i] = static_cast<size_t>(found - names.begin());
        }
        return true;
    }

    std::string read(std::string_view line, RowDraft* draft) override {
        const std::vector<std::string> fields = split_commas(line);
        std::vector<std::string> columns;
        for (size_t i = 0; i < place_.size(); ++i) {
            if (place_[i] >= fields.size() && i < form_.needed) {
                return std::to_string(fields.size()) + " columns, " +
                       std::string(form_.columns[i]) + " is missing";
            }
            columns.push_back(place_[i] < fields.size() ? fields[place_[i]] : std::string{});
        }
        return read_columns(columns, draft);
    }

  protected:
    virtual std::string read_columns(const std::vector<std::string>& column, RowDraft* draft) = 0;

  private:
    const CsvForm& form_;
    std::vector<size_t> place_;
};

class LlmReader : public CsvReader {
  public:
    using CsvReader::CsvReader;

  protected:
    std::string read_columns(const std::vector<std::string>& column, RowDraft* draft) override {
        const auto time = parse_timestamp(column[0]);
        const auto context = parse_whole(column[1]);
        const auto generated = parse_whole(column[2]);
        if (!time) return "TIMESTAMP " + shown(column[0]) + " is not a date and time";
        if (!context) return not_a_number("ContextTokens", column[1]);
        if (!generated) return not_a_number("GeneratedTokens", column[2]);
        if (*context < 0 || *context > kTokensMax) return "ContextTokens is " + column[1];
        if (*generated < 0 || *generated > kTokensMax / 100) {
            return "GeneratedTokens is " + column[2];
        }
        draft->arrival_ns = *time;
        draft->hold_ns = *context * kNsPerContextToken + *generated * kNsPerGeneratedToken;
        draft->tenant = "all";
        return {};
    }
};

class FunctionsReader : public CsvReader {
  public:
    using CsvReader::CsvReader;

  protected:
    std::string read_columns(const std::vector<std::string>& column, RowDraft* draft) override {
        const auto end = parse_seconds(column[2]);
        const auto duration = parse_seconds(column[3]);
        if (!end) return not_a_number("end_timestamp", column[2]);
        if (!duration) return not_a_number("duration", column[3]);
        if (std::string why = check_hold("duration", *duration, column[3]); !why.empty()) {
            return why;
        }
        if (column[0].empty()) return "app is missing";
        // An invocation that was under way when the recording began has a negative arrival.
        draft->arrival_ns = *end - *duration;
        draft->hold_ns = *duration;
        draft->tenant = column[0];
        return {};
    }
};

class GenericReader : public CsvReader {
  public:
    using CsvReader::CsvReader;

  protected:
    std::string read_columns(const std::vector<std::string>& column, RowDraft* draft) override {
        const auto arrival = parse_seconds(column[0]);
        const auto hold = parse_seconds(column[1]);
        const auto units = column[2].empty() ? std::optional<int64_t>(1) : parse_whole(column[2]);
        if (!arrival) return not_a_number("arrival_s", column[0]);
        if (!hold) return not_a_number("hold_s", column[1]);
        if (!units) return not_a_number("units", column[2]);
        if (*arrival < 0) return "arrival_s is " + column[0];
        if (std::string why = check_hold("hold_s", *hold, column[1]); !why.empty()) return why;
        draft->arrival_ns = *arrival;
        draft->hold_ns = *hold;
        draft->units = *units;
        draft->tenant = column[3].empty() ? "all" : column[3];
        return check_units(*units);
    }
};

const CsvForm& form_of(TraceFormat format) {
    const auto& forms = csv_forms();
    return *std::find_if(
        forms.begin(), forms.end(), [&](const CsvForm& form) { return form.format == format; });
}

}  // namespace

const std::vector<CsvForm>& csv_forms() {
    static const std::vector<CsvForm> kForms = {
        {TraceFormat::kLlm, {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, 3},
        {TraceFormat::kFunctions, {"app", "func", "end_timestamp", "duration"}, 4},
        {TraceFormat::kGeneric, {"arrival_s", "hold_s", "units", "tenant"}, 2},
    };
    return kForms;
}

bool is_csv_header(const CsvForm& form, std::string_view line) {
    const std::vector<std::string> names = split_commas(line);
    const auto named = [&](std::string_view column) {
        return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
            return equal_ignoring_case(name, column);
        });
    };
    const auto end = form.columns.begin() + static_cast<std::ptrdiff_t>(form.needed);
    return std::all_of(form.columns.begin(), end, named);
}

std::unique_ptr<RowReader> make_row_reader(TraceFormat format) {
    switch (format) {
        case TraceFormat::kSwf:
            return std::make_unique<SwfReader>();
        case TraceFormat::kLlm:
            return std::make_unique<LlmReader>(form_of(format));
        case TraceFormat::kFunctions:
            return std::make_unique<FunctionsReader>(form_of(format));
        case TraceFormat::kGeneric:
            break;
    }
    return std::make_unique<GenericReader>(form_of(TraceFormat::kGeneric));
}

}  // namespace dibs::ctl::demo
