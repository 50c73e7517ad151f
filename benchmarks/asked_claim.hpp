// benchmarks/asked_claim.hpp -- a claim on a counted pool through the real dibsd and libdibs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/contender.hpp"
#include "benchmarks/session_client.hpp"

namespace dibs::bench {

class AskedClaim final : public Contender {
  public:
    struct Setup {
        Pace pace = Pace::kPaced;
        bool same_core = false;
        bool bounded = false;  // with a timeout and a keepalive interval, not for ever
    };
    AskedClaim(const ClientSetup& client, const Setup& setup);
    void measure(uint32_t operations, Samples& out) override;

  private:
    SessionClient client_;
    Setup setup_;
    uint32_t pool_;
};

}  // namespace dibs::bench
