// benchmarks/report.hpp -- what a run has found: rows of latencies, single facts, and the machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "benchmarks/samples.hpp"

namespace dibs::bench {

// What a figure is wished to stay below. Printed, never a failure: times belong to the machine.
struct Target {
    std::string of;
    double limit = 0;
    double value = 0;
    [[nodiscard]] bool met() const { return value <= limit; }
};

// One contender in one state of the machine.
struct Row {
    std::string group;
    std::string name;
    std::string placement;
    std::string state;  // of the machine (machine_state.hpp)
    uint64_t samples = 0;
    Percentiles ns;
    std::string floor;  // empty: it is one
    double floor_times = 1;
    double ratio_p50 = 0;  // to floor_times × the floor's, of the same rounds
    double ratio_p99 = 0;
    std::vector<Target> targets;
};

struct Fact {
    std::string group;
    std::string name;
    double value = 0;
    std::string unit;
    std::string how;  // the arithmetic
    std::vector<Target> targets;
};

// Something that could not be measured here.
struct Absence {
    std::string name;
    std::string why;
};

struct RoundCount {
    std::string group;
    struct Kept {
        std::string state;
        uint32_t rounds = 0;
    };
    std::vector<Kept> kept;      // of each state
    uint32_t mixed_rounds = 0;   // dropped
    std::string figure;          // what was probed
    double figures[2] = {0, 0};  // least and greatest
};

struct Machine {
    std::string processor;
    std::string kernel;
    std::string compiler;
    double load_before = 0;
    double load_after = 0;
};

struct Report {
    Machine machine;
    std::vector<RoundCount> rounds;
    std::vector<Row> rows;
    std::vector<Fact> facts;
    std::vector<Absence> absences;
};

void write_text(std::ostream& out, const Report& report);
void write_targets(std::ostream& out, const Report& report);  // met and missed, a line each
void write_json(std::ostream& out, const Report& report);

}  // namespace dibs::bench
