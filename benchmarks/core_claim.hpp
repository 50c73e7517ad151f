// benchmarks/core_claim.hpp -- the core alone: claims of a FIFO pool, from the command to the
// grant, turn by turn with commit; beside it a memory copy as the floor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "benchmarks/contender.hpp"
#include "broker/core/core.hpp"

namespace dibs::bench {

// A core over memory of its own, with one counted pool and one session.
class LoneCore {
  public:
    explicit LoneCore(uint32_t slots);
    // `count` claims in turns of `batch`, each decided, committed and cleared.
    void claim(uint32_t count, uint32_t batch);
    void release(uint32_t batch);  // of all that is held
    [[nodiscard]] uint32_t held() const { return static_cast<uint32_t>(leases_.size()); }

  private:
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    struct Lease {
        uint64_t id;
        uint64_t fence;
    };
    std::vector<Line> storage_;
    std::unique_ptr<core::Core> core_;
    uint32_t pool_ = 0;
    uint32_t session_ = 0;
    core::TimeNs now_ = 1;
    std::vector<Lease> leases_;
};

// Nanoseconds per claim, or per release, in bulks of 256.
class CoreClaim final : public Contender {
  public:
    enum class Part { kClaim, kRelease };
    CoreClaim(uint32_t slots, uint32_t batch, Part part);
    void measure(uint32_t operations, Samples& out) override;

  private:
    LoneCore core_;
    uint32_t batch_;
    Part part_;
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
