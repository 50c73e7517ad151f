// tests/naive/journal_of_trace.hpp -- jobs of a batch system as gangs: each runs all or none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "tests/naive/journal.hpp"

namespace dibs::naive {

struct TraceJob {
    uint64_t submitted_s = 0;
    uint64_t runs_s = 1;
    uint32_t processors = 1;
};

// Of a file in the Standard Workload Format those that ran, in its order.
std::vector<TraceJob> read_swf(std::istream& file);
// As many of the same kind: most are small and short, some want every processor of the cluster.
std::vector<TraceJob> made_jobs(uint64_t seed, size_t count);

struct GangJournal {
    Journal journal;
    size_t started = 0;             // gangs that became whole
    size_t most_partial = 0;        // that held a part of their slots at once, behind any turn
    std::vector<uint64_t> waits_s;  // of each that started
};

// Slots of two processors. Each job is an application of ⌈processors / 2⌉ members, whose
// reservation has no time-out; its tasks give their slots back when it has run.
GangJournal gangs_of(const std::vector<TraceJob>& jobs, uint32_t slots);

}  // namespace dibs::naive
