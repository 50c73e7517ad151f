// benchmarks/dispatch_core.hpp -- the core alone: a dispatched pool at its most workers, with
// entries that wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/contender.hpp"
#include "benchmarks/state_memory.hpp"
#include "broker/core/core.hpp"

namespace dibs::bench {

// An entry runs on each worker, all other entries wait, queued.
class DispatchCore final : public Contender {
  public:
    enum class Part {
        kNothing,  // nanoseconds per turn with a report that changes nothing
        kFreed,  // per worker: the turn with the reports that free it, which locks the first entry,
                 // and the turn that learns of the lock and starts it
    };
    DispatchCore(uint32_t waiting, uint32_t workers, Part part);
    void measure(uint32_t operations, Samples& out) override;

  private:
    struct Start {
        uint32_t entry;
        uint32_t worker;
    };
    template <class Commands>
    void turn(const Commands& commands);
    void follow();
    void report_worker(uint32_t worker, core::WorkerReport::State seen);
    void report_entry(uint32_t entry, core::QueueState seen);
    void run_started();
    void look();
    [[nodiscard]] double free_one();

    StateMemory memory_;
    std::unique_ptr<core::Core> core_;
    uint32_t pool_ = 0;
    Part part_;
    core::TimeNs now_ = 1;
    std::vector<std::string> entries_;  // their names
    std::vector<std::string> workers_;
    std::vector<uint32_t> locks_;    // to be reported as done
    std::vector<Start> started_;     // to be reported as running
    std::vector<uint32_t> runs_on_;  // by worker: an entry
    uint32_t next_ = 0;              // the worker that is freed next
};

}  // namespace dibs::bench
