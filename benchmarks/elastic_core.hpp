// benchmarks/elastic_core.hpp -- the core alone: an elastic pool at its most workers, with claims
// that wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "benchmarks/contender.hpp"
#include "benchmarks/state_memory.hpp"
#include "broker/core/core.hpp"

namespace dibs::bench {

// All workers are leased, all other claims wait, and as many of them are locked as there may be.
class ElasticCore final : public Contender {
  public:
    enum class Part {
        kNothing,  // nanoseconds per turn that looks at the pool and can do nothing
        kServed,   // per worker that becomes ready, the head of the backlog has it, and another
                   // claim comes
    };
    ElasticCore(uint32_t waiting, uint32_t workers, Part part);
    void measure(uint32_t operations, Samples& out) override;

  private:
    struct Lease {
        core::SessionId session;
        uint16_t tag;
        uint64_t id;
        uint64_t fence;
    };
    template <class Commands>
    void turn(const Commands& commands);
    void follow();
    void claim(core::SessionId session, uint16_t tag);
    void look();
    void serve();

    StateMemory memory_;
    std::unique_ptr<core::Core> core_;
    uint32_t pool_ = 0;
    uint32_t host_ = 0;  // makes the workers and announces them
    Part part_;
    core::TimeNs now_ = 1;
    std::vector<core::SlotId> orders_;         // to be announced
    std::vector<core::WorkerWord> confirmed_;  // to be said
    std::vector<Lease> leases_;
    core::SlotId worker_ = {};
    size_t oldest_ = 0;
};

}  // namespace dibs::bench
