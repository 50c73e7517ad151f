// demo/figures_json.cpp -- writes figures and facts as JSON.
// Durations are in nanoseconds.
// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "demo/figures.hpp"

namespace dibs::ctl::demo {

namespace {

using nlohmann::ordered_json;

ordered_json json_of(const Timing& timing) {
    return {{"granted", timing.granted},
            {"makespan_ns", timing.makespan_ns},
            {"mean_wait_ns", timing.mean_wait_ns},
            {"p50_wait_ns", timing.p50_wait_ns},
            {"p99_wait_ns", timing.p99_wait_ns},
            {"max_wait_ns", timing.max_wait_ns},
            {"grants_per_1000_s", timing.per_second_milli}};
}

ordered_json json_of(const Workload& workload) {
    return {{"name", workload.name},
            {"format", std::string(format_name(workload.trace.format))},
            {"rows", workload.trace.rows.size()},
            {"broken_rows", workload.trace.broken.size()},
            {"tenants", workload.trace.tenants.size()},
            {"pool", workload.shape == PoolShape::kCounted ? "counted" : "worker"},
            {"slots", workload.slots},
            {"work_ns", workload.work_ns}};
}

const char* word_of(Facts::Verdict verdict) {
    if (verdict == Facts::Verdict::kSkipped) return "skipped";
    return verdict == Facts::Verdict::kPassed ? "passed" : "failed";
}

}  // namespace

void write_json(const std::string& path, const Figures& figures, const Facts& facts) {
    ordered_json json;
    json["workload"] = json_of(figures.workload);
    json["measured"] = json_of(figures.measured);
    json["core_alone"] = json_of(figures.ideal.timing);
    json["samples"] = figures.samples;
    json["most_queued"] = figures.most_queued;
    json["held_back"] = figures.held_back;
    json["facts"] = ordered_json::array();
    for (const Facts::Fact& fact : facts.all()) {
        json["facts"].push_back({{"verdict", word_of(fact.verdict)}, {"fact", fact.text}});
    }
    std::ofstream out(path);
    out << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
    out.close();
    if (!out) throw std::runtime_error("cannot write " + path);
}

}  // namespace dibs::ctl::demo
