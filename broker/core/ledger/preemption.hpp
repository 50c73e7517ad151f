// broker/core/ledger/preemption.hpp -- takes slots from leases for claims that are worth more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "broker/core/match/account_book.hpp"
#include "broker/core/module.hpp"

namespace dibs::core {

struct Preemption : Module<Preemption> {
    explicit Preemption(const State& rows) : Module(rows) {}

    // preemption.cpp
    [[nodiscard]] bool preemption_possible() const;
    bool preempt_for_class();
    void end_revoked(uint32_t lease);
    [[nodiscard]] bool is_held_over(uint32_t slot) const;
    bool serve_successor(uint32_t slot);
    void drop_successor(uint32_t slot);
    bool hand_over_held(uint32_t pool);
    void break_promise(uint32_t slot);

  private:
    // preemption.cpp
    [[nodiscard]] uint32_t first_candidate(uint32_t root) const;
    [[nodiscard]] uint32_t cheapest_candidate(const std::vector<uint32_t>& stalls,
                                              size_t* at) const;
    [[nodiscard]] size_t best_taker(const std::vector<CrowdAtHead>& crowds,
                                    uint32_t labels,
                                    const Cost& cost);
    void preempt(uint32_t victim, uint32_t claim);
    void tell_preemption(uint32_t claim, uint32_t victim, const Cost& cost);
    void settle_preemption(uint32_t claim, uint32_t victim, const Cost& cost);
    void begin_revoking(uint32_t lease, TimeNs grace_ns);
    void give_promised(uint32_t slot);
    void hold_over(uint32_t slot);
    [[nodiscard]] bool holds_others_over(uint32_t pool, uint32_t slot) const;
};

}  // namespace dibs::core
