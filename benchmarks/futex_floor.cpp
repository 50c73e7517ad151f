// benchmarks/futex_floor.cpp -- a word there, a word back, both sides asleep.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/futex_floor.hpp"

#include <sched.h>

#include <new>

#include "benchmarks/tick_clock.hpp"
#include "shm/futex.hpp"

namespace dibs::bench {

namespace {

constexpr uint64_t kWaitNs = 50'000'000;  // the peer then looks whether to go on
constexpr int kYields = 4;                // until a peer on this CPU sleeps

}  // namespace

FutexFloor::FutexFloor(int peer_cpu, bool same_core)
    : same_core_(same_core),
      memory_(sizeof(Words)),
      words_(new (memory_.at<std::byte>(0)) Words{}),
      peer_(peer_cpu, [words = words_](const Peer::Running& running) {
          uint32_t seen = words->back.load(std::memory_order_relaxed);
          while (running) {
              shm::futex_wait(words->there, seen, kWaitNs);
              // Pairs with the store in measure().
              const uint32_t now = words->there.load(std::memory_order_acquire);
              if (now == seen) continue;
              seen = now;
              words->back.store(now, std::memory_order_release);  // pairs with measure()'s load
              shm::futex_wake(words->back, 1);
          }
      }) {}

void FutexFloor::measure(uint32_t operations, Samples& out) {
    peer_.start();
    uint32_t word = words_->there.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < operations; ++i) {
        for (int yields = 0; same_core_ && yields < kYields; ++yields)
            sched_yield();
        if (!same_core_) long_gap();
        ++word;
        const uint64_t first = ticks();
        words_->there.store(word, std::memory_order_release);
        shm::futex_wake(words_->there, 1);
        while (words_->back.load(std::memory_order_acquire) != word)
            shm::futex_wait(words_->back, word - 1, kWaitNs);
        out.add(elapsed_ns(first, ticks()));
    }
    peer_.stop();
}

}  // namespace dibs::bench
