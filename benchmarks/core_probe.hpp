// benchmarks/core_probe.hpp -- alone or shared: whether another CPU computes on this one's core.
//
// A chain of additions takes a cycle each, whatever the core's other half does. As many additions
// that do not wait for each other take a part of that, and how small a part depends on who else
// uses the adders. The frequency is in both and falls out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/machine_state.hpp"

namespace dibs::bench {

// How many additions at once there are for each that waits, on this thread's CPU.
double additions_at_once();
bool is_alone(double additions_at_once);

class CoreProbe : public StateProbe {
  public:
    Probed probe() override;
    [[nodiscard]] std::vector<MachineState> states() const override {
        return {MachineState::kAlone, MachineState::kShared};
    }
    [[nodiscard]] std::string figure() const override { return "additions at once"; }
};

}  // namespace dibs::bench
