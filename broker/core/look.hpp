// broker/core/look.hpp -- answers who looks at a scheduler: what is offered, what leases bring and
// were. It changes no row and decides nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/core/match/offers.hpp"
#include "broker/core/rules/ended_leases.hpp"

namespace dibs::core {

class Look {
  public:
    // What is offered of a pool whose slots have resources. kOk, kUnknownPool, kVector, or
    // kUnavailable with the place of the resource of which no slot has so much.
    static shm::Reason offers(const Core& core,
                              const OffersQuery& query,
                              std::vector<Offer>* found,
                              uint64_t* resource);
    // Changes with what is offered.
    [[nodiscard]] static uint64_t offers_stamp(const Core& core, PoolId pool);
    // Leases that have ended, so many of them at most, from now on; 0 = none. Null: not known.
    static void keep_ended_leases(Core& core, size_t most);
    [[nodiscard]] static const EndedLease* ended_lease(const Core& core,
                                                       LeaseId id,
                                                       uint64_t number);
    // What its claim brought for who inspects.
    [[nodiscard]] static std::string meta_of_claim(const Core& core, uint32_t claim);
    [[nodiscard]] static std::string meta_of_lease(const Core& core, uint32_t lease);
};

}  // namespace dibs::core
