// broker/core/match/priorities.hpp -- holds the data derived for pools ordered by priority.
// It is made with the first such pool.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/match/ranked_rows.hpp"
#include "broker/core/store/row_index.hpp"
#include "broker/core/store/state.hpp"

namespace dibs::core {

struct Priorities {
    explicit Priorities(const State& rows)
        : state(rows),
          ranked(rows.pools.size(), rows.claims.size()),
          claim_by_number(rows.claims.size()) {}

    // The locked ones first, then the better priority, then the older claim.
    [[nodiscard]] auto order() const {
        return [this](uint32_t left, uint32_t right) {
            const shm::ClaimRow& one = state.claims[left];
            const shm::ClaimRow& other = state.claims[right];
            if (((one.flags ^ other.flags) & shm::ClaimFlag::kLocked) != 0) {
                return (one.flags & shm::ClaimFlag::kLocked) != 0;
            }
            return one.priority != other.priority ? one.priority > other.priority
                                                  : one.arrival < other.arrival;
        };
    }

    const State& state;
    RankedRows ranked;  // set: pool, row: claim that waits and is not held
    RowIndex claim_by_number;
};

}  // namespace dibs::core
