// benchmarks/worker_races.hpp -- races of processes that claim a slot, work and release it.
//
// K processes share two CPUs and S slots. Their tasks per second stand beside those of min(K, S)
// processes that only work, and beside those of programs that use something else than dibs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/races.hpp"

namespace dibs::bench {

void race_workers(const Stage& stage);

}  // namespace dibs::bench
