// benchmarks/beset_claim.hpp -- a claim on a counted pool while a hostile session is attached.
//
// What the hostile session can do to others is to keep the turn busy, so it does that when it hurts
// most: right before each claim. It is played by the measuring thread. In a process of its own it
// would want a CPU, and with two of them the figure would be the kernel's scheduler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "benchmarks/contender.hpp"
#include "benchmarks/session_client.hpp"

namespace dibs::bench {

class BesetClaim final : public Contender {
  public:
    // `entries`: so many of anything before each claim; 0: it only rings and lies.
    BesetClaim(const std::string& socket, uint32_t entries);
    ~BesetClaim() override;
    BesetClaim(const BesetClaim&) = delete;
    BesetClaim& operator=(const BesetClaim&) = delete;
    void measure(uint32_t operations, Samples& out) override;

  private:
    void attach();
    void trouble();
    void recover();

    std::string socket_;
    SessionClient client_;
    uint32_t pool_;
    uint32_t entries_;
    std::mt19937_64 random_{1};
    dibs_session* hostile_ = nullptr;
};

}  // namespace dibs::bench
