// broker/core/rules/pool_rows.cpp -- chooses a pool's row, and frees it after deletion.
//
// Sessions know a pool by its row. So the row of a deleted pool goes to a pool of another name only
// when every session that could have known it has gone; until then it waits for its own name.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::PoolState;

namespace {

// Slots that go in one step, or fewer: until the log is three quarters full.
constexpr uint32_t kShrinkStep = 200;

// The pool's slots from this number on of which placeholders have something, by number.
std::vector<uint32_t> slots_of_gangs(const State& state,
                                     const Gangs& gangs,
                                     uint32_t pool,
                                     uint32_t from) {
    std::vector<uint32_t> found;
    const auto number = [&](uint32_t slot) { return state.slots[slot].number; };
    for (const uint32_t slot : gangs.placeholders_in(pool)) {
        const uint32_t whole = whole_of(state.slots[slot], slot);
        if (number(whole) >= from) found.push_back(whole);
    }
    std::sort(found.begin(), found.end(), [&](uint32_t one, uint32_t other) {
        return number(one) < number(other);
    });
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

}  // namespace

bool Pools::no_session_knows(uint32_t row) const {
    for (uint32_t session = 0; session < state.sessions.size(); ++session) {
        const shm::SessionRow& other = state.sessions[session];
        if (other.state != shm::SessionState::kFree &&
            other.opened_ns <= state.pools[row].saturated_until_ns) {
            return false;
        }
    }
    return true;
}

// The row of the pool of that name, else a row for it, or kNoRow.
uint32_t Pools::row_for_pool(std::string_view name) const {
    const uint32_t used = state.counters->pools;
    for (uint32_t row = 0; row < used; ++row) {
        const shm::PoolRow& pool = state.pools[row];
        if (std::string_view{pool.name, pool.name_size} == name) return row;
    }
    for (uint32_t row = 0; row < used; ++row) {
        const bool is_free = state.pools[row].state == PoolState::kFree &&
                             gangs().pool_apps.head(row) == kNoRow;  // they end with this turn
        if (is_free && no_session_knows(row)) return row;
    }
    return used < state.pools.size() ? used : kNoRow;
}

// As a row that never was a pool, but for the name and what tells a late holder from a new one.
void Pools::clear_pool(uint32_t row, bool keep_fences) {
    shm::PoolRow& pool = edit().row(state.pools[row], kPoolAll);
    // Behind the last pool nothing has been checked when the rows were attached to.
    assert(row >= state.counters->pools ||
           (pool.slots == 0 && pool.waiting == 0 && pool.confirming == 0));
    assert(matcher().backlog.head(row) == kNoRow && leases().pool_leases.head(row) == kNoRow);
    provisioning().close_pool(row);
    shm::PoolRow blank{};
    blank.head = pool.head;
    blank.ready_head = kNoRow;
    blank.ready_tail = kNoRow;
    blank.demand_published = -1;
    blank.saturated_until_ns = turn().now_ns;  // of a free row: since when it is that
    blank.fence_next = state.counters->fence_base;
    if (keep_fences) {
        blank.fence_next = pool.fence_next;
        blank.name_size = pool.name_size;
        std::memcpy(blank.name, pool.name, sizeof(blank.name));
    }
    std::memcpy(&pool, &blank, sizeof(pool));
    stored();
}

Reason Pools::delete_pool(uint32_t row) {
    early_grants().settle_fresh();
    if (!pool_lives(row)) return Reason::kUnknownPool;
    const shm::PoolRow& pool = state.pools[row];
    const bool used =
        pool.waiting + pool.confirming != 0 || pool.idle != pool.slots || gangs().has_claims(row);
    const bool has_workers = pool.kind == shm::PoolKind::kWorker && pool.slots != 0;
    if (used || has_workers) return Reason::kState;
    assert(matcher().backlog.head(row) == kNoRow && leases().pool_leases.head(row) == kNoRow);
    shm::PoolRow& edited = edit().row(pool, 1U | kPoolTotals);
    put(edited.state, PoolState::kGoing);
    put(edited.slots_wanted, 0);
    matcher().touch(row);
    going.push_back(row);
    shrink_pool(row);
    return Reason::kOk;
}

// Waiting claims end, and its slots leave as those of a pool that is made smaller. The caller
// deletes it when it is unused; set_pool() takes that back.
Reason Pools::retire_pool(uint32_t row) {
    early_grants().settle_fresh();
    if (!pool_lives(row)) return Reason::kUnknownPool;
    const shm::PoolRow& pool = state.pools[row];
    if ((pool.flags & shm::PoolFlag::kLeaving) != 0) return Reason::kOk;
    put(edit().row(pool, 1).flags, pool.flags | shm::PoolFlag::kLeaving);
    matcher().touch(row);
    gangs().pool_changes(row);
    drain_work = true;
    go_on_draining();
    if (pool.kind == shm::PoolKind::kCounted) {
        put(edit().row(pool, kPoolAll).slots_wanted, 0);
        shrink_to_wanted(row);
    }
    return Reason::kOk;
}

void Pools::shrink_to_wanted(uint32_t row) {
    shm::PoolRow& pool = edit().row(state.pools[row], kPoolAll);
    assert(pool.kind == shm::PoolKind::kCounted);
    put(pool.number_next, std::min(pool.number_next, pool.slots_wanted));
    std::erase_if(shrinking, [&](const Surplus& other) { return other.pool == row; });
    Surplus surplus{row, 0};
    if (!leave_surplus(surplus)) shrinking.push_back(surplus);
}

// One step; the last one frees the row.
void Pools::shrink_pool(uint32_t row) {
    const shm::PoolRow& pool = state.pools[row];
    assert(pool.state == PoolState::kGoing && pool.idle == pool.slots);
    assert(pool.waiting == 0 && pool.confirming == 0);
    if (!gangs().pool_goes(row)) return;
    for (uint32_t step = 0; step < kShrinkStep && pool.slots != 0; ++step) {
        if (step != 0 && turn().full()) return;
        slots().remove_slot(pool.ready_head);
    }
    if (pool.slots != 0) return;
    vectors().close_pool(row);
    clear_pool(row, true);
    const auto place = std::find(going.begin(), going.end(), row);
    assert(place != going.end());
    going.erase(place);
}

Reason Pools::waits_for_nothing(uint32_t row) const {
    const shm::ClaimRow& claim = state.claims[row];
    assert(claim.state != shm::ClaimState::kFree);
    const shm::PoolRow& pool = state.pools[claim.pool];
    if (draining(claim.pool)) return Reason::kDraining;
    const bool is_counted = pool.kind == shm::PoolKind::kCounted;
    return is_counted && claim.units > pool.slots_wanted ? Reason::kTooManyUnits : Reason::kOk;
}

// Removes slots beyond the wanted number: free ones now, held ones when their lease ends. Those
// that left in an earlier turn are passed over. Waiting claims for more slots than will remain end.
bool Pools::leave_surplus(Surplus& surplus) {
    assert(surplus.pool < state.counters->pools);
    const shm::PoolRow& pool = state.pools[surplus.pool];
    const bool shrinks = pool_lives(surplus.pool) && pool.kind == shm::PoolKind::kCounted;
    for (uint32_t claim = shrinks ? matcher().backlog.head(surplus.pool) : kNoRow;
         claim != kNoRow;) {
        const uint32_t next = matcher().backlog.next(claim);
        if (state.claims[claim].units > pool.slots_wanted && !is_ask(state.claims[claim])) {
            if (turn().full()) return false;
            claims().end_claim(claim, Outcome::kRejected, Reason::kTooManyUnits, 0, true);
        }
        claim = next;
    }
    // What is told goes by number, the others by row.
    if (shrinks && gangs().linked != 0) {
        for (const uint32_t slot :
             slots_of_gangs(state, gangs(), surplus.pool, pool.slots_wanted)) {
            if (turn().full()) return false;
            workers().say_withdraw(slot);
            if (turn().full()) return false;  // some of its parts may be left
        }
    }
    for (; shrinks && whole_slots(pool) > pool.slots_wanted && surplus.row < state.slots.size();
         ++surplus.row) {
        const shm::SlotRow& slot = state.slots[surplus.row];
        if (slot.state == SlotState::kFree || slot.pool != surplus.pool) continue;
        if (slot.number < pool.slots_wanted || slot.part_of != kNoRow) continue;
        if ((slot.flags & shm::SlotFlag::kDraining) != 0) continue;
        if (turn().full()) return false;
        workers().say_withdraw(surplus.row);
    }
    return true;
}

bool Pools::shrink_pools() {
    while (!going.empty()) {
        if (turn().full()) return false;
        shrink_pool(going.back());
    }
    while (!shrinking.empty()) {
        if (!leave_surplus(shrinking.back())) return false;
        shrinking.pop_back();
    }
    return true;
}

}  // namespace dibs::core
