// demo/figures.hpp -- a run's times and facts, as text and as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "demo/facts.hpp"
#include "demo/ideal.hpp"
#include "demo/player.hpp"
#include "demo/workload.hpp"

namespace dibs::ctl::demo {

struct Figures {
    const Workload& workload;
    const Ideal& ideal;
    Timing measured;
    uint64_t samples = 0;
    uint32_t most_queued = 0;
    uint64_t held_back = 0;
};

// The table of times: measured beside the core alone.
std::string times_table(const Figures& figures);
// Writes figures and facts; throws std::runtime_error if the file cannot be written.
void write_json(const std::string& path, const Figures& figures, const Facts& facts);

}  // namespace dibs::ctl::demo
