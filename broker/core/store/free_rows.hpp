// broker/core/store/free_rows.hpp -- takes rows from their free lists, and returns them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "broker/core/module.hpp"

namespace dibs::core {

struct FreeRows : Module<FreeRows> {
    explicit FreeRows(const State& rows) : Module(rows), arena_held(rows.sessions.size()) {}

    std::vector<uint32_t> arena_held;  // session → blocks of payloads and attributes
    uint32_t confirming_total = 0;     // claims, over all pools; promised ones too

    // rows.cpp
    uint32_t take_claim_row();
    void free_claim_row(uint32_t row);
    uint32_t take_lease_row();
    void free_lease_row(uint32_t row);
    // A lease row that no confirming claim will need.
    bool lease_row_left() const { return state.counters->leases_free > confirming_total; }
    void lease_row_comes();
    uint32_t take_slot_row();
    void free_slot_row(uint32_t row);
    uint32_t take_session_row();
    void free_session_row(uint32_t row);
    uint32_t take_app_row();
    void free_app_row(uint32_t row);
    uint32_t take_group_row();
    void free_group_row(uint32_t row);
    uint32_t take_task_row();
    void free_task_row(uint32_t row);

    // rows.cpp
    void hold_arena(uint32_t session, size_t bytes);  // kNoRow: no session's
    void drop_arena(uint32_t session, size_t bytes);
};

}  // namespace dibs::core
