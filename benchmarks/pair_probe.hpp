// benchmarks/pair_probe.hpp -- how two CPUs stand to each other, and who else computes there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "benchmarks/machine_state.hpp"
#include "benchmarks/peer.hpp"

namespace dibs::bench {

class PairProbe : public StateProbe {
  public:
    explicit PairProbe(int peer_cpu);
    Probed probe() override;
    [[nodiscard]] std::vector<MachineState> states() const override {
        return {MachineState::kNear,
                MachineState::kNearShared,
                MachineState::kFar,
                MachineState::kFarShared,
                MachineState::kHalves};
    }
    [[nodiscard]] std::string figure() const override { return "line round trip, ns"; }

  private:
    struct Lines {
        alignas(64) std::atomic<uint64_t> there;  // writer: this process
        alignas(64) std::atomic<uint64_t> back;   // writer: the peer that echoes
        alignas(64) std::atomic<double> at_once;  // writer: the peer that computes
    };
    double line_round_trip_ns();
    double additions_at_once_there();

    SharedMemory memory_;
    Lines* lines_;
    Peer echo_;
    Peer adder_;
};

}  // namespace dibs::bench
