// benchmarks/machine_state.hpp -- near or far: how long a cache line takes between the two CPUs.
//
// A host moves virtual CPUs about: the same machine passes a line in 100 ns now and in 460 ns a
// minute later, and every figure of two sides follows. So each round of measurements is probed
// before and after, 10 ms each, and one whose probes differ is dropped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "benchmarks/peer.hpp"

namespace dibs::bench {

enum class MachineState : uint8_t { kNear, kFar, kMixed };
const char* name_of(MachineState state);

struct LineRoundTrip {
    double p50_ns = 0;
    [[nodiscard]] MachineState state() const;
};

// What two probes say of the round between them.
MachineState state_between(const LineRoundTrip& before, const LineRoundTrip& after);

class LineProbe {
  public:
    explicit LineProbe(int peer_cpu);
    LineRoundTrip probe();

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
