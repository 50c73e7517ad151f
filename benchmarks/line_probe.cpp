// benchmarks/line_probe.cpp -- near or far.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/line_probe.hpp"

#include <new>

#include "benchmarks/samples.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

// Seen: 81 to 121 ns near, 230 to 459 far.
constexpr double kNearBelowNs = 200;
constexpr int kPollsPerLook = 64;

}  // namespace

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

Probed LineProbe::probe() {
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
    const double p50 = samples.percentiles().p50;
    return {p50, p50 < kNearBelowNs ? MachineState::kNear : MachineState::kFar};
}

}  // namespace dibs::bench
