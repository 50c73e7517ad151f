// broker/core/rules/slots.cpp -- changes a slot's state with its pool's counters and ready queue.
//
// The ready queue is a doubly linked list in the slots' hot lines: idle slots in the order in which
// they became idle. The head's backward link is unused, so taking the head, which every grant does,
// stores to no other slot's line.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

namespace SlotFlag = shm::SlotFlag;

namespace {

uint32_t* count_of(shm::PoolRow& pool, SlotState state) {
    switch (state) {
        case SlotState::kIdle:
            return &pool.idle;
        case SlotState::kReserved:
            return &pool.reserved;
        case SlotState::kLeased:
            return &pool.leased;
        case SlotState::kRecovering:
            return &pool.recovering;
        case SlotState::kUnknown:
            return &pool.unknown;
        case SlotState::kShared:
            return &pool.shared;
        case SlotState::kOrdered:
        case SlotState::kFree:
            break;
    }
    return &pool.slots;  // a free row counts nowhere: entering or leaving it changes the total
}

bool is_hot(SlotState state) {
    return state == SlotState::kIdle || state == SlotState::kLeased;
}

}  // namespace

uint32_t Slots::make_slot(uint32_t pool_row) {
    assert(pools().pool_lives(pool_row));
    const uint32_t row = blank_slot(pool_row);
    shm::PoolRow& pool = edit().row(state.pools[pool_row], kPoolTotals);
    put(edit().row(state.slots[row], 1).number, pool.number_next);
    put(pool.number_next, pool.number_next + 1);
    if (has_resources(pool)) vectors().whole_slot_begins(row);
    return row;
}

uint32_t Slots::blank_slot(uint32_t pool_row) {
    const uint32_t row = free_rows().take_slot_row();
    assert(state.slots[row].state == SlotState::kFree);
    shm::SlotRow& slot = edit().fresh_row(state.slots[row]);
    put(slot.flags, 0);
    put(slot.pool, pool_row);
    put(slot.holder, kNoRow);
    put(slot.fence, 0);
    put(slot.holder_next, kNoRow);
    put(slot.ready_next, kNoRow);
    put(slot.ready_prev, kNoRow);
    put(slot.session, kNoRow);
    put(slot.number, 0);
    put(slot.round, 0);
    put(slot.part_of, kNoRow);
    put(slot.parts, 0);
    put(slot.parts_max, 0);
    put(slot.worker_tag, 0);
    put(slot.attributes, kNoRow);
    put(slot.attributes_size, 0);
    put(slot.room, kNoRow);
    put(slot.label_set, kNoRow);
    put(slot.type, kNoRow);
    put(slot.order, shm::OrderState::kNone);
    put(slot.stop_told, 0);
    put(slot.broken, 0);
    put(slot.entry, kNoRow);  // and no group's
    put(slot.index, 0);
    put(slot.probe_ns, 0);
    put(slot.boot_until_ns, kNever);
    put(slot.behaviour, shm::Behaviour::kRun);
    put(slot.confirmed_ns, 0);
    put(slot.modified_ns, 0);
    put(slot.announced_ns, turn().now_ns);
    put(slot.name_size, 0);
    return row;
}

void Slots::move_slot(uint32_t row, SlotState to) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1);
    const SlotState from = slot.state;
    assert(from != to);
    const bool is_shared = from == SlotState::kShared || to == SlotState::kShared;
    const unsigned lines = is_hot(from) && is_hot(to) ? kPoolHot
                           : is_shared                ? kPoolStates | kPoolParts
                                                      : kPoolStates;
    shm::PoolRow& pool = edit().row(state.pools[slot.pool], lines);
    matcher().slot_leaves_state(row, pool, from, to);
    if (from == SlotState::kIdle) {
        const bool is_head = pool.ready_head == row;
        if (is_head) {
            put(pool.ready_head, slot.ready_next);
        } else {
            put(edit().row(state.slots[slot.ready_prev], 1).ready_next, slot.ready_next);
        }
        if (slot.ready_next == kNoRow) {
            put(pool.ready_tail, is_head ? kNoRow : slot.ready_prev);
        } else if (!is_head) {
            put(edit().row(state.slots[slot.ready_next], 1).ready_prev, slot.ready_prev);
        }
    }
    const auto count = [&](SlotState in) {
        return in == SlotState::kOrdered ? &edit().row(state.elastics[slot.pool], 1).ordered
                                         : count_of(pool, in);
    };
    if (from == SlotState::kFree) {
        put(pool.slots, pool.slots + 1);
    } else {
        uint32_t* fewer = count(from);
        put(*fewer, *fewer - 1);
    }
    put(slot.state, to);
    if (to == SlotState::kFree) {
        assert(pool.slots != 0);
        put(pool.slots, pool.slots - 1);
    } else {
        uint32_t* more = count(to);
        put(*more, *more + 1);
    }
    if (to == SlotState::kIdle) {
        put(slot.idle_order, pool.idle_order_next);
        put(pool.idle_order_next, pool.idle_order_next + 1);
        put(slot.ready_next, kNoRow);
        put(slot.ready_prev, pool.ready_tail);
        if (pool.ready_tail == kNoRow) {
            put(pool.ready_head, row);
        } else {
            put(edit().row(state.slots[pool.ready_tail], 1).ready_next, row);
        }
        put(pool.ready_tail, row);
    }
    matcher().slot_enters_state(row, pool, from, to);
    matcher().touch(slot.pool);
    if (has_resources(pool)) vectors().slot_changes(row);
}

void Slots::make_idle(uint32_t row) {
    if (gangs().linked != 0 && gangs().comes_back(row)) [[unlikely]]
        return;
    if (state.slots[row].part_of != kNoRow) return vectors().join_part(row);
    leases().uncollect(row);
    shm::SlotRow& slot = edit().row(state.slots[row], 1);
    assert(slot.state != SlotState::kIdle && slot.state != SlotState::kFree);
    put(slot.holder, kNoRow);
    if ((slot.flags & SlotFlag::kDraining) != 0) return remove_slot(row);
    const auto stops =
        static_cast<uint8_t>(slot.flags & (SlotFlag::kProtected | SlotFlag::kUnqualified));
    if (stops == 0) {
        put(slot.flags, 0);
        if (matcher().successor_of(row) != kNoRow && preemption().serve_successor(row)) return;
        return move_slot(row, SlotState::kIdle);
    }
    put(slot.flags, stops | SlotFlag::kSaidReady);
    preemption().drop_successor(row);  // its return time is unknown
    recover(row);
    shm::PoolRow& pool = edit().row(state.pools[slot.pool], kPoolTotals);
    uint32_t& count =
        (stops & SlotFlag::kProtected) != 0 ? pool.skipped_total : pool.unqualified_total;
    put(count, count + 1);
}

void Slots::make_recovering(uint32_t row, bool revoke) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1);
    assert(slot.state != SlotState::kFree);
    put(slot.holder, kNoRow);
    put(slot.flags,
        slot.flags & (SlotFlag::kProtected | SlotFlag::kUnqualified | SlotFlag::kDraining));
    if (revoke) tell_revoke(row);
    if (leaves(row)) return remove_slot(row);
    recover(row);
}

// Withdrawn: a part with its slot.
bool Slots::leaves(uint32_t row) const {
    const uint32_t whole = whole_of(state.slots[row], row);
    return (state.slots[whole].flags & SlotFlag::kDraining) != 0;
}

// Its holder may have been killed: then it is recovering already, and from now on under no lease.
void Slots::recover(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    assert(slot.holder == kNoRow && slot.state != SlotState::kFree);
    if (slot.state != SlotState::kRecovering) return move_slot(row, SlotState::kRecovering);
    matcher().holder_changes(row);
    if (slot.session == kNoRow && matcher().takes_reports(slot.pool)) reports().watch_reported(row);
}

void Slots::give_back(uint32_t row, bool confirmed, bool broken) {
    const shm::SlotRow& slot = state.slots[row];
    const shm::PoolRow& pool = state.pools[slot.pool];
    const bool release_is_ready = (pool.flags & shm::PoolFlag::kReleaseIsReady) != 0;
    // A reported worker learns of its next claim when it asks: there is no worker to clean up for.
    const bool promised = slot.session == kNoRow && matcher().successor_of(row) != kNoRow;
    const bool said_idle = (slot.flags & SlotFlag::kSaidReady) != 0;  // while its holder was killed
    if (promised || said_idle || pool.kind == shm::PoolKind::kCounted ||
        (release_is_ready && confirmed && !broken)) {
        return make_idle(row);
    }
    const bool was_asked = slot.state == SlotState::kReserved && !confirmed;
    make_recovering(row, true);
    if (was_asked && slot.state == SlotState::kRecovering) {
        shm::SlotRow& asked = edit().row(slot, 1);
        put(asked.flags, asked.flags | SlotFlag::kTakenBack);
        if (slot.part_of != kNoRow) vectors().slot_changes(row);
    }
}

void Slots::give_back_chain(uint32_t first, bool confirmed, bool broken, uint32_t except) {
    for (uint32_t row = first; row != kNoRow;) {
        row = matcher().slots_come_back(row, except);
        if (row == kNoRow) return;
        const shm::SlotRow& slot = state.slots[row];
        const uint32_t next = slot.holder_next;
        const bool said = confirmed || (slot.flags & SlotFlag::kConfirmed) != 0;
        if (row != except) give_back(row, said, broken);
        row = next;
    }
}

void Slots::remove_slot(uint32_t row) {
    if (state.slots[row].part_of != kNoRow) return vectors().join_part(row);
    leases().uncollect(row);
    if (gangs().linked != 0) gangs().is_lost(row);
    const shm::SlotRow& slot = state.slots[row];
    assert(slot.state != SlotState::kFree);
    const bool is_workers = state.pools[slot.pool].kind == shm::PoolKind::kWorker;
    if (is_workers && slot.state != SlotState::kOrdered) {
        Decision& gone = turn().decide_that(DecisionKind::kSlotGone);
        gone.pool = slot.pool;
        gone.slot_number = slot.number;
        gone.id = row_id(slot.head.generation, row);
        gone.user_data = slot.worker_tag;
        gone.room = slot.room;
    }
    kept_slots.remove(TimerKind::kKept, row);
    if (is_drained(slot)) pools().count_drained(row, false);
    preemption().drop_successor(row);
    if (slot.session != kNoRow) {
        sessions().session_slots.remove(slot.session, row);
        shm::SessionRow& session = edit().row(state.sessions[slot.session], 1);
        assert(session.slots != 0);
        put(session.slots, session.slots - 1);
    }
    if (slot.name_size != 0) {
        names.remove(workers().name_hash(slot.pool, {slot.name, slot.name_size}), row);
    }
    assert(matcher().successor_of(row) == kNoRow);
    free_rows().drop_arena(slot.session, slot.attributes_size);
    arena().free(slot.attributes, slot.attributes_size);
    move_slot(row, SlotState::kFree);
    if (has_resources(state.pools[slot.pool])) vectors().parts_index->capacity_changes(slot.pool);
    free_rows().free_slot_row(row);
}

bool Slots::tell_revoke(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    assert(slot.state != SlotState::kFree);
    if (slot.session == kNoRow || state.sessions[slot.session].state != shm::SessionState::kOpen) {
        return false;
    }
    Decision& revoke = turn().decide_that(DecisionKind::kRevoke);
    revoke.session = slot.session;
    revoke.pool = slot.pool;
    revoke.id = row_id(slot.head.generation, row);
    revoke.round = slot.round;
    revoke.slot_number = slot.number;
    revoke.user_data = slot.worker_tag;
    return true;
}

}  // namespace dibs::core
