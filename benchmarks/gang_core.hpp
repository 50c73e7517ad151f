// benchmarks/gang_core.hpp -- the core alone: applications, and gangs that become whole at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "benchmarks/contender.hpp"
#include "benchmarks/state_memory.hpp"
#include "broker/core/core.hpp"

namespace dibs::bench {

// Beside `applications` that run, each of ten tasks without a claim.
class GangCore final : public Contender {
  public:
    enum class Part {
        kNothing,  // nanoseconds per turn without news
        kDecided,  // per gang of `members`: the turn in which it is added, has all its slots and
                   // runs
    };
    GangCore(uint32_t applications, uint32_t members, Part part);
    void measure(uint32_t operations, Samples& out) override;

  private:
    template <class Commands>
    void turn(const Commands& commands);
    void fill(uint32_t applications);
    void decide(Samples& out);

    StateMemory memory_;
    std::unique_ptr<core::Core> core_;
    core::PoolId pool_ = {};
    core::SessionId session_ = {};
    uint32_t members_;
    Part part_;
    core::TimeNs now_ = 1;
    uint32_t bound_ = 0;  // placeholders of the turn
};

}  // namespace dibs::bench
