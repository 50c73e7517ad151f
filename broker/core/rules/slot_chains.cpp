// broker/core/rules/slot_chains.cpp -- moves all slots of one claim or lease of an account pool.
// This does what move_slot() does for each of them, with one look at the pool.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

namespace SlotFlag = shm::SlotFlag;

namespace {

// Flags of a leased slot that keep it from becoming idle at once.
constexpr auto kStops = static_cast<uint8_t>(SlotFlag::kProtected | SlotFlag::kUnqualified |
                                             SlotFlag::kDraining | SlotFlag::kCollected);

}  // namespace

// Idle slots become leased, chained in their order, each with its next round.
void Slots::lease_slots(std::span<const uint32_t> slots) {
    shm::PoolRow& pool = edit().row(state.pools[state.slots[slots.front()].pool], kPoolHot);
    uint32_t head = pool.ready_head;
    uint32_t tail = pool.ready_tail;
    uint32_t run = slots.front();  // the first of those side by side
    for (size_t unit = 0; unit < slots.size(); ++unit) {
        const uint32_t row = slots[unit];
        if (unit != 0 && !matcher().stands_behind(slots[unit - 1], row)) {
            crowds().change_lists(run, slots[unit - 1], true);
            run = row;
        }
        shm::SlotRow& slot = edit().row(state.slots[row], 1);
        assert(slot.state == SlotState::kIdle);
        const uint32_t next = slot.ready_next;
        const bool is_head = head == row;
        if (is_head) {
            head = next;
        } else {
            put(edit().row(state.slots[slot.ready_prev], 1).ready_next, next);
        }
        if (next == kNoRow) {
            tail = is_head ? kNoRow : slot.ready_prev;
        } else if (!is_head) {
            put(edit().row(state.slots[next], 1).ready_prev, slot.ready_prev);
        }
        put(slot.state, SlotState::kLeased);
        put(slot.round, slot.round + 1);
        put(slot.holder_next, unit + 1 < slots.size() ? slots[unit + 1] : kNoRow);
    }
    crowds().change_lists(run, slots.back(), true);
    put(pool.ready_head, head);
    put(pool.ready_tail, tail);
    put(pool.idle, pool.idle - static_cast<uint32_t>(slots.size()));
    put(pool.leased, pool.leased + static_cast<uint32_t>(slots.size()));
    matcher().touch(state.slots[slots.front()].pool);
}

// Leased slots of a counted pool become idle, in the order of their chain, as far as nothing stops
// them: no mark, no promise. Returns the first that is left, or kNoRow.
uint32_t Slots::idle_slots(uint32_t first, uint32_t except) {
    const uint32_t pool_row = state.slots[first].pool;
    shm::PoolRow& pool = edit().row(state.pools[pool_row], kPoolHot);
    uint32_t count = 0;
    uint32_t tail = pool.ready_tail;
    shm::SlotRow* last = tail == kNoRow ? nullptr : &edit().row(state.slots[tail], 1);
    uint64_t order = pool.idle_order_next;
    uint32_t run = first;  // the first of those side by side
    uint32_t row = first;
    for (; row != kNoRow && row != except; ++count) {
        const shm::SlotRow& leased = state.slots[row];
        if (leased.state != SlotState::kLeased || (leased.flags & kStops) != 0 ||
            book()->promised_to[row] != kNoRow) {
            break;
        }
        if (count != 0 && !matcher().stands_behind(tail, row)) {
            crowds().change_lists(run, tail, false);
            run = row;
        }
        shm::SlotRow& slot = edit().row(leased, 1);
        put(slot.holder, kNoRow);
        put(slot.flags, 0);
        put(slot.state, SlotState::kIdle);
        put(slot.idle_order, order++);
        put(slot.ready_prev, tail);
        put(last == nullptr ? pool.ready_head : last->ready_next, row);
        last = &slot;
        tail = row;
        row = slot.holder_next;
    }
    if (count == 0) return row;
    crowds().change_lists(run, tail, false);
    put(last->ready_next, kNoRow);
    put(pool.ready_tail, tail);
    put(pool.idle_order_next, order);
    put(pool.idle, pool.idle + count);
    put(pool.leased, pool.leased - count);
    matcher().touch(pool_row);
    return row;
}

}  // namespace dibs::core
