// benchmarks/trace_replay.hpp -- an archive's workload through the core, an account per user.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace dibs::bench {

struct TraceFigures {
    uint64_t commands = 0;  // claims, releases
    uint64_t accounts = 0;
    uint64_t turns = 0;
    double seconds = 0;  // of the fastest of the runs
};

// Throws if the file cannot be read.
TraceFigures replay_trace(const std::string& path, uint32_t runs);

}  // namespace dibs::bench
