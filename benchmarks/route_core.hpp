// benchmarks/route_core.hpp -- the core alone: ranks the members of a route.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>

#include "benchmarks/contender.hpp"
#include "benchmarks/state_memory.hpp"
#include "broker/core/core.hpp"

namespace dibs::bench {

// Nanoseconds per ranking, in bulks of 256: members that differ in what is idle, all looked at anew
// each time.
class Ranking final : public Contender {
  public:
    Ranking();
    void measure(uint32_t operations, Samples& out) override;

  private:
    StateMemory memory_;
    std::unique_ptr<core::Core> core_;
    std::array<core::RouteMember, shm::kSetMembersMax> members_;
};

}  // namespace dibs::bench
