// broker/journal/state_rows.hpp -- finds rows in the order in which they are printed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/core/match/several_pools.hpp"

namespace dibs::ctl {

// Rows of a table in the order of a key; free rows are left out by the key's absence.
template <class KeyOf>
std::vector<uint32_t> rows_by(uint32_t rows, KeyOf key_of) {
    std::vector<std::pair<decltype(key_of(0U).second), uint32_t>> keyed;
    for (uint32_t row = 0; row < rows; ++row) {
        const auto [used, key] = key_of(row);
        if (used) keyed.emplace_back(key, row);
    }
    std::sort(keyed.begin(), keyed.end());
    std::vector<uint32_t> result;
    for (const auto& entry : keyed)
        result.push_back(entry.second);
    return result;
}

inline std::vector<uint32_t> slot_rows(const core::Core& core) {
    return rows_by(core.slots_max(), [&](uint32_t row) {
        const shm::SlotRow& slot = core.slot(row);
        return std::pair(slot.state != shm::SlotState::kFree,
                         (uint64_t{slot.pool} << 32) | slot.number);
    });
}

inline std::vector<uint32_t> claim_rows(const core::Core& core) {
    return rows_by(core.claims_max(), [&](uint32_t row) {
        const shm::ClaimRow& claim = core.claim(row);
        return std::pair(claim.state != shm::ClaimState::kFree, claim.arrival);
    });
}

inline std::vector<uint32_t> lease_rows(const core::Core& core) {
    return rows_by(core.leases_max(), [&](uint32_t row) {
        const shm::LeaseRow& lease = core.lease(row);
        return std::pair(lease.state != shm::LeaseState::kFree, lease.arrival);
    });
}

inline bool slot_is(const shm::SlotRow& slot, uint32_t pool, const std::string& name) {
    uint32_t number = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == name.data() + name.size();
    return whole && slot.part_of == shm::kNoRow && slot.pool == pool && slot.number == number;
}

// Of a claim over several pools: not the row in this pool, or where none is named not the first
// one.
template <class Row>
bool is_other(const core::Core& core, const Row& row, uint32_t at, const std::string& pool) {
    if (!core::is_several(row)) return false;
    return pool.empty() ? core::is_further(row, at) : row.pool != core.find_pool(pool);
}

}  // namespace dibs::ctl
