// benchmarks/machine_state.cpp -- near or far.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/machine_state.hpp"

#include <algorithm>
#include <new>

#include "benchmarks/samples.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

constexpr double kProbeNs = 10'000'000;
// Seen: 81 to 121 ns near, 230 to 459 far.
constexpr double kNearBelowNs = 180;
// Two probes of one state differ by less than this factor.
constexpr double kSteady = 1.35;
constexpr int kPollsPerLook = 64;

}  // namespace

const char* name_of(MachineState state) {
    switch (state) {
        case MachineState::kNear:
            return "near";
        case MachineState::kFar:
            return "far";
        default:
            return "mixed";
    }
}

MachineState LineRoundTrip::state() const {
    return p50_ns < kNearBelowNs ? MachineState::kNear : MachineState::kFar;
}

MachineState state_between(const LineRoundTrip& before, const LineRoundTrip& after) {
    const double lesser = std::min(before.p50_ns, after.p50_ns);
    const double greater = std::max(before.p50_ns, after.p50_ns);
    if (before.state() != after.state() || greater > lesser * kSteady) return MachineState::kMixed;
    return before.state();
}

LineProbe::LineProbe(int peer_cpu)
    : memory_(sizeof(Lines)),
      lines_(new (memory_.at<std::byte>(0)) Lines{}),
      peer_(peer_cpu, [lines = lines_](const Peer::Running& running) {
          uint64_t seen = lines->back.load(std::memory_order_relaxed);
          while (running) {
              for (int i = 0; i < kPollsPerLook; ++i) {
                  // Acquire and release pair with probe()'s.
                  const uint64_t now = lines->there.load(std::memory_order_acquire);
                  if (now != seen) lines->back.store(now, std::memory_order_release);
                  seen = now;
                  shm::pause();
              }
          }
      }) {}

LineRoundTrip LineProbe::probe() {
    Samples samples;
    peer_.start();
    uint64_t value = lines_->there.load(std::memory_order_relaxed);
    const uint64_t until = ticks() + as_ticks(kProbeNs);
    while (ticks() < until) {
        ++value;
        const uint64_t first = ticks();
        lines_->there.store(value, std::memory_order_release);
        while (lines_->back.load(std::memory_order_acquire) != value)
            shm::pause();
        samples.add(elapsed_ns(first, ticks()));
    }
    peer_.stop();
    return {samples.percentiles().p50};
}

}  // namespace dibs::bench
