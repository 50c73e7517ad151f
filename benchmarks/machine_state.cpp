// benchmarks/machine_state.cpp -- names, and what two probes say together.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/machine_state.hpp"

#include <algorithm>

namespace dibs::bench {

namespace {

// Two probes of one state differ by less than this factor.
constexpr double kSteady = 1.35;

}  // namespace

const char* name_of(MachineState state) {
    switch (state) {
        case MachineState::kAlone:
            return "alone";
        case MachineState::kShared:
            return "shared";
        case MachineState::kNear:
            return "near";
        case MachineState::kNearShared:
            return "near, shared";
        case MachineState::kFar:
            return "far";
        case MachineState::kFarShared:
            return "far, shared";
        case MachineState::kHalves:
            return "halves";
        default:
            return "mixed";
    }
}

MachineState state_between(const Probed& before, const Probed& after) {
    const double lesser = std::min(before.figure, after.figure);
    const double greater = std::max(before.figure, after.figure);
    if (before.state != after.state || greater > lesser * kSteady) return MachineState::kMixed;
    return before.state;
}

}  // namespace dibs::bench
