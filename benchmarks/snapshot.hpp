// benchmarks/snapshot.hpp -- a pool's counters from the BOARD, beside a bare read of as many bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/contender.hpp"
#include "benchmarks/session_client.hpp"

namespace dibs::bench {

// Nanoseconds per snapshot, in bulks.
class Snapshot final : public Contender {
  public:
    explicit Snapshot(const ClientSetup& client);
    void measure(uint32_t operations, Samples& out) override;

  private:
    SessionClient client_;
    uint32_t pool_;
};

// Eight loads of one line, without a look at a sequence.
class LineReadFloor final : public Contender {
  public:
    void measure(uint32_t operations, Samples& out) override;

  private:
    alignas(64) uint64_t line_[8] = {};
};

}  // namespace dibs::bench
