// benchmarks/machine_state.hpp -- the states of a machine that every figure depends on.
//
// A host moves virtual CPUs about: the same machine passes a line in 100 ns now and in 460 ns a
// minute later, and every figure of two sides follows. And a CPU is often half of a core: while its
// other half works, for this machine or for somebody else's, whatever one side computes takes half
// as long again, or twice. So each round of measurements is probed before and after, 10 ms for each
// figure, and one whose probes differ is dropped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dibs::bench {

// Of a round in which one side computes, whether its CPU has a core to itself: alone, shared. Of
// one in which two sides talk, how far a line goes between them, and whether anybody else computes
// on the core of either. Or their CPUs are the two halves of one core: a line goes there and back
// at once, and what either computes, waiting included, takes from the other.
enum class MachineState : uint8_t {
    kAlone,
    kShared,
    kNear,
    kNearShared,
    kFar,
    kFarShared,
    kHalves,
    kMixed,
};
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
    [[nodiscard]] virtual std::vector<MachineState> states() const = 0;
    [[nodiscard]] virtual std::string figure() const = 0;  // what it is, and its unit
};

inline constexpr double kProbeNs = 10'000'000;

}  // namespace dibs::bench
