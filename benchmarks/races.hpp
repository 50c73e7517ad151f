// benchmarks/races.hpp -- who runs against which floor, and what is wished of him.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/core_probe.hpp"
#include "benchmarks/options.hpp"
#include "benchmarks/pair_probe.hpp"
#include "benchmarks/placement.hpp"
#include "benchmarks/report.hpp"

namespace dibs::bench {

struct Stage {
    const Options& options;
    Placement placement;
    PairProbe& pair_probe;  // of two sides
    CoreProbe& core_probe;  // of one
    Report& report;
};

void race_rings(const Stage& stage);    // asked claims, both sides awake
void race_futexes(const Stage& stage);  // asked claims, both sides asleep
void race_parked(const Stage& stage);
void race_beside_a_hostile_session(const Stage& stage);
void race_core(const Stage& stage);           // the scheduler alone
void race_several_pools(const Stage& stage);  // and claims over three pools
void race_parts(const Stage& stage);          // and with slots that have resources
void race_elastic(const Stage& stage);        // and with provisioners; with a queue elsewhere
void race_gangs(const Stage& stage);          // all or none, by the core and through the library
void race_routes(const Stage& stage);         // and with several pools for one claim
void race_board(const Stage& stage);          // a pool's counters

}  // namespace dibs::bench
