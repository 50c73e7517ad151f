// broker/core/match/worker_parts.cpp -- lets workers announce slots of which claims have parts.
//
// A part is a slot of its worker's, too: it is reserved, confirmed, cleaned and lost as those are,
// and where such a slot would be idle it is joined. Until its worker has answered for one part, the
// slot gives no other.
//
// Slots differ here. A claim that waits holds back those that it could use, if nobody had anything
// of them, and the pass goes on with the others. Mostly there are none.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "broker/core/parts.hpp"

namespace dibs::core {

Reason Vectors::announce_refusal(const Announce& command, uint32_t existing) const {
    if (!has_resources(state.pools[command.pool])) {
        return command.resources.empty() && command.parts == 0 ? Reason::kOk : Reason::kVector;
    }
    // Withdrawn, the slot may lose all its parts by one command.
    if (command.parts > shm::kUnitsMax) return Reason::kVector;
    Vector capacity;
    if (!read(command.pool, command.resources, &capacity)) return Reason::kVector;
    if (existing == kNoRow || command.resources.empty()) return Reason::kOk;
    // What parts of it have stays theirs.
    const shm::SlotVectorRow& known = state.slot_vectors[existing];
    for (size_t at = 0; at < capacity.size(); ++at) {
        if (capacity[at] < known.capacity[at] - known.amount[at]) return Reason::kState;
    }
    return Reason::kOk;
}

void Vectors::fill_announced(uint32_t row, const Announce& command) {
    if (!has_resources(state.pools[command.pool])) return;
    matcher().touch(command.pool);
    put(edit().row(state.slots[row], 1U << 1U).parts_max, command.parts);
    parts_index->capacity_changes(command.pool);
    if (command.resources.empty()) return slot_changes(row);
    Vector capacity;
    const bool is_sound = read(command.pool, command.resources, &capacity);
    assert(is_sound);
    (void)is_sound;
    set_capacity(row, capacity);
}

void Vectors::order_comes(uint32_t row) {
    if (!has_resources(state.pools[state.slots[row].pool])) return;
    shm::SlotVectorRow& known = edit().row(state.slot_vectors[row], 1U | 1U << 1U);
    for (size_t at = 0; at < shm::kResourcesMax; ++at)
        put(known.amount[at], known.capacity[at]);
    put(known.width, 0);
}

// What its parts have stays theirs. A row that was free has had none.
void Vectors::set_capacity(uint32_t row, const Vector& capacity) {
    const bool is_new = state.slots[row].state == SlotState::kFree;
    shm::SlotVectorRow& known = edit().row(state.slot_vectors[row], 1U | 1U << 1U);
    for (size_t at = 0; at < capacity.size(); ++at) {
        const uint64_t held = is_new ? 0 : known.capacity[at] - known.amount[at];
        assert(held <= capacity[at]);
        put(known.amount[at], capacity[at] - held);
        put(known.capacity[at], capacity[at]);
    }
    parts_index->capacity_changes(state.slots[row].pool);
    slot_changes(row);
}

void Vectors::join_worker(shm::SlotRow& part, uint32_t row, const shm::SlotRow& whole) {
    put(edit().row(part, 1).session, whole.session);
    put(part.round, 1);
    put(part.worker_tag, whole.worker_tag);
    put(part.room, whole.room);
    sessions().session_slots.push_back(whole.session, row);
}

void Vectors::part_changes(uint32_t row) {
    if (!parts_index->part_changes(row)) return;
    parts_index->change(state.slots[row].part_of);
    matcher().touch(state.slots[row].pool);
    ++offer_changes[state.slots[row].pool];
}

void Vectors::join_unheld(uint32_t whole) {
    const uint32_t session = state.slots[whole].session;
    turn().scratch.clear();
    for (uint32_t row = sessions().session_slots.head(session); row != kNoRow;
         row = sessions().session_slots.next(row)) {
        const shm::SlotRow& slot = state.slots[row];
        if (slot.part_of == whole && slot.holder == kNoRow) turn().scratch.push_back(row);
    }
    const auto place_of = [&](uint32_t row) {
        return std::pair(gangs().place(state.slots[row]), row);
    };
    std::sort(turn().scratch.begin(), turn().scratch.end(), [&](uint32_t one, uint32_t other) {
        return place_of(one) < place_of(other);
    });
    for (const uint32_t part : turn().scratch)
        join_part(part);
}

bool Vectors::hold_back(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    const shm::PoolRow& pool = state.pools[claim.pool];
    if (pool.kind != shm::PoolKind::kWorker || !has_resources(pool)) return false;
    if (!wants_part(claim)) return false;
    // A placeholder needs no lease row, and no worker is asked for it.
    const bool may_have =
        is_ask(claim) ? pools().slot_rows_left(kNoRow) != 0 : may_have_part(claim.pool);
    if (!may_have) return false;
    Vector least;
    std::copy(std::begin(state.claim_vectors[row].least),
              std::end(state.claim_vectors[row].least),
              least.begin());
    held_back.push_back(least);
    return !fits_in(least, parts_index->smallest(claim.pool));
}

std::span<const uint32_t> Vectors::idle_for_others(uint32_t pool, uint32_t units) {
    idle_.clear();
    const bool from_last = provisioning().is_elastic(pool);  // S1.35
    const uint32_t head = state.pools[pool].ready_head;
    uint32_t slot = from_last ? state.pools[pool].ready_tail : head;
    while (slot != kNoRow && idle_.size() < units) {
        if (!parts_index->is_held_back(slot, held_back)) idle_.push_back(slot);
        const bool is_over = from_last && slot == head;
        slot = is_over     ? kNoRow
               : from_last ? state.slots[slot].ready_prev
                           : state.slots[slot].ready_next;
    }
    return idle_;
}

}  // namespace dibs::core
