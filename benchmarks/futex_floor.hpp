// benchmarks/futex_floor.hpp -- the floor of a claim between sleepers: a word there, a word back,
// each side asleep in a futex when the other writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/contender.hpp"
#include "benchmarks/peer.hpp"

namespace dibs::bench {

class FutexFloor final : public Contender {
  public:
    FutexFloor(int peer_cpu, bool same_core);
    void measure(uint32_t operations, Samples& out) override;

  private:
    struct Words {
        alignas(64) std::atomic<uint32_t> there;  // writer: this process
        alignas(64) std::atomic<uint32_t> back;   // writer: the peer
    };
    bool same_core_;
    SharedMemory memory_;
    Words* words_;
    Peer peer_;
};

}  // namespace dibs::bench
