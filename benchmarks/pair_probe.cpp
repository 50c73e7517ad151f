// benchmarks/pair_probe.cpp -- near, far or halves of one core; alone or shared.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/pair_probe.hpp"

#include <new>

#include "benchmarks/core_probe.hpp"
#include "benchmarks/samples.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

// Seen, in ns: 60 to 70 between two halves of a core, 81 to 151 near, 230 to 690 far.
constexpr double kHalvesBelowNs = 76;
constexpr double kNearBelowNs = 200;
constexpr int kLooksPerAsking = 64;

MachineState state_of(double round_trip_ns, bool both_alone) {
    if (round_trip_ns < kHalvesBelowNs) return MachineState::kHalves;
    if (round_trip_ns < kNearBelowNs) {
        return both_alone ? MachineState::kNear : MachineState::kNearShared;
    }
    return both_alone ? MachineState::kFar : MachineState::kFarShared;
}

}  // namespace

PairProbe::PairProbe(int peer_cpu)
    : memory_(sizeof(Lines)),
      lines_(new (memory_.at<std::byte>(0)) Lines{}),
      echo_(peer_cpu,
            [lines = lines_](const Peer::Running& running) {
                uint64_t seen = lines->back.load(std::memory_order_relaxed);
                while (running) {
                    for (int i = 0; i < kLooksPerAsking; ++i) {
                        // Acquire and release pair with line_round_trip_ns()'s.
                        const uint64_t now = lines->there.load(std::memory_order_acquire);
                        if (now != seen) lines->back.store(now, std::memory_order_release);
                        seen = now;
                        shm::pause();
                    }
                }
            }),
      adder_(peer_cpu, [lines = lines_](const Peer::Running& running) {
          do {
              // Read behind stop(), which waits for the peer's rest: that pairs.
              lines->at_once.store(additions_at_once(), std::memory_order_relaxed);
          } while (running);
      }) {}

double PairProbe::line_round_trip_ns() {
    Samples samples;
    echo_.start();
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
    echo_.stop();
    return samples.percentiles().p50;
}

double PairProbe::additions_at_once_there() {
    adder_.start();
    adder_.stop();
    return lines_->at_once.load(std::memory_order_relaxed);
}

Probed PairProbe::probe() {
    // One after the other: two halves of a core would find it shared by each other.
    const bool here = is_alone(additions_at_once());
    const bool there = is_alone(additions_at_once_there());
    const double round_trip_ns = line_round_trip_ns();
    return {round_trip_ns, state_of(round_trip_ns, here && there)};
}

}  // namespace dibs::bench
