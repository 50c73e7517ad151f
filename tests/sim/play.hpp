// tests/sim/play.hpp -- one play: a world, a broker's house, processes, and what went wrong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dibs::sim {

struct Outcome {
    std::vector<std::string> wrongs;
    std::string character;  // what was drawn for it
    uint64_t hash = 0;      // of all that was told
    uint64_t commands = 0;
    uint64_t faults = 0;
    uint64_t deaths = 0;  // of brokers
    uint64_t net_found_work = 0;
    std::map<std::string, uint64_t> seen;
};

// Everything follows from the seed: sizes, faults, the story.
Outcome play(uint64_t seed, uint64_t commands);

}  // namespace dibs::sim
