// broker/core/rules/slots.hpp -- moves slots between their states.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "broker/core/module.hpp"
#include "broker/core/store/index.hpp"
#include "broker/core/store/timers.hpp"

namespace dibs::core {

struct Slots : Module<Slots> {
    explicit Slots(const State& rows)
        : Module(rows), kept_slots(0, rows.slots.size(), 0), names(rows.slots.size()) {}

    Timers kept_slots;  // of those that are reserved without a claim
    Index names;        // (pool, slot name) → slot row

    // slots.cpp
    // A slot of the pool with its next number, blank otherwise. Its caller moves it out of `free`.
    uint32_t make_slot(uint32_t pool);
    uint32_t blank_slot(uint32_t pool);  // the same without a number
    void move_slot(uint32_t slot, SlotState to);
    void make_idle(uint32_t slot);
    void make_recovering(uint32_t slot, bool revoke);
    void recover(uint32_t slot);
    // What becomes of a slot that is taken back from its holder.
    void give_back(uint32_t slot, bool confirmed, bool broken);
    void give_back_chain(uint32_t first, bool confirmed, bool broken, uint32_t except);
    void remove_slot(uint32_t slot);
    bool tell_revoke(uint32_t slot);  // false: it has no worker to notify
    [[nodiscard]] bool leaves(uint32_t slot) const;

    // slot_chains.cpp
    void lease_slots(std::span<const uint32_t> slots);
    uint32_t idle_slots(uint32_t first, uint32_t except);
};

}  // namespace dibs::core
