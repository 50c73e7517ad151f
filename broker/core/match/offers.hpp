// broker/core/match/offers.hpp -- defines what is offered of slots with resources, and how it is
// asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "broker/core/ids.hpp"
#include "broker/core/settings.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

// A slot with the room that a claim could have of it now: what is free, and what has expired and
// is not collected.
struct Offer {
    uint32_t slot = 0;                                // its number
    std::array<uint64_t, shm::kResourcesMax> room{};  // by the pool's order of its resources
    uint32_t row = 0;                                 // the slot's
};

// Both vectors empty: whatever there is, by slot number. Else as those of a claim: none has less
// than `least`; those with all of `most` come first, the nearest to it first, then the smaller
// ones, likewise. Equal ones come in an order that the seed permutes.
struct OffersQuery {
    PoolId pool = {};
    std::span<const Amount> least = {};
    std::span<const Amount> most = {};
    uint64_t seed = 0;
    uint32_t count = 10;  // at most
};

}  // namespace dibs::core
