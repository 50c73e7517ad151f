// benchmarks/machine_state.hpp -- the states of a machine that every figure depends on.
//
// A host moves virtual CPUs about: the same machine passes a line in 100 ns now and in 460 ns a
// minute later, and every figure of two sides follows. And a CPU is often half of a core: while its
// other half works, for this machine or for somebody else's, whatever one side computes takes half
// as long again. So each round of measurements is probed before and after, 10 ms each, and one
// whose probes differ is dropped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace dibs::bench {

// Of a round in which two sides talk: near, far. Of one in which one side computes: alone, shared.
enum class MachineState : uint8_t { kNear, kFar, kAlone, kShared, kMixed };
const char* name_of(MachineState state);

struct Probed {
    double figure = 0;
    MachineState state = MachineState::kMixed;
};

// What two probes say of the round between them.
MachineState state_between(const Probed& before, const Probed& after);

class StateProbe {
  public:
    StateProbe() = default;
    virtual ~StateProbe() = default;
    StateProbe(const StateProbe&) = delete;
    StateProbe& operator=(const StateProbe&) = delete;

    virtual Probed probe() = 0;
    [[nodiscard]] virtual std::array<MachineState, 2> states() const = 0;
    [[nodiscard]] virtual std::string figure() const = 0;  // what it is, and its unit
};

inline constexpr double kProbeNs = 10'000'000;

}  // namespace dibs::bench
