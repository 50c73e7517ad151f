// demo/workload.cpp -- turns options into rows.
// SPDX-License-Identifier: Apache-2.0
#include "demo/workload.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "demo/timing.hpp"
#include "demo/trace/decimal.hpp"
#include "shm/layout.hpp"

namespace dibs::ctl::demo {

namespace {

constexpr uint32_t kSlotsOfACluster = 240;
constexpr uint32_t kSlotsOfWorkers = 8;
constexpr uint32_t kWorkersMax = 256;  // processes
constexpr uint32_t kSlotsMax = 65'536;
constexpr uint64_t kHoldMax = 3600 * static_cast<uint64_t>(kNsPerSecond);

std::string read_text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path + ": " + std::strerror(errno));
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (in.bad()) throw std::runtime_error("cannot read " + path);
    return text;
}

Trace read_trace(const Options& options) {
    const std::string text = read_text(options.trace);
    const auto format = options.format ? options.format : detect_format(options.trace, text);
    if (!format) {
        throw std::runtime_error(options.trace +
                                 ": no format is recognised; name one by --format (swf, llm, "
                                 "functions, generic; docs/demo.md has their columns)");
    }
    return parse_trace(text, *format);
}

uint32_t slots_for(const Options& options, const Workload& workload) {
    if (options.slots) return *options.slots;
    if (workload.trace.pool_units > kSlotsMax) {
        throw std::runtime_error("the trace's machine has " +
                                 std::to_string(workload.trace.pool_units) +
                                 " processors; give a smaller pool by --slots");
    }
    if (workload.trace.pool_units > 0) return static_cast<uint32_t>(workload.trace.pool_units);
    return workload.trace.format == TraceFormat::kSwf ? kSlotsOfACluster : kSlotsOfWorkers;
}

GeneratorConfig generator_for(const Options& options) {
    GeneratorConfig config = options.generator;
    config.slots = options.slots.value_or(kSlotsOfWorkers);
    config.span_ns = options.span_ns;
    config.units_max = std::min(config.units_max, config.slots);
    return config;
}

std::string generator_text(const GeneratorConfig& config) {
    return "generated (--claims " + std::to_string(config.claims) + " --tenants " +
           std::to_string(config.tenants) + " --slots " + std::to_string(config.slots) +
           " --units " + std::to_string(config.units_max) + " --burst " +
           std::to_string(config.burst) + " --load " + std::to_string(config.load_percent) +
           " --seed " + std::to_string(config.seed) + ")";
}

}  // namespace

Workload load_workload(const Options& options) {
    Workload workload;
    if (options.trace.empty()) {
        const GeneratorConfig config = generator_for(options);
        workload.trace = generate_trace(config);
        workload.name = generator_text(config);
    } else {
        workload.trace = read_trace(options);
        workload.name = options.trace;
    }
    const bool swf = workload.trace.format == TraceFormat::kSwf;
    workload.shape = options.shape.value_or(swf ? PoolShape::kCounted : PoolShape::kWorkers);
    workload.slots = slots_for(options, workload);
    refuse_misfits(&workload.trace, std::min(workload.slots, shm::kUnitsMax));
    workload.scale = scale_rows(&workload.trace.rows, options.span_ns);
    workload.work_ns = work_of(workload.trace.rows);
    return workload;
}

void check_playable(const Workload& workload) {
    if (workload.shape == PoolShape::kWorkers && workload.slots > kWorkersMax) {
        throw std::runtime_error(std::to_string(workload.slots) +
                                 " worker processes are too many; --pool counted needs none");
    }
    if (workload.trace.rows.empty()) {
        throw std::runtime_error("there is no row that can be played");
    }
    const uint64_t longest = longest_hold(workload.trace.rows);
    if (longest > kHoldMax) {
        throw std::runtime_error("scaled, the longest hold time is " + shown_ns(longest) +
                                 "; with a smaller --seconds it is shorter");
    }
}

std::string describe(const Workload& workload) {
    const bool counted = workload.shape == PoolShape::kCounted;
    const Trace& trace = workload.trace;
    std::string text = "workload  " + workload.name + "\n";
    text += "rows      " + std::to_string(trace.rows.size()) + " to play, " +
            std::to_string(trace.broken.size()) + " broken, " +
            std::to_string(trace.tenants.size()) +
            (trace.tenants.size() == 1 ? " tenant" : " tenants") + "\n";
    text += "pool      " + std::to_string(workload.slots) +
            (counted ? " counted slots\n" : " slots, a worker process each\n");
    const uint64_t span = trace.rows.empty() ? 0 : trace.rows.back().arrival_ns;
    const uint64_t capacity = scale_integer(span, workload.slots, 1);
    text += "scaled    arrivals over " + shown_ns(span) + " (from " +
            shown_ns(workload.scale.from_ns) + "), longest hold " +
            shown_ns(longest_hold(trace.rows)) + ", load " +
            shown_ratio(workload.work_ns, capacity) + "\n";
    return text;
}

std::string describe_broken(const Trace& trace, size_t most) {
    std::string text;
    for (size_t i = 0; i < std::min(most, trace.broken.size()); ++i) {
        text +=
            "line " + std::to_string(trace.broken[i].line) + ": " + trace.broken[i].reason + "\n";
    }
    if (trace.broken.size() > most) {
        text += "... and " + std::to_string(trace.broken.size() - most) + " more\n";
    }
    return text;
}

}  // namespace dibs::ctl::demo
