// benchmarks/asked_claim.cpp -- a claim on a counted pool.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/asked_claim.hpp"

#include "benchmarks/bulk.hpp"

namespace dibs::bench {

AskedClaim::AskedClaim(const ClientSetup& client, const Setup& setup)
    : client_(client), setup_(setup), pool_(client_.pool("counted")) {}

void AskedClaim::measure(uint32_t operations, Samples& out) {
    dibs_claim_options bounded = {};
    bounded.size = sizeof bounded;
    bounded.timeout_ns = DIBS_SECOND;
    bounded.interval_ns = 30 * DIBS_SECOND;
    const dibs_claim_options* options = setup_.bounded ? &bounded : nullptr;
    for (uint32_t i = 0; i < operations + kFirst; ++i) {
        client_.pace(setup_.pace, setup_.same_core);
        const double ns = client_.claim(pool_, options);
        if (i >= kFirst) out.add(ns);
    }
    client_.pace(Pace::kAsleep, setup_.same_core);
}

}  // namespace dibs::bench
