// benchmarks/worker_claim.hpp -- a claim on a worker pool: assigned, confirmed, granted.
//
// One session plays both roles, so that three parties fit two CPUs without anybody being put aside:
// the claim goes to the broker, comes back as an assignment, the confirmation goes there, the grant
// comes back. Two round trips of a ring are its floor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/contender.hpp"
#include "benchmarks/session_client.hpp"

namespace dibs::bench {

class WorkerClaim final : public Contender {
  public:
    explicit WorkerClaim(const ClientSetup& client);
    void measure(uint32_t operations, Samples& out) override;

  private:
    double claim() const;

    SessionClient client_;
    uint32_t pool_;
};

}  // namespace dibs::bench
