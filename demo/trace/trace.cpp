// demo/trace/trace.cpp -- parses a trace file into rows in order of arrival.
// SPDX-License-Identifier: Apache-2.0
#include "demo/trace/trace.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "demo/trace/decimal.hpp"
#include "demo/trace/row_reader.hpp"
#include "demo/trace/text_line.hpp"

namespace dibs::ctl::demo {

namespace {

constexpr std::array<std::pair<TraceFormat, std::string_view>, 4> kFormatNames = {{
    {TraceFormat::kSwf, "swf"},
    {TraceFormat::kLlm, "llm"},
    {TraceFormat::kFunctions, "functions"},
    {TraceFormat::kGeneric, "generic"},
}};

// Dates up to 2100 fit, and so does the difference of any two instants within it.
constexpr int64_t kInstantMax = 131LL * 366 * 86'400 * kNsPerSecond;

struct Dated {
    TraceRow row;
    int64_t arrival_ns;
};

bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() &&
           equal_ignoring_case(text.substr(text.size() - end.size()), end);
}

class TenantTable {
  public:
    uint32_t index_of(const std::string& name) {
        const auto [place, fresh] = index_.try_emplace(name, static_cast<uint32_t>(names_.size()));
        if (fresh) names_.push_back(name);
        return place->second;
    }
    std::vector<std::string> take_names() { return std::move(names_); }

  private:
    std::map<std::string, uint32_t> index_;
    std::vector<std::string> names_;
};

std::string check_range(const RowDraft& draft) {
    if (draft.arrival_ns > kInstantMax || draft.arrival_ns < -kInstantMax) {
        return "arrival is out of range";
    }
    return draft.hold_ns > kInstantMax ? "hold time is out of range" : std::string{};
}

std::vector<TraceRow> in_order_of_arrival(std::vector<Dated> dated) {
    std::stable_sort(dated.begin(), dated.end(), [](const Dated& a, const Dated& b) {
        return a.arrival_ns < b.arrival_ns;
    });
    std::vector<TraceRow> rows;
    rows.reserve(dated.size());
    for (Dated& one : dated) {
        one.row.arrival_ns = static_cast<uint64_t>(one.arrival_ns - dated.front().arrival_ns);
        rows.push_back(one.row);
    }
    return rows;
}

}  // namespace

std::string_view format_name(TraceFormat format) {
    for (const auto& [value, name] : kFormatNames) {
        if (value == format) return name;
    }
    return "?";
}

std::optional<TraceFormat> format_by_name(std::string_view name) {
    for (const auto& [value, text] : kFormatNames) {
        if (text == name) return value;
    }
    return std::nullopt;
}

std::optional<TraceFormat> detect_format(std::string_view path, std::string_view text) {
    LineWalk walk(text);
    std::string_view line;
    while (walk.next(&line)) {
        if (line.empty() || line.front() == '#') continue;
        if (line.front() == ';') return TraceFormat::kSwf;
        for (const CsvForm& form : csv_forms()) {
            if (is_csv_header(form, line)) return form.format;
        }
        break;
    }
    if (ends_with(path, ".swf")) return TraceFormat::kSwf;
    return std::nullopt;
}

Trace parse_trace(std::string_view text, TraceFormat format) {
    Trace trace;
    trace.format = format;
    const std::unique_ptr<RowReader> reader = make_row_reader(format);
    TenantTable tenants;
    std::vector<Dated> dated;
    LineWalk walk(text);
    std::string_view line;
    bool first = true;
    while (walk.next(&line)) {
        if (line.empty()) continue;
        const bool head = reader->is_head(line, first);
        first = first && head && line.front() == '#';
        if (head) continue;
        RowDraft draft;
        std::string why = reader->read(line, &draft);
        if (why.empty()) why = check_range(draft);
        if (!why.empty()) {
            trace.broken.push_back({walk.number(), std::move(why)});
            continue;
        }
        TraceRow row;
        row.line = walk.number();
        row.hold_ns = static_cast<uint64_t>(draft.hold_ns);
        row.units = static_cast<uint32_t>(draft.units);
        row.tenant = tenants.index_of(draft.tenant);
        dated.push_back({row, draft.arrival_ns});
    }
    trace.rows = in_order_of_arrival(std::move(dated));
    trace.tenants = tenants.take_names();
    trace.pool_units = reader->pool_units();
    return trace;
}

void refuse_misfits(Trace* trace, uint32_t units_max) {
    const auto misfit = [&](const TraceRow& row) { return row.units > units_max; };
    for (const TraceRow& row : trace->rows) {
        if (!misfit(row)) continue;
        trace->broken.push_back({row.line,
                                 "wants " + std::to_string(row.units) + " units, at most " +
                                     std::to_string(units_max) + " can be had"});
    }
    trace->rows.erase(std::remove_if(trace->rows.begin(), trace->rows.end(), misfit),
                      trace->rows.end());
    std::sort(trace->broken.begin(), trace->broken.end(), [](const auto& a, const auto& b) {
        return a.line < b.line;
    });
}

}  // namespace dibs::ctl::demo
