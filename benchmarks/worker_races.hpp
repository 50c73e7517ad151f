// benchmarks/worker_races.hpp -- races of processes that claim a slot, work and release it.
//
// K processes share two CPUs and S slots. Their tasks per second stand beside those of min(K, S)
// processes that only work, and beside those of programs that use something else than dibs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmarks/crew.hpp"
#include "benchmarks/races.hpp"

namespace dibs::bench {

struct Side {
    std::string name;
    std::unique_ptr<Crew> crew;
};

void race_workers(const Stage& stage);
// Rounds of one combination: `cell` says which. The first side is the ideal, which only works.
void race_crews(const Stage& stage, WorkersRow cell, const std::vector<Side>& sides);

}  // namespace dibs::bench
