// benchmarks/part_core.hpp -- the core alone: claims of parts of slots that have resources.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "benchmarks/contender.hpp"
#include "benchmarks/state_memory.hpp"
#include "broker/core/core.hpp"

namespace dibs::bench {

// Nanoseconds per claim, or per release, in bulks of 256: among partly used slots, all of which
// have parts of eight shapes. Which part goes back is random, and the next claim wants a random
// shape.
class PartClaim final : public Contender {
  public:
    enum class Part { kClaim, kRelease };
    PartClaim(uint32_t slots, uint32_t batch, Part part);
    void measure(uint32_t operations, Samples& out) override;

  private:
    struct Lease {
        uint64_t id;
        uint64_t fence;
        uint32_t place;  // session and tag
    };
    // In turns of `batch`, each decided, committed and cleared.
    void claim(uint32_t count, uint32_t batch);
    void release(uint32_t count);
    void finish_turn();

    StateMemory memory_;
    std::unique_ptr<core::Core> core_;
    uint32_t pool_ = 0;
    uint32_t batch_;
    Part part_;
    core::TimeNs now_ = 1;
    std::vector<Lease> leases_;
    std::vector<uint32_t> places_;  // that are free
    std::mt19937 random_{20'000};   // the same in each run
};

}  // namespace dibs::bench
