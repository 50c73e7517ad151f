// benchmarks/crew.hpp -- runs processes that claim a slot, work and release it, and counts tasks.
//
//   barrier ──► warm-up ──► begin ──────────── counted ──────────── end
//
// Each process writes its number of tasks and the duration of each claim into shared memory that it
// has touched before the barrier. The measuring process reads the CPU clocks of all processes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "benchmarks/peer.hpp"
#include "benchmarks/placement.hpp"
#include "benchmarks/samples.hpp"
#include "benchmarks/slot_source.hpp"

namespace dibs::bench {

struct Yield {
    double tasks_per_second = 0;
    double fairness = 0;  // the least tasks of a process / the most
    double cpu_ns_per_task = 0;
    double cpus = 0;  // mean number of CPUs in use
};

class Crew {
  public:
    // Forks `count` processes that may run on both CPUs, and waits until each is attached.
    Crew(uint32_t count, std::unique_ptr<SlotSource> slots, const Placement& placement);
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;
    // A run: each task is `steps` of work. Adds the durations of claims to `claims`.
    Yield work(uint64_t steps, double counted_ns, Samples& claims);

  private:
    struct Board;
    struct Sheet;

    // These two run in a worker's process.
    void attend(uint32_t worker);
    void count_tasks(Sheet& sheet);

    [[nodiscard]] Sheet& sheet_of(size_t worker) const;
    [[nodiscard]] double used_cpu_ns() const;

    std::unique_ptr<SlotSource> slots_;
    uint32_t claims_max_;  // of a sheet
    size_t sheet_bytes_;   // whole cache lines
    SharedMemory memory_;
    Board* board_;
    bool attached_ = false;  // of a worker's copy
    uint32_t seen_ = 0;      // of a worker's copy: number of its last run
    std::vector<std::unique_ptr<Peer>> workers_;
};

}  // namespace dibs::bench
