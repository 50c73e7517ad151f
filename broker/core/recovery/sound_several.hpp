// broker/core/recovery/sound_several.hpp -- validates that rows of one claim are one chain.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "broker/core/match/several_pools.hpp"
#include "broker/core/store/state.hpp"

namespace dibs::core {

// Of a row over several pools: from the first one on the chain has this row, ends, and is of rows
// of one claim in distinct pools that take such claims. Rows that are named may not be sound yet.
template <class Row>
bool is_one_of_several(const State& state, const Rows<Row>& rows, uint32_t row) {
    const Row& it = rows[row];
    const uint32_t first = first_row_of(it);
    uint32_t count = 0;
    bool is_met = false;
    uint32_t pools[SeveralPools::kPoolsMax];
    for (uint32_t at = first; at != shm::kNoRow; at = next_row_of(rows[at])) {
        if (at >= rows.size() || count == SeveralPools::kPoolsMax) return false;
        const Row& part = rows[at];
        if (!is_several(part) || part.state != it.state || first_row_of(part) != first)
            return false;
        if (part.arrival != it.arrival || part.session != it.session || part.tag != it.tag) {
            return false;
        }
        if (part.pool >= state.counters->pools) return false;
        if (state.pools[part.pool].order != shm::PoolOrder::kArrival) return false;
        if (std::find(pools, pools + count, part.pool) != pools + count) return false;
        pools[count++] = part.pool;
        is_met = is_met || at == row;
    }
    if constexpr (requires { it.several; }) {
        if (count != it.several) return false;
    }
    return is_met && count >= 2;
}

}  // namespace dibs::core
