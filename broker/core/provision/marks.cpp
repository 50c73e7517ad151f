// broker/core/provision/marks.cpp -- counts and lists the slots and locked claims of elastic pools.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::OrderState;

Provisioning::Provisioning(const State& rows)
    : Module(rows),
      counts(rows.pools.size()),
      unallocated_of(rows.types.size()),
      stopping_of(rows.types.size()),
      passed(rows.pools.size()),
      marks_(rows.slots.size()),
      going_(rows.types.size()),
      underway_(rows.pools.size(), rows.slots.size()),
      idle_(rows.types.size(), rows.slots.size()),
      untold_(rows.types.size(), rows.slots.size()),
      starts_(rows.types.size(), rows.slots.size()),
      due_(0, rows.slots.size(), rows.pools.size()) {
    by_cost.reserve(rows.types.size());
}

// Its present provisioner, or the one before it while there is none.
bool Provisioning::is_told(const shm::SlotRow& slot) const {
    return slot.stop_told != 0 && slot.stop_told == state.types[slot.type].role;
}

Marks Provisioning::marks_of(uint32_t row) const {
    const shm::SlotRow& slot = state.slots[row];
    if (slot.state == SlotState::kFree || !is_elastic(slot.pool)) return 0;
    if (slot.part_of != kNoRow) return 0;
    const bool is_announced = slot.order == OrderState::kAnnounced;
    const uint32_t goes = is_announced && is_drained(slot) ? uint32_t{Mark::kGoes} : 0U;
    if (slot.state == SlotState::kShared) {
        const bool takes_parts = !is_stopped(slot);
        return static_cast<Marks>(Mark::kRuns | goes | (takes_parts ? Mark::kTakesParts : 0));
    }
    if (slot.holder != kNoRow || is_placeholder(slot)) {
        return static_cast<Marks>(Mark::kRuns | goes);
    }
    const bool may_stop = goes != 0 && !is_told(slot) && !is_kept(slot);
    if (slot.entry != kNoRow && dispatch().is_dispatched(slot.pool)) {
        const bool stops = may_stop && dispatch().is_lost(slot);
        return static_cast<Marks>(Mark::kRuns | goes | (stops ? Mark::kUntold : 0));
    }
    uint32_t marks = goes | (is_stopped(slot) ? 0 : Mark::kUnallocated);
    if (!is_stopped(slot) && slot.state != SlotState::kIdle) marks |= Mark::kUnderway;
    if (slot.state == SlotState::kOrdered) {
        if (slot.order == OrderState::kAsked) marks |= Mark::kAsked;
        if (slot.order == OrderState::kAsked && !is_told(slot)) marks |= Mark::kUntold;
    } else if (slot.order == OrderState::kAnnounced && slot.state == SlotState::kIdle) {
        marks |= Mark::kIdles;
    } else if (slot.session != kNoRow || slot.type == kNoRow) {
        if (may_stop) marks |= Mark::kUntold;
    } else if (is_drained(slot)) {
        const bool is_known = slot.state != SlotState::kUnknown || slot.broken != 0;
        marks |= Mark::kStopping | (may_stop && is_known ? Mark::kUntold : 0);
    } else if (slot.state == SlotState::kRecovering && (marks & Mark::kUnallocated) != 0) {
        marks |= Mark::kStarts;
    }
    // A drained order is not stopped: its boot time-out alone ends it. A held worker stays.
    const bool may_fail = slot.state == SlotState::kOrdered || !is_withheld(slot);
    if (slot.boot_until_ns != kNever && may_fail) marks |= Mark::kBoots;
    return static_cast<Marks>(marks);
}

void Provisioning::slot_changes(uint32_t row) {
    mark(row, marks_of(row));
}

// What is counted by type goes from the one to the other.
void Provisioning::change_type(uint32_t row, uint32_t type) {
    const uint32_t before = state.slots[row].type;
    if (type == before) return;
    mark(row, 0);
    put(edit().row(state.slots[row], 1U << 1U).type, type);
    slot_changes(row);
    worker_leaves(before);
}

void Provisioning::mark(uint32_t row, Marks now) {
    const shm::SlotRow& slot = state.slots[row];
    const Marks before = std::exchange(marks_[row], now);
    if (now == before) return;
    turn().dirty.add(slot.pool);
    Counts& of_pool = counts[slot.pool];
    const auto comes = [&](Marks mark) { return (now & ~before & mark) != 0; };
    const auto goes = [&](Marks mark) { return (before & ~now & mark) != 0; };
    const auto count = [&](uint32_t& number, Marks mark) {
        number += comes(mark) ? 1 : 0;
        number -= goes(mark) ? 1 : 0;
    };
    count(of_pool.running, Mark::kRuns);
    count(of_pool.unallocated, Mark::kUnallocated);
    count(of_pool.asked, Mark::kAsked);
    if (comes(Mark::kGoes)) ++going_[slot.type];
    if (goes(Mark::kGoes)) --going_[slot.type];
    if (comes(Mark::kUnderway)) underway_.push_back(slot.pool, row);
    if (goes(Mark::kUnderway)) underway_.remove(slot.pool, row);
    if (slot.type != kNoRow) {
        count(unallocated_of[slot.type], Mark::kUnallocated);
        count(stopping_of[slot.type], Mark::kStopping);
    }
    if (comes(Mark::kStarts)) starts_.push_back(slot.type, row);
    if (goes(Mark::kStarts)) starts_.remove(slot.type, row);
    if (comes(Mark::kIdles)) idle_.push_back(slot.type, row);
    if (goes(Mark::kIdles)) idle_.remove(slot.type, row);
    if (comes(Mark::kUntold)) untold_.push_back(slot.type, row);
    if (goes(Mark::kUntold)) untold_.remove(slot.type, row);
    const uint64_t number = (uint64_t{slot.pool} << 32U) | slot.number;
    if (comes(Mark::kBoots)) due_.set(TimerKind::kBoot, row, slot.boot_until_ns, number);
    if (goes(Mark::kBoots)) due_.remove(TimerKind::kBoot, row);
}

void Provisioning::slot_enters(uint32_t row, SlotState to) {
    const uint32_t pool = state.slots[row].pool;
    if (!is_elastic(pool)) return;
    const shm::ElasticRow& elastic = state.elastics[pool];
    if (to == SlotState::kFree && whole_slots(state.pools[pool]) < elastic.quota_below) {
        shm::ElasticRow& met = edit().row(elastic, 1);  // S1.32: there are fewer now
        put(met.quota_below, 0);
        put(met.quota_until_ns, 0);
    }
    if (to == SlotState::kIdle) {
        shm::SlotRow& slot = edit().row(state.slots[row], 1U << 2U);
        put(slot.idle_since_ns, turn().now_ns);
        put(slot.boot_until_ns, kNever);
    }
    slot_changes(row);
    if (to != SlotState::kFree) return;
    const shm::SlotRow& gone = state.slots[row];
    const bool had_come = gone.type != kNoRow && gone.order == OrderState::kAnnounced;
    if (had_come && state.types[gone.type].capacity_until_ns > turn().now_ns) {
        put(edit().row(state.types[gone.type], 1).capacity_until_ns, 0);  // it has left its room
        turn().dirty.add(gone.pool);
    }
    worker_leaves(gone.type);
}

// A locked claim begins or ends to wait.
void Provisioning::count_locked(uint32_t row, bool comes) {
    const shm::ClaimRow& claim = state.claims[row];
    if ((claim.flags & shm::ClaimFlag::kLocked) == 0) return;
    Counts& of_pool = counts[claim.pool];
    of_pool.locked += comes ? 1U : ~0U;
    of_pool.locked_units += comes ? claim.units : ~uint32_t{claim.units} + 1;
}

// Slots are found in the order of their rows, and are listed in the order of the ready queue.
void Provisioning::pool_is_found(uint32_t pool) {
    if (!is_elastic(pool)) return;
    for (uint32_t slot = state.pools[pool].ready_head; slot != kNoRow;
         slot = state.slots[slot].ready_next) {
        if ((marks_[slot] & Mark::kIdles) == 0) continue;
        idle_.remove(state.slots[slot].type, slot);
        idle_.push_back(state.slots[slot].type, slot);
    }
    if (dispatch().is_dispatched(pool)) dispatch().find_left(pool);
    set_due(pool);
}

void Provisioning::check(Wrongs* wrongs) const {
    std::vector<Counts> found(state.pools.size());
    std::vector<uint32_t> idle(state.types.size());
    std::vector<uint32_t> going(state.types.size());
    std::vector<uint32_t> unallocated(state.types.size());
    std::vector<uint32_t> stopping(state.types.size());
    std::vector<uint32_t> starts(state.types.size());
    uint32_t underway = 0;
    uint32_t untold = 0;
    size_t boots = 0;
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const Marks marks = marks_of(row);
        const Subject it(wrongs, "slot row", row);
        it.expect(marks == marks_[row], "counts for provisioners as it did before");
        if (marks == 0) continue;
        underway += (marks & Mark::kUnderway) != 0 ? 1 : 0;
        if ((marks & Mark::kGoes) != 0) ++going[state.slots[row].type];
        Counts& of_pool = found[state.slots[row].pool];
        of_pool.running += (marks & Mark::kRuns) != 0 ? 1 : 0;
        of_pool.unallocated += (marks & Mark::kUnallocated) != 0 ? 1 : 0;
        of_pool.asked += (marks & Mark::kAsked) != 0 ? 1 : 0;
        if ((marks & Mark::kIdles) != 0) ++idle[state.slots[row].type];
        if ((marks & Mark::kStarts) != 0) ++starts[state.slots[row].type];
        if (state.slots[row].type != kNoRow) {
            unallocated[state.slots[row].type] += (marks & Mark::kUnallocated) != 0 ? 1 : 0;
            stopping[state.slots[row].type] += (marks & Mark::kStopping) != 0 ? 1 : 0;
        }
        untold += (marks & Mark::kUntold) != 0 ? 1 : 0;
        boots += (marks & Mark::kBoots) != 0 ? 1 : 0;
    }
    for (uint32_t row = 0; row < state.claims.size(); ++row) {
        const shm::ClaimRow& claim = state.claims[row];
        const bool waits = claim.state == shm::ClaimState::kWaiting;
        if (!waits || (claim.flags & shm::ClaimFlag::kLocked) == 0) continue;
        ++found[claim.pool].locked;
        found[claim.pool].locked_units += claim.units;
    }
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool) {
        const Subject it(wrongs, "pool", name_of(state.pools[pool]));
        it.expect_count("running units", found[pool].running, counts[pool].running);
        it.expect_count("unallocated", found[pool].unallocated, counts[pool].unallocated);
        it.expect_count("unanswered orders", found[pool].asked, counts[pool].asked);
        it.expect_count("locked claims", found[pool].locked, counts[pool].locked);
        it.expect_count("locked units", found[pool].locked_units, counts[pool].locked_units);
        if (due_.has(TimerKind::kLook, pool)) ++boots;
        for (uint32_t slot = underway_.head(pool); slot != kNoRow && underway != 0;
             slot = underway_.next(slot))
            --underway;
    }
    for (uint32_t type = 0; type < state.types.size(); ++type) {
        const Subject it(wrongs, "type row", type);
        it.expect_count("workers that go", going[type], going_[type]);
        it.expect_count("unallocated", unallocated[type], unallocated_of[type]);
        it.expect_count("workers that stop", stopping[type], stopping_of[type]);
        for (uint32_t slot = starts_.head(type); slot != kNoRow && starts[type] != 0;
             slot = starts_.next(slot))
            --starts[type];
        it.expect(starts[type] == 0, "lists fewer booting workers than there are");
        uint64_t last = 0;
        for (uint32_t slot = idle_.head(type); slot != kNoRow && idle[type] != 0;
             slot = idle_.next(slot), --idle[type]) {
            it.expect(last <= state.slots[slot].idle_order, "lists its idle workers out of order");
            last = state.slots[slot].idle_order;
        }
        it.expect(idle[type] == 0, "lists fewer idle workers than there are");
        for (uint32_t slot = untold_.head(type); slot != kNoRow && untold != 0;
             slot = untold_.next(slot))
            --untold;
    }
    const Subject it(wrongs, "provisioning");
    it.expect(underway == 0, "lists fewer workers under way than there are");
    it.expect(untold == 0, "lists fewer words to provisioners than there are");
    it.expect_count("timers", boots, due_.size());
    const auto types = std::count_if(&state.types[0],
                                     &state.types[0] + state.types.size(),
                                     [](const shm::TypeRow& type) { return type.state != 0; });
    it.expect_count("types", static_cast<uint64_t>(types), by_cost.size());
}

}  // namespace dibs::core
