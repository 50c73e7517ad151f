// tests/naive/dispatch_pass.cpp -- a dispatched pool's turn: which entries of a queue that is kept
// elsewhere are locked, unlocked and started, and what is made and stopped for them.
//
// What names a statement is written from it. R, I, M and Q are those of S1, as are the lists.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::DecisionKind;
using Phase = Elastic::Phase;

bool NaiveCore::is_dispatched(uint32_t pool) const {
    return is_elastic(pool) && m_.pools[pool].config.dispatch;
}

// S1.20
bool NaiveCore::has_unknown_worker(uint32_t pool) const {
    return std::any_of(m_.slots.begin(), m_.slots.end(), [&](const auto& known) {
        return known.second.pool == pool && known.second.is == SlotIs::kUnknown;
    });
}

std::vector<uint64_t> NaiveCore::entries_by_number(uint32_t pool) const {
    std::map<uint64_t, uint64_t> by_number;
    for (const auto& [id, entry] : m_.entries)
        if (entry.pool == pool) by_number[entry.number] = id;
    std::vector<uint64_t> ids;
    for (const auto& [number, id] : by_number)
        ids.push_back(id);
    return ids;
}

// S1.1: locked before all others, priority descending, first seen. S1.9: what runs, or has an
// exited process that is not forgotten, is passed over; one of priority 0 is held.
std::vector<uint64_t> NaiveCore::entry_order(uint32_t pool) const {
    std::map<std::tuple<bool, int64_t, uint64_t>, uint64_t> order;
    for (const auto& [id, entry] : m_.entries) {
        const bool waits = entry.is == EntryIs::kQueued || entry.is == EntryIs::kLocked;
        if (entry.pool != pool || entry.has_process || !waits || entry.priority < 1) continue;
        order[{entry.is != EntryIs::kLocked, -int64_t{entry.priority}, entry.number}] = id;
    }
    std::vector<uint64_t> ids;
    for (const auto& [key, id] : order)
        ids.push_back(id);
    return ids;
}

// S1.30: by cost, then name; none that is dearer than so many times the cheapest.
std::vector<uint32_t> NaiveCore::eligible_types(const Entry& entry) const {
    std::vector<uint32_t> places = types_by_cost(entry.pool);
    std::erase_if(places,
                  [&](uint32_t place) { return entry.types && !entry.types->contains(place); });
    const uint64_t factor = m_.pools.at(entry.pool).config.price_factor_permille;
    // A going one "counts for no price".
    const auto first = std::find_if(
        places.begin(), places.end(), [&](uint32_t place) { return !m_.types.at(place).is_going; });
    if (first == places.end() || factor == 0) return places;
    const auto cheapest = static_cast<__uint128_t>(m_.types.at(*first).cost);
    std::erase_if(places, [&](uint32_t place) {
        return static_cast<__uint128_t>(m_.types.at(place).cost) * 1000 > cheapest * factor;
    });
    return places;
}

// S1.11
uint32_t NaiveCore::available_type(const Entry& entry) const {
    for (const uint32_t place : eligible_types(entry)) {
        if (can_be_made(place)) return place;
    }
    return shm::kNoRow;
}

// S1.7
uint64_t NaiveCore::supervisors_max(uint32_t pool) const {
    const uint64_t limit = m_.pools.at(pool).elastic.limit;
    const uint64_t permille = m_.pools.at(pool).config.supervisor_permille;
    if (permille == 0 || limit == 0) return 0;
    return std::max<uint64_t>(limit * permille / 1000, 1);
}

// S1.35: of exactly that type, idle, that was busy last.
Slot* NaiveCore::worker_to_start_on(uint32_t type) {
    Slot* last = nullptr;
    for (auto& [id, slot] : m_.slots) {
        const bool may = slot.type == type && slot.is == SlotIs::kIdle && is_unallocated(slot);
        if (may && (last == nullptr || slot.idle_place > last->idle_place)) last = &slot;
    }
    return last;
}

// S1.8 to S1.14
NaiveCore::Overs NaiveCore::map_entries(uint32_t pool) {
    Overs over;
    const uint64_t limit = m_.pools.at(pool).elastic.limit;
    const uint64_t most_supervisors = supervisors_max(pool);
    uint64_t trying = running_units(pool);
    uint64_t supervisors = running_supervisors(pool);
    for (const uint32_t place : types_by_cost(pool))
        over.free[place] = unallocated(pool, place);
    std::set<uint32_t> dont_start;
    const std::vector<uint64_t> order = entry_order(pool);
    for (auto at = order.begin(); at != order.end(); ++at) {
        Entry& entry = m_.entries.at(*at);
        supervisors += entry.is_supervisor;
        if (entry.is_supervisor && most_supervisors > 0 && supervisors > most_supervisors) {
            over.supervisors.push_back(*at);
            continue;
        }
        if (limit > 0 && trying >= limit) continue;
        const bool is_locked = entry.is == EntryIs::kLocked;
        const std::vector<uint32_t> types = eligible_types(entry);
        const auto free = std::find_if(
            types.begin(), types.end(), [&](uint32_t place) { return over.free.at(place) > 0; });
        const uint32_t available = available_type(entry);
        if (free == types.end() && available == shm::kNoRow) continue;
        if (free == types.end() && at_quota(pool)) {
            over.quota.assign(at, order.end());
            break;
        }
        if (free == types.end() && is_locked) {
            if (!create(pool, available)) continue;
            dont_start.insert(available);
            trying += 1;
            continue;
        }
        trying += 1;
        if (free != types.end()) over.free.at(*free) -= 1;
        if (!is_locked) {
            if (entry.operation == Operation::kNone) begin(entry, Operation::kLock);  // S1.18
            continue;
        }
        if (dont_start.contains(*free) || entry.operation != Operation::kNone) continue;
        Slot* worker = worker_to_start_on(*free);
        if (worker != nullptr) {
            start(entry, *worker);
        } else {
            dont_start.insert(*free);
        }
    }
    return over;
}

// S1.8
uint64_t NaiveCore::running_supervisors(uint32_t pool) const {
    return static_cast<uint64_t>(
        std::count_if(m_.entries.begin(), m_.entries.end(), [&](const auto& known) {
            const Entry& entry = known.second;
            const bool runs = entry.is == EntryIs::kRunning ||
                              (entry.has_process && entry.is != EntryIs::kAbsent);
            return entry.pool == pool && entry.is_supervisor && runs;
        }));
}

// S1.15, S1.18
void NaiveCore::unlock_over(uint32_t pool, const Overs& over) {
    std::vector<uint64_t> ids = over.supervisors;
    const bool keeps_first = workers(pool) > 0 && over.quota.size() > 1;
    ids.insert(ids.end(), over.quota.begin() + (keeps_first ? 1 : 0), over.quota.end());
    for (const uint64_t id : ids) {
        Entry& entry = m_.entries.at(id);
        const bool may = entry.is == EntryIs::kLocked && entry.operation == Operation::kNone;
        if (may) begin(entry, Operation::kUnlock);
    }
}

// S1.16, S1.36: one of each type that has free ones, never a held one. "None while one of the type
// is being stopped already"; "the recovering one with the highest number, else the one idle
// longest; ordered and unknown ones are left alone".
void NaiveCore::stop_for_room(uint32_t pool, Overs& over) {
    if (over.quota.empty()) return;
    for (const uint32_t place : types_by_cost(pool)) {
        if (over.free.at(place) == 0 || m_.types.at(place).session == shm::kNoRow) continue;
        Slot* booting = nullptr;
        Slot* idle = nullptr;
        bool stops_one = false;
        for (auto& [id, slot] : m_.slots) {
            if (slot.type != place) continue;
            const bool is_free = is_unallocated(slot);
            stops_one =
                stops_one || (slot.is_drained && slot.entry == 0 && slot.is != SlotIs::kOrdered);
            if (is_free && slot.is == SlotIs::kRecovering &&
                (booting == nullptr || slot.number > booting->number)) {
                booting = &slot;
            }
            if (is_free && slot.is == SlotIs::kIdle &&
                (idle == nullptr || slot.idle_place < idle->idle_place)) {
                idle = &slot;
            }
        }
        Slot* chosen = booting != nullptr ? booting : idle;
        if (chosen == nullptr || stops_one) continue;
        behave(*chosen, shm::Behaviour::kDrain);
        over.free.at(place) -= 1;
    }
}

// Workers that are there beside those that the pass has given away.
void NaiveCore::create_spare_beside(uint32_t pool, const Overs& over) {
    uint64_t given = unallocated(pool);
    for (const auto& [place, left] : over.free)
        given -= left;
    create_spare(pool, given);
}

bool NaiveCore::begin(Entry& entry, Operation operation) {
    entry.operation = operation;
    const DecisionKind kind = operation == Operation::kLock     ? DecisionKind::kLock
                              : operation == Operation::kUnlock ? DecisionKind::kUnlock
                                                                : DecisionKind::kKillProcess;
    core::Decision& asked = tell_of_entry(kind, entry);
    if (operation == Operation::kKill) {
        const Slot& worker = m_.slots.at(entry.worker);
        asked.slot_number = worker.number;
        asked.type = worker.type;
    }
    return true;
}

core::Decision& NaiveCore::tell_of_entry(DecisionKind kind, const Entry& entry) {
    core::Decision& decision = tell(kind, shm::kNoRow);
    decision.pool = entry.pool;
    decision.id = entry.number;
    decision.entry = entry_names_.emplace_back(entry.name);
    return decision;
}

// S1.13: it counts as alive from now on.
void NaiveCore::start(Entry& entry, Slot& worker) {
    core::Decision& started = tell_of_entry(DecisionKind::kStart, entry);
    started.slot_number = worker.number;
    started.type = worker.type;
    entry.is_starting = true;
    put_on(entry, worker);
}

// S1.22, S1.23, S1.24: true if the pool is served. They are computed at the end of the wait.
bool NaiveCore::stale_locks_are_mended(uint32_t pool) {
    Elastic& elastic = m_.pools.at(pool).elastic;
    if (elastic.phase == Phase::kServing) return true;
    if (elastic.phase == Phase::kReading) return false;
    std::vector<uint64_t> stale = stale_locks(pool);
    const bool is_over = m_.now >= elastic.stale_until_ns;
    if (has_unknown_worker(pool) && !stale.empty() && !is_over) return false;
    for (const uint64_t id : stale) {
        Entry& entry = m_.entries.at(id);
        if (entry.operation == Operation::kNone) begin(entry, Operation::kUnlock);
    }
    elastic.phase = Phase::kServing;
    return true;
}

// S1.23: locked, and nothing of it runs; held ones, too.
std::vector<uint64_t> NaiveCore::stale_locks(uint32_t pool) const {
    std::map<std::tuple<int64_t, uint64_t>, uint64_t> order;
    for (const auto& [id, entry] : m_.entries) {
        const bool is_stale = entry.is == EntryIs::kLocked && !entry.has_process;
        if (entry.pool == pool && is_stale) order[{-int64_t{entry.priority}, entry.number}] = id;
    }
    std::vector<uint64_t> ids;
    for (const auto& [key, id] : order)
        ids.push_back(id);
    return ids;
}

// S1.37. "Of types of which the pass has left a worker; it must have left more than `spare` in
// all."
void NaiveCore::stop_idle_left(uint32_t pool, Overs& over) {
    for (const uint64_t id : ready_of(pool)) {
        uint64_t left = 0;
        for (const auto& [place, free] : over.free)
            left += free;
        Slot& slot = m_.slots.at(id);
        const bool is_left = over.free.at(slot.type) > 0 && left > m_.pools.at(pool).config.spare;
        if (!drains_alone(pool) && !is_left) continue;
        if (stop_if_idle_too_long(slot)) over.free.at(slot.type) -= 1;
    }
}

// "If M or I is another one than before, again."
void NaiveCore::dispatch(uint32_t pool) {
    if (!stale_locks_are_mended(pool)) return tell_provisioners(pool);
    for (const uint64_t id : entries_by_number(pool))
        reconcile(id);
    adapt_limit(pool);
    const Elastic& elastic = m_.pools.at(pool).elastic;
    std::pair<uint64_t, uint64_t> before;
    Overs over;
    for (const uint32_t place : types_by_cost(pool))
        over.free[place] = unallocated(pool, place);
    do {
        before = {elastic.limit, workers(pool)};
        if (!is_draining(pool)) {
            over = map_entries(pool);
            unlock_over(pool, over);
            stop_for_room(pool, over);
            create_spare_beside(pool, over);
        }
        adapt_limit(pool);
    } while (before != std::pair{elastic.limit, workers(pool)});
    stop_idle_left(pool, over);
    tell_provisioners(pool);
}

}  // namespace dibs::naive
