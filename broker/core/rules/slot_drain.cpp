// broker/core/rules/slot_drain.cpp -- drains and holds single slots:
// no claim is granted such a slot.
//
// To the pass a drained or held slot is a protected one, except that its worker's words do not take
// the mark back. One that becomes free is recovering, and turns idle as soon as that ends. A
// drained worker is stopped by its provisioner, a held one never (S1.37).
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

uint32_t Pools::find_number(uint32_t pool, uint32_t number) const {
    if (!pool_lives(pool)) return kNoRow;
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const shm::SlotRow& slot = state.slots[row];
        const bool lives = slot.state != SlotState::kFree;
        const bool is_whole = slot.part_of == kNoRow;
        if (lives && is_whole && slot.pool == pool && slot.number == number) return row;
    }
    return kNoRow;
}

void Pools::drain_slot(uint32_t row, bool on) {
    if (is_drained(state.slots[row]) == on) return;
    set_behaviour(row, on ? shm::Behaviour::kDrain : shm::Behaviour::kRun);
}

void Pools::set_behaviour(uint32_t row, shm::Behaviour behaviour) {
    const shm::SlotRow& slot = state.slots[row];
    assert(slot.state != SlotState::kFree);
    if (slot.behaviour == behaviour) return;
    const bool drains = behaviour == shm::Behaviour::kDrain;
    if (is_drained(slot) != drains) count_drained(row, drains);
    put(edit().row(slot, 1U << 1U).behaviour, behaviour);
    matcher().touch(slot.pool);
    const bool on = is_withheld(slot);
    // Under a lease whose holder is being killed, its end decides what becomes of the slot.
    if (!being_killed_for(slot)) return workers().protect(row, on);
    shm::SlotRow& held = edit().row(slot, 1);
    const uint32_t others = held.flags & ~uint32_t{shm::SlotFlag::kProtected};
    matcher().slot_changes(
        row, [&] { put(held.flags, on ? others | shm::SlotFlag::kProtected : others); });
}

void Pools::count_drained(uint32_t row, bool on) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1U << 1U);
    shm::PoolRow& pool = edit().row(state.pools[slot.pool], kPoolAccounts);
    assert(is_drained(slot) != on && (on || pool.drained != 0));
    put(slot.behaviour, on ? shm::Behaviour::kDrain : shm::Behaviour::kRun);
    put(pool.drained, on ? pool.drained + 1 : pool.drained - 1);
}

}  // namespace dibs::core
