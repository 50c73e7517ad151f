// demo/trace/trace.hpp -- reads workload traces: playable rows, and bad ones with reasons.
// Each bad row comes with its line.
//
// Formats (docs/demo.md has the columns): the Standard Workload Format of the Parallel Workloads
// Archive, and CSV in three forms told apart by their header line. A broken row does not hide other
// rows. The text is parsed in memory; this file opens no file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::ctl::demo {

enum class TraceFormat {
    kSwf,        // 18 columns, blanks between, `;` comments
    kLlm,        // TIMESTAMP,ContextTokens,GeneratedTokens
    kFunctions,  // app,func,end_timestamp,duration
    kGeneric,    // arrival_s,hold_s[,units[,tenant]]
};

std::string_view format_name(TraceFormat format);
std::optional<TraceFormat> format_by_name(std::string_view name);

// One claim to come.
struct TraceRow {
    uint64_t line = 0;
    uint64_t arrival_ns = 0;  // from the first row's arrival
    uint64_t hold_ns = 0;
    uint32_t units = 1;
    uint32_t tenant = 0;  // index in Trace::tenants
};

struct BrokenRow {
    uint64_t line = 0;
    std::string reason;
};

struct Trace {
    TraceFormat format = TraceFormat::kGeneric;
    std::vector<TraceRow> rows;     // by arrival; equal arrivals in order of line
    std::vector<BrokenRow> broken;  // by line
    std::vector<std::string> tenants;
    uint64_t pool_units = 0;  // size of the machine as the file's head gives it, 0 = not given
};

// What the file looks like: by its first line that says something, else by the ending of `path`.
std::optional<TraceFormat> detect_format(std::string_view path, std::string_view text);

Trace parse_trace(std::string_view text, TraceFormat format);

// Moves the rows that want more than `units_max` units to the broken ones.
void refuse_misfits(Trace* trace, uint32_t units_max);

}  // namespace dibs::ctl::demo
