// benchmarks/worker_races.cpp -- races of processes that claim a slot, work and release it.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/worker_races.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/computation.hpp"
#include "benchmarks/dibs_slots.hpp"
#include "benchmarks/peers/kinds.hpp"
#include "benchmarks/peers/local_slots.hpp"
#include "benchmarks/rounds.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kCrewSizes[] = {2, 4};
constexpr uint32_t kSlotCounts[] = {1, 2, 64};
constexpr uint32_t kWorkUs[] = {0, 1, 5, 20, 100};
constexpr double kCountedNs = 50'000'000;    // of each contender in each round, or more
constexpr uint32_t kProcessesPerShare = 16;  // that share kCountedNs
constexpr uint32_t kFewerRounds = 4;         // than other races: this group has 30 of them
constexpr double kUndisturbed = 0.95;        // share of its CPUs that the ideal must get

// Figures of one side in the rounds of one machine state.
struct Harvest {
    Samples claims;
    std::vector<double> tasks_per_second;
    std::vector<double> percents;
    std::vector<double> fairness;
    std::vector<double> cpu_ns;
};

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// The first side is the ideal.
std::vector<Side> sides_of(const Stage& stage, uint32_t processes, uint32_t slots) {
    const Placement& where = stage.placement;
    const Cpus server = {where.far_side, where.near_side};
    std::vector<Side> sides;
    const auto add = [&](std::string name, std::unique_ptr<SlotSource> source, uint32_t count) {
        sides.push_back({std::move(name), std::make_unique<Crew>(count, std::move(source), where)});
    };
    const auto add_dibs = [&](std::string name, const DibsSlots::Setting& setting) {
        add(std::move(name), std::make_unique<DibsSlots>(slots, server, setting), processes);
    };
    add("ideal: only work", std::make_unique<NoSlots>(), std::min(processes, slots));
    add_dibs("dibs, as configured by default", {});
    add_dibs("dibs, clients do not spin", {.client_us = -1});
    add_dibs("dibs, quantum 0", {.quantum = "0s"});
    add_dibs("dibs, quantum 0, clients do not spin", {.client_us = -1, .quantum = "0s"});
    add("jobserver pipe", std::make_unique<PipeSlots>(slots), processes);
    add("robust mutex and condition", std::make_unique<MutexSlots>(slots), processes);
    add("flock", std::make_unique<FlockSlots>(slots), processes);
    const Kind redis = redis_kind(RedisWay::kPop);
    if (redis.absent.empty()) add(redis.name, redis.make(slots, server), processes);
    return sides;
}

WorkersRow row_of(const WorkersRow& cell, const std::string& name, const Harvest& harvest) {
    WorkersRow row = cell;
    row.name = name;
    row.rounds = static_cast<uint32_t>(harvest.tasks_per_second.size());
    row.tasks_per_second = median(harvest.tasks_per_second);
    if (!harvest.percents.empty()) {
        const auto [least, most] = std::ranges::minmax(harvest.percents);
        row.percent = median(harvest.percents);
        row.percent_least = least;
        row.percent_most = most;
    }
    row.claims = harvest.claims.count();
    row.claim_ns = harvest.claims.percentiles();
    row.fairness = median(harvest.fairness);
    row.cpu_ns_per_task = median(harvest.cpu_ns);
    return row;
}

std::string named(const WorkersRow& cell) {
    return "workers: " + std::to_string(cell.processes) + " processes, " +
           std::to_string(cell.slots) + (cell.slots == 1 ? " slot, " : " slots, ") +
           std::to_string(cell.work_us) + " us of work";
}

}  // namespace

// With 0 us of work the ideal is measured only to see whether the round was undisturbed.
void race_crews(const Stage& stage, WorkersRow cell, const std::vector<Side>& sides) {
    const size_t first = cell.work_us == 0 ? 1 : 0;
    const uint64_t steps = steps_of(cell.work_us * 1000.0);
    const double ideal_cpus = std::min({cell.processes, cell.slots, 2U});
    // A longer round is more often disturbed: there are more of them.
    const uint32_t shares = std::max(1U, cell.processes / kProcessesPerShare);
    const double counted_ns = kCountedNs * stage.options.scale * shares;
    const std::vector<MachineState> states = stage.pair_probe.states();
    std::vector<std::vector<Harvest>> harvests(states.size(), std::vector<Harvest>(sides.size()));
    std::vector<Yield> yields(sides.size());
    std::vector<Samples> claims(sides.size());
    const auto measure = [&] {
        for (size_t i = 0; i < sides.size(); ++i) {
            claims[i].clear();
            yields[i] = sides[i].crew->work(steps, counted_ns, claims[i]);
        }
        return yields[0].cpus >= kUndisturbed * ideal_cpus;
    };
    const auto keep = [&](size_t state) {
        for (size_t i = first; i < sides.size(); ++i) {
            Harvest& harvest = harvests[state][i];
            if (i != 0) harvest.claims.append(claims[i]);
            harvest.tasks_per_second.push_back(yields[i].tasks_per_second);
            harvest.fairness.push_back(yields[i].fairness);
            harvest.cpu_ns.push_back(yields[i].cpu_ns_per_task);
            if (first != 0) continue;
            harvest.percents.push_back(100 * yields[i].tasks_per_second /
                                       yields[0].tasks_per_second);
        }
    };
    const uint32_t rounds = (stage.options.rounds + kFewerRounds - 1) / kFewerRounds * shares;
    stage.report.rounds.push_back(play_rounds(cell.group, rounds, stage.pair_probe, measure, keep));
    for (size_t state = 0; state < states.size(); ++state) {
        if (harvests[state].back().tasks_per_second.empty()) continue;
        cell.state = name_of(states[state]);
        for (size_t i = first; i < sides.size(); ++i)
            stage.report.workers.push_back(row_of(cell, sides[i].name, harvests[state][i]));
    }
}

void race_workers(const Stage& stage) {
    const Kind redis = redis_kind(RedisWay::kPop);
    if (!redis.absent.empty()) stage.report.absences.push_back({redis.name, redis.absent});
    for (const uint32_t processes : kCrewSizes) {
        for (const uint32_t slots : kSlotCounts) {
            const std::vector<Side> sides = sides_of(stage, processes, slots);
            for (const uint32_t work_us : kWorkUs) {
                WorkersRow cell;
                cell.processes = processes;
                cell.slots = slots;
                cell.work_us = work_us;
                cell.group = named(cell);
                race_crews(stage, cell, sides);
            }
        }
    }
}

}  // namespace dibs::bench
