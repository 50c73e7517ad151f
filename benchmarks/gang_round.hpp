// benchmarks/gang_round.hpp -- a gang through the library, from its addition to its removal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/contender.hpp"
#include "benchmarks/session_client.hpp"

namespace dibs::bench {

// Nanoseconds per gang of four: added, whole and running, completed, removed; each is waited for.
class GangRound final : public Contender {
  public:
    explicit GangRound(const ClientSetup& client);
    void measure(uint32_t operations, Samples& out) override;

  private:
    void await(int state) const;

    SessionClient client_;
    uint32_t pool_;
};

}  // namespace dibs::bench
