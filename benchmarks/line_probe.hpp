// benchmarks/line_probe.hpp -- near or far: how long a cache line takes between the two CPUs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "benchmarks/machine_state.hpp"
#include "benchmarks/peer.hpp"

namespace dibs::bench {

class LineProbe : public StateProbe {
  public:
    explicit LineProbe(int peer_cpu);
    Probed probe() override;
    [[nodiscard]] std::array<MachineState, 2> states() const override {
        return {MachineState::kNear, MachineState::kFar};
    }
    [[nodiscard]] std::string figure() const override { return "line round trip, ns"; }

  private:
    struct Lines {
        alignas(64) std::atomic<uint64_t> there;  // writer: this process
        alignas(64) std::atomic<uint64_t> back;   // writer: the peer
    };
    SharedMemory memory_;
    Lines* lines_;
    Peer peer_;
};

}  // namespace dibs::bench
