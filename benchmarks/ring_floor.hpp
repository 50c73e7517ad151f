// benchmarks/ring_floor.hpp -- the floor of an asked claim: a 64-byte entry there, one back,
// through the very rings of shm/ring.hpp, both sides spinning on CPUs of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "benchmarks/contender.hpp"
#include "benchmarks/peer.hpp"
#include "shm/ring.hpp"

namespace dibs::bench {

class RingFloor final : public Contender {
  public:
    // A sample is one round trip; of more in a `bulk` their mean, none of them timed by itself and
    // no gap between them.
    explicit RingFloor(int peer_cpu, uint32_t bulk = 1);
    void measure(uint32_t operations, Samples& out) override;

  private:
    void there_and_back();

    uint32_t bulk_;
    shm::Submission ask_;
    shm::Completion answer_;
    SharedMemory memory_;
    shm::SubmissionEntry* there_;
    shm::CompletionEntry* back_;
    shm::SubmissionProducer producer_;
    shm::CompletionConsumer consumer_;
    Peer peer_;
};

}  // namespace dibs::bench
