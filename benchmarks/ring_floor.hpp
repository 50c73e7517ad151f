// benchmarks/ring_floor.hpp -- the floor of an asked claim: a 64-byte entry there, one back,
// through the very rings of shm/ring.hpp, both sides spinning on CPUs of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/contender.hpp"
#include "benchmarks/peer.hpp"
#include "shm/ring.hpp"

namespace dibs::bench {

class RingFloor final : public Contender {
  public:
    explicit RingFloor(int peer_cpu);
    void measure(uint32_t operations, Samples& out) override;

  private:
    SharedMemory memory_;
    shm::SubmissionEntry* there_;
    shm::CompletionEntry* back_;
    shm::SubmissionProducer producer_;
    shm::CompletionConsumer consumer_;
    Peer peer_;
};

}  // namespace dibs::bench
