// demo/workload.hpp -- loads a run's workload and fits it to the pool and the time.
// It is a trace from a file or from the generator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "demo/ideal.hpp"
#include "demo/options.hpp"
#include "demo/trace/scaling.hpp"
#include "demo/trace/trace.hpp"

namespace dibs::ctl::demo {

struct Workload {
    std::string name;  // of the file, or the generator's parameters
    Trace trace;       // scaled
    PoolShape shape = PoolShape::kWorkers;
    uint32_t slots = 8;
    Scale scale;
    uint64_t work_ns = 0;  // scaled: units × hold time
};

// Throws std::runtime_error with what is wrong with the file or with the options for it.
Workload load_workload(const Options& options);

// Throws std::runtime_error if nothing can be played, or not in sensible time.
void check_playable(const Workload& workload);

// What it is, in a few lines.
std::string describe(const Workload& workload);
// The broken rows: the first `most`, one line each, and the count. Empty if there are none.
std::string describe_broken(const Trace& trace, size_t most);

}  // namespace dibs::ctl::demo
