// benchmarks/parked_claim.hpp -- leases that their sessions put aside, and claims among many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "benchmarks/contender.hpp"
#include "benchmarks/session_client.hpp"

namespace dibs::bench {

inline constexpr uint32_t kPairs = 64;  // measured at once

// Two compare-and-swaps of a word that no other CPU has.
class SwapFloor final : public Contender {
  public:
    void measure(uint32_t operations, Samples& out) override;
};

// One session takes its parked lease and releases it.
class ParkedPair final : public Contender {
  public:
    explicit ParkedPair(const ClientSetup& client);
    void measure(uint32_t operations, Samples& out) override;

  private:
    SessionClient client_;
    uint32_t pool_;
};

// Each claim wants the only slot, which another session has put aside.
class RecalledClaim final : public Contender {
  public:
    explicit RecalledClaim(const ClientSetup& client);
    void measure(uint32_t operations, Samples& out) override;

  private:
    std::vector<SessionClient> clients_;
    uint32_t pool_;
};

// So many sessions claim in turn; the others are attached and silent.
class ClaimAmongMany final : public Contender {
  public:
    ClaimAmongMany(const ClientSetup& client, uint32_t attached, uint32_t active);
    void measure(uint32_t operations, Samples& out) override;

  private:
    std::vector<SessionClient> clients_;
    uint32_t active_;
    uint32_t pool_;
};

}  // namespace dibs::bench
