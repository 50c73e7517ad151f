// benchmarks/rounds.hpp -- contenders in turns: probe, A, B, C, probe; again and again.
//
// All contenders of a race see the same moments of the machine, so that their ratios hold where
// their nanoseconds do not. A round whose two probes disagree is dropped for all of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/contender.hpp"
#include "benchmarks/machine_state.hpp"
#include "benchmarks/report.hpp"

namespace dibs::bench {

inline constexpr int kIsFloor = -1;

struct Lane {
    std::string name;
    std::string placement;
    std::unique_ptr<Contender> contender;
    int floor = kIsFloor;  // its floor's place among the lanes
    double floor_times = 1;
    double ratio_p50_max = 0;  // wished; 0 = nothing is
    double ratio_p99_max = 0;
    double p50_max_ns = 0;
};

struct Race {
    std::string group;
    uint32_t operations = 0;  // of each lane in each round
    std::vector<Lane> lanes;
};

// Rounds of `measure`, each between two probes; false drops the round. `keep` is told of one that
// is not dropped in which of probe.states() it was.
RoundCount play_rounds(const std::string& group,
                       uint32_t rounds,
                       StateProbe& probe,
                       const std::function<bool()>& measure,
                       const std::function<void(size_t state)>& keep);

// `probe` tells of the state that the race depends on.
void run(Race& race, uint32_t rounds, StateProbe& probe, Report& report);

}  // namespace dibs::bench
