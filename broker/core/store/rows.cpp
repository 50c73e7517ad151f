// broker/core/store/rows.cpp -- takes rows from the free lists and returns them.
//
// A list is last in, first out: the row used last is the warm one. A row's generation grows when it
// is freed, so an id of an earlier use is always recognised as stale.
// SPDX-License-Identifier: Apache-2.0
#include <cassert>
#include <type_traits>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

template <class Row>
void retire(Row& row, uint32_t next) {
    const uint32_t next_generation = row.head.generation + 1;
    put(row.head.generation, next_generation == 0 ? 1 : next_generation);  // no id is 0
    put(row.head.free_next, next);
}

template <class Row>
uint32_t take(const Rows<Row>& rows, uint32_t& head, uint32_t& free) {
    const uint32_t row = head;
    assert(free != 0);
    put(head, rows[row].head.free_next);
    put(free, free - 1);
    return row;
}

void give_back(auto& row, uint32_t at, uint32_t& head, uint32_t& free) {
    put(row.state, std::remove_reference_t<decltype(row.state)>{});
    retire(row, head);
    put(head, at);
    put(free, free + 1);
}

constexpr unsigned kGangCounters = 1U << 2U;

}  // namespace

void FreeRows::hold_arena(uint32_t session, size_t bytes) {
    if (session != kNoRow) arena_held[session] += Arena::blocks_for(bytes);
}

void FreeRows::drop_arena(uint32_t session, size_t bytes) {
    if (session == kNoRow) return;
    assert(arena_held[session] >= Arena::blocks_for(bytes));
    arena_held[session] -= Arena::blocks_for(bytes);
}

uint32_t FreeRows::take_claim_row() {
    shm::CountersRow& counters = edit().counters(1);
    const uint32_t row = counters.claims_free_head;
    put(counters.claims_free_head, state.claims[row].head.free_next);
    put(counters.claims_free, counters.claims_free - 1);
    return row;
}

void FreeRows::free_claim_row(uint32_t row) {
    shm::CountersRow& counters = edit().counters(1);
    shm::ClaimRow& claim = edit().row(state.claims[row], 1);
    assert(claim.first_slot == kNoRow && counters.claims_free < state.claims.size());
    put(claim.state, shm::ClaimState::kFree);
    retire(claim, counters.claims_free_head);
    put(counters.claims_free_head, row);
    put(counters.claims_free, counters.claims_free + 1);
}

uint32_t FreeRows::take_lease_row() {
    shm::CountersRow& counters = edit().counters(1);
    const uint32_t row = counters.leases_free_head;
    const uint32_t next = state.leases[row].head.free_next;
    state.leases.fetch_all(next);  // the next grant's
    put(counters.leases_free_head, next);
    put(counters.leases_free, counters.leases_free - 1);
    return row;
}

// Pools with claims that wait for a lease row are looked at again.
void FreeRows::lease_row_comes() {
    const uint32_t kept = confirming_total + several_pools().more_rows();
    if (state.counters->leases_free > kept) return;
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool)
        turn().dirty.add(pool);
}

void FreeRows::free_lease_row(uint32_t row) {
    lease_row_comes();
    shm::CountersRow& counters = edit().counters(1);
    shm::LeaseRow& lease = edit().row(state.leases[row], 1);
    put(lease.state, shm::LeaseState::kFree);
    retire(lease, counters.leases_free_head);
    put(counters.leases_free_head, row);
    put(counters.leases_free, counters.leases_free + 1);
}

uint32_t FreeRows::take_slot_row() {
    shm::CountersRow& counters = edit().counters(1U << 1U);
    const uint32_t row = counters.slots_free_head;
    assert(counters.slots_free != 0);
    put(counters.slots_free_head, state.slots[row].head.free_next);
    put(counters.slots_free, counters.slots_free - 1);
    return row;
}

void FreeRows::free_slot_row(uint32_t row) {
    shm::CountersRow& counters = edit().counters(1U << 1U);
    shm::SlotRow& slot = edit().row(state.slots[row], 1);
    assert(counters.slots_free < state.slots.size());
    put(slot.state, SlotState::kFree);
    retire(slot, counters.slots_free_head);
    put(counters.slots_free_head, row);
    put(counters.slots_free, counters.slots_free + 1);
    vectors().slot_row_comes();
}

uint32_t FreeRows::take_session_row() {
    shm::CountersRow& counters = edit().counters(1U << 1U);
    const uint32_t row = counters.sessions_free_head;
    assert(counters.sessions_free != 0);
    put(counters.sessions_free_head, state.sessions[row].head.free_next);
    put(counters.sessions_free, counters.sessions_free - 1);
    return row;
}

void FreeRows::free_session_row(uint32_t row) {
    shm::CountersRow& counters = edit().counters(1U << 1U);
    shm::SessionRow& session = edit().row(state.sessions[row], 1);
    assert(session.state == shm::SessionState::kDying && arena_held[row] == 0);
    assert(counters.sessions_free < state.sessions.size());
    if (book()) crowds().leave_session(row);
    put(session.state, shm::SessionState::kFree);
    retire(session, counters.sessions_free_head);
    put(counters.sessions_free_head, row);
    put(counters.sessions_free, counters.sessions_free + 1);
}

uint32_t FreeRows::take_app_row() {
    shm::CountersRow& counters = edit().counters(kGangCounters);
    return take(state.apps, counters.apps_free_head, counters.apps_free);
}

void FreeRows::free_app_row(uint32_t row) {
    shm::CountersRow& counters = edit().counters(kGangCounters);
    assert(counters.apps_free < state.apps.size());
    give_back(edit().row(state.apps[row], 1), row, counters.apps_free_head, counters.apps_free);
}

uint32_t FreeRows::take_group_row() {
    shm::CountersRow& counters = edit().counters(kGangCounters);
    return take(state.groups, counters.groups_free_head, counters.groups_free);
}

void FreeRows::free_group_row(uint32_t row) {
    shm::CountersRow& counters = edit().counters(kGangCounters);
    assert(counters.groups_free < state.groups.size());
    give_back(
        edit().row(state.groups[row], 1), row, counters.groups_free_head, counters.groups_free);
}

uint32_t FreeRows::take_task_row() {
    shm::CountersRow& counters = edit().counters(kGangCounters);
    return take(state.tasks, counters.tasks_free_head, counters.tasks_free);
}

void FreeRows::free_task_row(uint32_t row) {
    shm::CountersRow& counters = edit().counters(kGangCounters);
    assert(counters.tasks_free < state.tasks.size());
    give_back(edit().row(state.tasks[row], 1), row, counters.tasks_free_head, counters.tasks_free);
}

}  // namespace dibs::core
