// benchmarks/rounds.cpp -- contenders in turns.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/rounds.hpp"

#include <algorithm>

namespace dibs::bench {

namespace {

// What each lane has collected in each of the states.
using Collected = std::vector<std::vector<Samples>>;

void count_probe(RoundCount& count, const Probed& probed) {
    double& least = count.figures[0];
    double& greatest = count.figures[1];
    least = least == 0 ? probed.figure : std::min(least, probed.figure);
    greatest = std::max(greatest, probed.figure);
}

Row row_of(const Race& race, size_t at, const std::vector<Samples>& samples) {
    const Lane& lane = race.lanes[at];
    Row row;
    row.group = race.group;
    row.name = lane.name;
    row.placement = lane.placement;
    row.samples = samples[at].count();
    row.ns = samples[at].percentiles();
    row.floor_times = lane.floor_times;
    if (lane.floor != kIsFloor) {
        const auto floor = static_cast<size_t>(lane.floor);
        const Percentiles below = samples[floor].percentiles();
        row.floor = race.lanes[floor].name;
        row.ratio_p50 = row.ns.p50 / (below.p50 * lane.floor_times);
        row.ratio_p99 = row.ns.p99 / (below.p99 * lane.floor_times);
    }
    if (lane.ratio_p50_max > 0) row.targets.push_back({"x p50", lane.ratio_p50_max, row.ratio_p50});
    if (lane.ratio_p99_max > 0) row.targets.push_back({"x p99", lane.ratio_p99_max, row.ratio_p99});
    if (lane.p50_max_ns > 0) row.targets.push_back({"p50 ns", lane.p50_max_ns, row.ns.p50});
    return row;
}

}  // namespace

RoundCount play_rounds(const std::string& group,
                       uint32_t rounds,
                       StateProbe& probe,
                       const std::function<bool()>& measure,
                       const std::function<void(size_t state)>& keep) {
    const std::vector<MachineState> states = probe.states();
    RoundCount count;
    count.group = group;
    count.figure = probe.figure();
    for (const MachineState state : states)
        count.kept.push_back({name_of(state)});
    Probed before = probe.probe();
    for (uint32_t i = 0; i < rounds; ++i) {
        count_probe(count, before);
        const bool usable = measure();
        const Probed after = probe.probe();
        count_probe(count, after);
        const MachineState state = state_between(before, after);
        before = after;
        if (!usable || state == MachineState::kMixed) {
            ++count.mixed_rounds;
            continue;
        }
        const auto which = static_cast<size_t>(std::ranges::find(states, state) - states.begin());
        ++count.kept[which].rounds;
        keep(which);
    }
    return count;
}

void run(Race& race, uint32_t rounds, StateProbe& probe, Report& report) {
    const std::vector<MachineState> states = probe.states();
    Collected collected(states.size(), std::vector<Samples>(race.lanes.size()));
    std::vector<Samples> round(race.lanes.size());
    for (Samples& samples : round)
        samples.reserve(race.operations);
    const auto measure = [&] {
        for (size_t lane = 0; lane < race.lanes.size(); ++lane) {
            round[lane].clear();
            race.lanes[lane].contender->measure(race.operations, round[lane]);
        }
        return true;
    };
    const auto keep = [&](size_t state) {
        for (size_t lane = 0; lane < race.lanes.size(); ++lane)
            collected[state][lane].append(round[lane]);
    };
    report.rounds.push_back(play_rounds(race.group, rounds, probe, measure, keep));
    for (size_t state = 0; state < states.size(); ++state) {
        if (collected[state].front().count() == 0) continue;
        for (size_t lane = 0; lane < race.lanes.size(); ++lane) {
            Row row = row_of(race, lane, collected[state]);
            row.state = name_of(states[state]);
            report.rows.push_back(row);
        }
    }
}

}  // namespace dibs::bench
