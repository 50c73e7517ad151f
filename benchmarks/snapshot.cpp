// benchmarks/snapshot.cpp -- a pool's counters from the BOARD.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/snapshot.hpp"

#include <cstring>

#include "benchmarks/bulk.hpp"
#include "benchmarks/tick_clock.hpp"
#include "shm/words.hpp"

namespace dibs::bench {

namespace {}  // namespace

Snapshot::Snapshot(const ClientSetup& client) : client_(client), pool_(client_.pool("counted")) {}

void Snapshot::measure(uint32_t operations, Samples& out) {
    dibs_counters counters = {};
    counters.size = sizeof counters;
    for (uint32_t done = 0; done < operations; done += kBulk) {
        const uint64_t first = ticks();
        for (uint32_t i = 0; i < kBulk; ++i)
            (void)dibs_snapshot(client_.get(), pool_, &counters);
        out.add(elapsed_ns(first, ticks()) / kBulk);
    }
    must(dibs_snapshot(client_.get(), pool_, &counters), "dibs_snapshot");
}

void LineReadFloor::measure(uint32_t operations, Samples& out) {
    uint64_t words[8];
    for (uint32_t done = 0; done < operations; done += kBulk) {
        const uint64_t first = ticks();
        for (uint32_t i = 0; i < kBulk; ++i) {
            shm::load_words(reinterpret_cast<const shm::SharedWord*>(line_),
                            reinterpret_cast<shm::SharedWord*>(words),
                            8);
            __asm__ __volatile__("" ::"r"(words) : "memory");  // every load happens
        }
        out.add(elapsed_ns(first, ticks()) / kBulk);
    }
}

}  // namespace dibs::bench
