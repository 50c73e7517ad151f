// benchmarks/json_report.cpp -- a run's report for programs.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "benchmarks/report.hpp"

namespace dibs::bench {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::vector<Target>& targets) {
    Json list = Json::array();
    for (const Target& target : targets) {
        list.push_back({{"of", target.of},
                        {"limit", target.limit},
                        {"value", target.value},
                        {"met", target.met()}});
    }
    return list;
}

Json json_of(const Row& row) {
    Json json = {{"group", row.group},
                 {"name", row.name},
                 {"placement", row.placement},
                 {"state", row.state},
                 {"samples", row.samples},
                 {"p50_ns", row.ns.p50},
                 {"p99_ns", row.ns.p99},
                 {"p999_ns", row.ns.p999}};
    if (!row.floor.empty()) {
        json["floor"] = row.floor;
        json["floor_times"] = row.floor_times;
        json["ratio_p50"] = row.ratio_p50;
        json["ratio_p99"] = row.ratio_p99;
    }
    json["targets"] = json_of(row.targets);
    return json;
}

Json json_of(const WorkersRow& row) {
    Json json = {{"group", row.group},
                 {"processes", row.processes},
                 {"slots", row.slots},
                 {"work_us", row.work_us},
                 {"name", row.name},
                 {"state", row.state},
                 {"rounds", row.rounds},
                 {"tasks_per_second", row.tasks_per_second}};
    if (row.percent != 0) {
        json["percent_of_ideal"] = row.percent;
        json["percent_least"] = row.percent_least;
        json["percent_most"] = row.percent_most;
    }
    if (row.claims != 0) {
        json["claims"] = row.claims;
        json["claim_p50_ns"] = row.claim_ns.p50;
        json["claim_p99_ns"] = row.claim_ns.p99;
        json["claim_p999_ns"] = row.claim_ns.p999;
    }
    json["fairness"] = row.fairness;
    json["cpu_ns_per_task"] = row.cpu_ns_per_task;
    return json;
}

}  // namespace

void write_json(std::ostream& out, const Report& report) {
    const Machine& machine = report.machine;
    Json json;
    json["machine"] = {{"processor", machine.processor},
                       {"kernel", machine.kernel},
                       {"compiler", machine.compiler},
                       {"load_before", machine.load_before},
                       {"load_after", machine.load_after}};
    json["rounds"] = Json::array();
    for (const RoundCount& count : report.rounds) {
        Json kept = Json::object();
        for (const RoundCount::Kept& each : count.kept)
            kept[each.state] = each.rounds;
        json["rounds"].push_back({{"group", count.group},
                                  {"kept", kept},
                                  {"mixed_dropped", count.mixed_rounds},
                                  {"probed", count.figure},
                                  {"least", count.figures[0]},
                                  {"greatest", count.figures[1]}});
    }
    json["rows"] = Json::array();
    for (const Row& row : report.rows)
        json["rows"].push_back(json_of(row));
    json["workers"] = Json::array();
    for (const WorkersRow& row : report.workers)
        json["workers"].push_back(json_of(row));
    json["facts"] = Json::array();
    for (const Fact& fact : report.facts) {
        json["facts"].push_back({{"group", fact.group},
                                 {"name", fact.name},
                                 {"value", fact.value},
                                 {"unit", fact.unit},
                                 {"how", fact.how},
                                 {"targets", json_of(fact.targets)}});
    }
    json["not_measured"] = Json::array();
    for (const Absence& absence : report.absences)
        json["not_measured"].push_back({{"name", absence.name}, {"why", absence.why}});
    out << json.dump(2) << "\n";
}

}  // namespace dibs::bench
