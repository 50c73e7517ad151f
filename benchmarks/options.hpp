// benchmarks/options.hpp -- dibs-bench's command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dibs::bench {

struct Options {
    std::vector<std::string> groups = {
        "ring", "futex", "hostile", "core", "board", "accounts", "memory", "deaths"};
    uint32_t rounds = 40;
    double scale = 1;  // of the operations in a round
    uint32_t idle_seconds = 10;
    std::string json;
    std::string trace;  // Standard Workload Format; empty = none
    bool check = false;

    // Work of a fixed size, untimed, for a profiler.
    std::string work;  // empty, "core" or "claim"
    uint32_t operations = 100'000;
    uint32_t slots = 1000;
    uint32_t batch = 1;

    [[nodiscard]] bool wants(const std::string& group) const;
};

std::optional<Options> parse_options(int argc, char** argv, int* exit_code);

}  // namespace dibs::bench
