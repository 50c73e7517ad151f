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

// Processes that claim a slot, work and release it, in one state of the machine. Figures are
// medians of the rounds; percentiles are over the claims of all rounds.
struct WorkersRow {
    std::string group;  // made of the three numbers below
    uint32_t processes = 0;
    uint32_t slots = 0;
    uint32_t work_us = 0;
    std::string name;
    std::string state;
    uint32_t rounds = 0;
    double tasks_per_second = 0;
    double percent = 0;  // of the ideal in the same round; 0 = no ideal
    double percent_least = 0;
    double percent_most = 0;
    uint64_t claims = 0;  // 0 = the ideal
    Percentiles claim_ns;
    double fairness = 0;  // the least tasks of a process / the most
    double cpu_ns_per_task = 0;
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
    std::vector<WorkersRow> workers;
    std::vector<Fact> facts;
    std::vector<Absence> absences;
};

void write_text(std::ostream& out, const Report& report);
void write_targets(std::ostream& out, const Report& report);  // met and missed, a line each
void write_json(std::ostream& out, const Report& report);

}  // namespace dibs::bench
