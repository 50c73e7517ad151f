// benchmarks/core_claim.hpp -- the core alone: claims of a FIFO pool, from the command to the
// grant; beside it a memory copy as the floor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "benchmarks/contender.hpp"
#include "benchmarks/state_memory.hpp"
#include "broker/core/core.hpp"

namespace dibs::bench {

// A core over memory of its own, with one session and counted pools, all of which a claim is for.
class LoneCore {
  public:
    explicit LoneCore(uint32_t slots, uint32_t pools = 1);
    // `count` claims in turns of `batch`, each decided, committed and cleared.
    void claim(uint32_t count, uint32_t batch);
    // `count` claims, each alone in its turn: its grant is pledged, and kept after that. Returns
    // the ticks from the commands to their pledges.
    uint64_t claim_alone(uint32_t count);
    void release(uint32_t batch);  // of all that is held
    [[nodiscard]] uint32_t held() const { return static_cast<uint32_t>(leases_.size()); }

  private:
    void finish_turn();
    struct Lease {
        uint64_t id;
        uint64_t fence;
    };
    StateMemory memory_;
    std::unique_ptr<core::Core> core_;
    uint32_t pool_ = 0;
    std::vector<core::PoolUnits> also_;  // the other pools
    uint32_t session_ = 0;
    core::TimeNs now_ = 1;
    std::vector<Lease> leases_;
};

// Nanoseconds per claim, per release, or per claim and its release, in bulks of 256.
class CoreClaim final : public Contender {
  public:
    enum class Part { kClaim, kPledge, kRelease, kBoth };
    CoreClaim(uint32_t slots, uint32_t batch, Part part, uint32_t pools = 1);
    void measure(uint32_t operations, Samples& out) override;

  private:
    LoneCore core_;
    uint32_t batch_;
    Part part_;
};

// What reading the counter twice takes, with nothing between: part of each pledge above.
class ClockFloor final : public Contender {
  public:
    void measure(uint32_t operations, Samples& out) override;
};

// Saves ten lines of a table into a log and copies them back: what an undo log cannot do without.
class CopyFloor final : public Contender {
  public:
    CopyFloor();
    void measure(uint32_t operations, Samples& out) override;

  private:
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    std::vector<Line> table_;
    std::vector<Line> log_;
    size_t at_ = 0;
};

}  // namespace dibs::bench
