// broker/core/dispatch/entry_sets.cpp -- finds entries by name, and keeps the sets in which their
// rows put them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "broker/core/dispatch/entry_change.hpp"

namespace dibs::core {

using shm::EntryOp;
using shm::EntryState;
namespace EntryFlag = shm::EntryFlag;

Dispatch::Dispatch(const State& rows)
    : Module(rows),
      counts_(rows.pools.size()),
      names_(rows.entries.size()),
      of_pool_(rows.pools.size(), rows.entries.size()),
      lines_(3 * rows.pools.size(), rows.entries.size()),
      queued_(rows.entries.size() + 1, rows.entries.size()),
      unsettled_(rows.pools.size(), rows.entries.size()),
      groups_(rows.entries.size() + 1),
      group_index_(rows.entries.size() + 1),
      groups_of_(rows.pools.size(), rows.entries.size() + 1),
      unallocated_(rows.types.size()),
      named_(rows.entries.size()) {
    free_.reserve(rows.entries.size());
    for (uint32_t row = rows.entries.size(); row-- != 0;) {
        if (rows.entries[row].state == EntryState::kFree) free_.push_back(row);
    }
    free_groups_.reserve(groups_.size());
    for (uint32_t group = static_cast<uint32_t>(groups_.size()); group-- != 0;)
        free_groups_.push_back(group);
    heads_.reserve(groups_.size());
    unlocks_.reserve(rows.entries.size());
}

void Dispatch::configure(uint32_t pool, const PoolConfig& config, bool is_new) {
    shm::ElasticRow& row = edit().row(state.elastics[pool], 1U << 2U);
    if (is_new) {
        put(row.dispatch, config.dispatch ? 1 : 0);
        put(row.phase, shm::DispatchPhase::kReading);
        put(row.entry_next, 1);
        put(row.queue_read_ns, 0);
        put(row.stale_until_ns, kNever);
    }
    put(row.supervisor_permille, config.supervisor_permille);
    put(row.attempts_max, config.attempts_max);
    put(row.stale_lock_timeout_ns, config.stale_lock_timeout_ns);
    put(row.probe_timeout_ns, config.probe_timeout_ns);
}

void Dispatch::close_pool(uint32_t pool) {
    while (of_pool_.head(pool) != kNoRow)
        free_entry(of_pool_.head(pool));
    put(edit().row(state.elastics[pool], 1U << 2U).dispatch, 0);
}

void Dispatch::find_entries() {
    for (uint32_t row = 0; row < state.entries.size(); ++row) {
        const shm::EntryRow& entry = state.entries[row];
        if (entry.state == EntryState::kFree) continue;
        names_.insert(workers().name_hash(entry.pool, name_of(entry)), row);
        of_pool_.push_back(entry.pool, row);
        list(row, true);
    }
}

uint32_t Dispatch::find(uint32_t pool, std::string_view name) const {
    return names_.find(workers().name_hash(pool, name), [&](uint32_t row) {
        return state.entries[row].pool == pool && name_of(state.entries[row]) == name;
    });
}

bool Dispatch::names_type(uint32_t pool, uint32_t type) const {
    if (type >= kTypesOfEntry) return false;
    for (uint32_t row = of_pool_.head(pool); row != kNoRow; row = of_pool_.next(row)) {
        const uint64_t types = state.entries[row].types;
        if (types != kAnyType && (types >> type & 1U) != 0) return true;
    }
    return false;
}

bool Dispatch::waits(const shm::EntryRow& entry) {
    const bool in_line = entry.state == EntryState::kQueued || entry.state == EntryState::kLocked;
    return in_line && entry.priority >= 1 && !has_process(entry);
}

// A supervisor whose worker is not known runs, too (S1.8, S1.20).
Dispatch::Counts Dispatch::counts_as(const shm::EntryRow& entry) const {
    const bool in_queue = entry.state != EntryState::kAbsent;
    const bool runs = (has_process(entry) && in_queue) || entry.state == EntryState::kRunning;
    Counts counts;
    counts.exited = has_process(entry) && !is_alive(entry) ? 1 : 0;
    counts.supervisors = is_supervisor(entry) && runs ? 1 : 0;
    const bool is_locked = entry.state == EntryState::kLocked || entry.op == EntryOp::kLock;
    counts.lacking = waits(entry) && is_locked ? 1 : 0;
    return counts;
}

// Reconciliation does nothing with it, whatever the workers and the readings of the queue say.
bool Dispatch::is_settled(const shm::EntryRow& entry) {
    if (entry.op != EntryOp::kNone || waits(entry)) return true;
    const bool runs = entry.state == EntryState::kRunning || entry.state == EntryState::kLocked;
    const bool is_hopeless = (entry.flags & EntryFlag::kHopeless) != 0;
    return is_alive(entry) && (is_hopeless || (runs && entry.priority >= 1));
}

uint32_t Dispatch::group_of(const shm::EntryRow& entry) const {
    const Group group{entry.pool, entry.types, is_supervisor(entry)};
    return group_index_.find(numbers_hash(group.pool, group.types, group.supervisor ? 1U : 0U),
                             [&](uint32_t row) { return groups_[row] == group; });
}

uint32_t Dispatch::open_group(const shm::EntryRow& entry) {
    if (const uint32_t known = group_of(entry); known != kNoRow) return known;
    const uint32_t row = free_groups_.back();
    free_groups_.pop_back();
    const Group& group = groups_[row] = {entry.pool, entry.types, is_supervisor(entry)};
    group_index_.insert(numbers_hash(group.pool, group.types, group.supervisor ? 1U : 0U), row);
    groups_of_.push_back(entry.pool, row);
    return row;
}

void Dispatch::close_group(uint32_t row) {
    const Group& group = groups_[row];
    group_index_.remove(numbers_hash(group.pool, group.types, group.supervisor ? 1U : 0U), row);
    groups_of_.remove(group.pool, row);
    free_groups_.push_back(row);
}

// A group that is left empty stays until its entry stands in another place: see change().
void Dispatch::list(uint32_t row, bool on) {
    const shm::EntryRow& entry = state.entries[row];
    const auto stand_in = [&](RankedRows& sets, uint32_t set, const auto& less) {
        on ? sets.insert(set, row, less) : sets.remove(set, row, less);
    };
    const auto count = [&](uint32_t& number, uint32_t by) { number += on ? by : ~by + 1; };
    const bool locked = entry.state == EntryState::kLocked;
    if (waits(entry)) {
        stand_in(lines_, line(entry.pool, is_supervisor(entry)), order());
        if (!locked) stand_in(queued_, open_group(entry), order());
    } else if (locked && !has_process(entry)) {
        stand_in(lines_, held_line(entry.pool), order());
    }
    if (!is_settled(entry)) stand_in(unsettled_, entry.pool, by_number());
    const Counts counts = counts_as(entry);
    Counts& of_pool = counts_[entry.pool];
    count(of_pool.exited, counts.exited);
    count(of_pool.supervisors, counts.supervisors);
    count(of_pool.lacking, counts.lacking);
}

uint32_t Dispatch::make_entry(uint32_t pool, std::string_view name) {
    const uint32_t row = free_.back();
    free_.pop_back();
    shm::EntryRow& entry = edit().fresh_row(state.entries[row]);
    put(entry.pool, pool);
    put(entry.flags, 0);
    put(entry.op, EntryOp::kNone);
    put(entry.worker, kNoRow);
    put(entry.exited_ns, kNever);
    put(entry.asked, 0);
    name.copy(entry.name, sizeof(entry.name));
    stored();
    put(entry.name_size, name.size());
    fill_new(entry);
    put(entry.state, EntryState::kAbsent);
    names_.insert(workers().name_hash(pool, name), row);
    of_pool_.push_back(pool, row);
    list(row, true);
    return row;
}

// As the queue's, from now on. It keeps its process.
void Dispatch::fill_new(shm::EntryRow& entry) {
    shm::ElasticRow& elastic = edit().row(state.elastics[entry.pool], 1U << 2U);
    put(entry.state, EntryState::kQueued);
    put(entry.flags, entry.flags & ~uint32_t{EntryFlag::kSupervisor});
    put(entry.priority, 1);
    put(entry.lock_count, 0);
    put(entry.types, kAnyType);
    put(entry.number, elastic.entry_next);
    put(elastic.entry_next, elastic.entry_next + 1);
    put(entry.event_ns, 0);
    put(entry.changed_ns, kNever);
}

void Dispatch::free_entry(uint32_t row) {
    const shm::EntryRow& entry = state.entries[row];
    assert(entry.worker == kNoRow);
    const uint32_t group = waits(entry) ? group_of(entry) : kNoRow;
    list(row, false);
    if (group != kNoRow && queued_.size(group) == 0) close_group(group);
    names_.remove(workers().name_hash(entry.pool, name_of(entry)), row);
    of_pool_.remove(entry.pool, row);
    put(edit().row(entry, 1).state, EntryState::kFree);
    free_.push_back(row);
    unname(entry.types);
}

// Nothing may be left of those that are going.
void Dispatch::unname(uint64_t types) {
    for (uint64_t left = types == kAnyType ? 0 : types; left != 0; left &= left - 1) {
        const auto type = static_cast<uint32_t>(std::countr_zero(left));
        if (type < state.types.size() && state.types[type].state != 0)
            provisioning().worker_leaves(type);
    }
}

void Dispatch::check(Wrongs* wrongs) const {
    std::vector<Counts> found(state.pools.size());
    std::vector<uint32_t> lined(3 * size_t{state.pools.size()});
    std::vector<uint32_t> unsettled(state.pools.size());
    std::vector<uint32_t> groups(groups_.size());
    size_t used = 0;
    for (uint32_t row = 0; row < state.entries.size(); ++row) {
        const shm::EntryRow& entry = state.entries[row];
        if (entry.state == EntryState::kFree) continue;
        ++used;
        const Subject it(wrongs, "entry", name_of(entry));
        it.expect(find(entry.pool, name_of(entry)) == row, "is not found by its name");
        it.expect(entry.state != EntryState::kAbsent || has_process(entry),
                  "is not in the queue, and no process of it is known");
        it.expect(is_alive(entry) == (entry.worker != kNoRow), "and its worker disagree");
        it.expect(entry.number < state.elastics[entry.pool].entry_next, "is from the future");
        const bool locked = entry.state == EntryState::kLocked;
        if (waits(entry)) {
            ++lined[line(entry.pool, is_supervisor(entry))];
            const uint32_t group = locked ? kNoRow : group_of(entry);
            it.expect(locked || group != kNoRow, "waits, and stands in no group");
            if (group != kNoRow) ++groups[group];
        } else if (locked && !has_process(entry)) {
            ++lined[held_line(entry.pool)];
        }
        if (!is_settled(entry)) ++unsettled[entry.pool];
        const Counts counts = counts_as(entry);
        found[entry.pool].exited += counts.exited;
        found[entry.pool].supervisors += counts.supervisors;
        found[entry.pool].lacking += counts.lacking;
    }
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const shm::SlotRow& slot = state.slots[row];
        if (slot.state == SlotState::kFree || slot.entry == kNoRow) continue;
        if (!is_dispatched(slot.pool)) continue;
        const Subject it(wrongs, "slot row", row);
        it.expect(state.entries[slot.entry].worker == row, "runs an entry that is not on it");
    }
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool) {
        const Subject it(wrongs, "pool", name_of(state.pools[pool]));
        it.expect_count("exited processes", found[pool].exited, counts_[pool].exited);
        it.expect_count("locked entries", found[pool].lacking, counts_[pool].lacking);
        it.expect_count("supervisors", found[pool].supervisors, counts_[pool].supervisors);
        it.expect_count("unsettled entries", unsettled[pool], unsettled_.size(pool));
        for (uint32_t set = 3 * pool; set < 3 * pool + 3; ++set)
            it.expect_count("entries in line", lined[set], lines_.size(set));
        for (uint32_t group = groups_of_.head(pool); group != kNoRow;
             group = groups_of_.next(group)) {
            it.expect(groups[group] != 0, "has a group of entries that is empty");
            it.expect_count("entries of a group", groups[group], queued_.size(group));
        }
    }
    const Subject it(wrongs, "dispatch");
    it.expect_count("entries", used, names_.size());
    it.expect_count("free rows of entries", state.entries.size() - used, free_.size());
}

}  // namespace dibs::core
