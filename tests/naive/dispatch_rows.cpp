// tests/naive/dispatch_rows.cpp -- compares what dispatched pools, their entries and workers show.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/dispatch_rows.hpp"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/core/look.hpp"

namespace dibs::naive {

namespace {

using Shown = std::vector<std::pair<std::string, std::string>>;

void add(Shown& shown, const char* name, uint64_t value) {
    shown.emplace_back(name, value == shm::kNever ? "never" : std::to_string(value));
}

std::string shown_difference(const Shown& real, const Shown& expected) {
    for (size_t at = 0; at < real.size(); ++at) {
        if (real[at] == expected[at]) continue;
        return real[at].first + ": core " + real[at].second + ", naive " + expected[at].second;
    }
    return {};
}

// Entries by pool and name.
using Rows = std::map<std::pair<uint32_t, std::string>, const shm::EntryRow*>;

Rows rows_of(std::span<const std::byte> state) {
    const auto* head = reinterpret_cast<const shm::StateHead*>(state.data());
    const shm::TablePlace& place = head->table[static_cast<uint32_t>(shm::Table::kEntries)];
    const auto* entries = reinterpret_cast<const shm::EntryRow*>(state.data() + place.offset);
    Rows rows;
    for (const shm::EntryRow& row : std::span(entries, place.rows)) {
        if (row.state == shm::EntryState::kFree) continue;
        rows[{row.pool, std::string(row.name, row.name_size)}] = &row;
    }
    return rows;
}

std::string types_of(const core::Core& core, const shm::EntryRow& row) {
    if (row.types == ~uint64_t{0}) return "any";
    std::string names;
    for (uint32_t type = 0; type < 64; ++type) {
        if ((row.types >> type & 1U) == 0) continue;
        const shm::TypeRow& of = core::Look::type(core, core::TypeId(type));
        names += " " + std::string(of.name, of.name_size);
    }
    return names;
}

std::string types_of(const NaiveCore& naive, const core::Core& core, const Entry& entry) {
    if (!entry.types) return "any";
    std::map<uint32_t, std::string> by_row;
    for (const uint32_t place : *entry.types) {
        const std::string& name = naive.model().types.at(place).name;
        by_row[core::Look::find_type(core, core::PoolId(entry.pool), name)] = name;
    }
    std::string names;
    for (const auto& [row, name] : by_row)
        names += " " + name;
    return names;
}

Shown shown_of(const core::Core& core, const shm::EntryRow& row) {
    Shown shown;
    add(shown, "state", static_cast<uint64_t>(row.state) - 1);
    add(shown, "op", static_cast<uint64_t>(row.op));
    add(shown, "supervisor", (row.flags & shm::EntryFlag::kSupervisor) != 0);
    add(shown, "process", (row.flags & shm::EntryFlag::kProcess) != 0);
    add(shown, "starting", (row.flags & shm::EntryFlag::kStarting) != 0);
    add(shown, "hopeless", (row.flags & shm::EntryFlag::kHopeless) != 0);
    add(shown, "priority", static_cast<uint64_t>(int64_t{row.priority}));
    add(shown, "lock_count", row.lock_count);
    add(shown, "number", row.number);
    add(shown, "exited_ns", row.exited_ns);
    add(shown, "worker", row.worker == shm::kNoRow ? shm::kNever : core.slot(row.worker).number);
    add(shown, "event_ns", row.event_ns);
    add(shown, "changed_ns", row.changed_ns);
    shown.emplace_back("types", types_of(core, row));
    return shown;
}

Shown shown_of(const NaiveCore& naive, const core::Core& core, const Entry& entry) {
    Shown shown;
    add(shown, "state", static_cast<uint64_t>(entry.is));
    add(shown, "op", static_cast<uint64_t>(entry.operation));
    add(shown, "supervisor", entry.is_supervisor);
    add(shown, "process", entry.has_process);
    add(shown, "starting", entry.is_starting);
    add(shown, "hopeless", entry.is_hopeless);
    add(shown, "priority", static_cast<uint64_t>(int64_t{entry.priority}));
    add(shown, "lock_count", entry.lock_count);
    add(shown, "number", entry.number);
    add(shown, "exited_ns", entry.exited_ns);
    const auto worker = naive.model().slots.find(entry.worker);
    const bool has_worker = entry.worker != kNoWorker && worker != naive.model().slots.end();
    add(shown, "worker", has_worker ? worker->second.number : shm::kNever);
    add(shown, "event_ns", entry.event_ns);
    add(shown, "changed_ns", entry.changed_ns);
    shown.emplace_back("types", types_of(naive, core, entry));
    return shown;
}

Shown shown_of(const core::Core& core, std::span<const std::byte> state, const shm::SlotRow& slot) {
    Shown shown;
    shown.emplace_back("name", std::string(slot.name, slot.name_size));
    add(shown, "state", static_cast<uint64_t>(slot.state));
    add(shown, "behaviour", static_cast<uint64_t>(slot.behaviour));
    add(shown, "broken", slot.broken);
    add(shown, "probe_ns", slot.probe_ns);
    add(shown, "confirmed_ns", slot.confirmed_ns);
    add(shown, "modified_ns", slot.modified_ns);
    shown.emplace_back(
        "type", slot.type == shm::kNoRow ? "" : [&] {
            const shm::TypeRow& type = core::Look::type(core, core::TypeId(slot.type));
            return std::string(type.name, type.name_size);
        }());
    std::string entry;
    for (const auto& [place, row] : rows_of(state)) {
        const bool is_its = row->pool == slot.pool && row->worker != shm::kNoRow;
        if (is_its && &core.slot(row->worker) == &slot) entry += place.second;
    }
    shown.emplace_back("entry", slot.entry == shm::kNoRow ? "" : entry);
    return shown;
}

shm::SlotState slot_state_of(SlotIs is) {
    switch (is) {
        case SlotIs::kIdle:
            return shm::SlotState::kIdle;
        case SlotIs::kUnknown:
            return shm::SlotState::kUnknown;
        case SlotIs::kOrdered:
            return shm::SlotState::kOrdered;
        default:
            return shm::SlotState::kRecovering;
    }
}

Shown shown_of(const NaiveCore& naive, const Slot& slot) {
    Shown shown;
    shown.emplace_back("name", slot.name);
    add(shown, "state", static_cast<uint64_t>(slot_state_of(slot.is)));
    const auto behaviour = slot.is_held      ? shm::Behaviour::kHold
                           : slot.is_drained ? shm::Behaviour::kDrain
                                             : shm::Behaviour::kRun;
    add(shown, "behaviour", static_cast<uint64_t>(behaviour));
    add(shown, "broken", slot.is_broken);
    add(shown, "probe_ns", slot.probe_ns);
    add(shown, "confirmed_ns", slot.confirmed_ns);
    add(shown, "modified_ns", slot.modified_ns);
    const auto type = naive.model().types.find(slot.type);
    shown.emplace_back("type", type == naive.model().types.end() ? "" : type->second.name);
    const auto entry = naive.model().entries.find(slot.entry);
    shown.emplace_back("entry", entry == naive.model().entries.end() ? "" : entry->second.name);
    return shown;
}

std::string pool_difference(const core::Core& core, uint32_t pool, const Elastic& elastic) {
    const shm::ElasticRow& row = core::Look::elastic(core, core::PoolId(pool));
    Shown real;
    Shown expected;
    const bool is_stale = elastic.phase == Elastic::Phase::kStale;
    add(real, "phase", static_cast<uint64_t>(row.phase));
    add(expected, "phase", static_cast<uint64_t>(elastic.phase));
    add(real, "queue_read_ns", row.queue_read_ns);
    add(expected, "queue_read_ns", elastic.queue_read_ns);
    add(real, "stale_until_ns", is_stale ? std::min(row.stale_until_ns, shm::kNever - 1) : 0);
    add(expected,
        "stale_until_ns",
        is_stale ? std::min(elastic.stale_until_ns, shm::kNever - 1) : 0);
    return shown_difference(real, expected);
}

// What is said to who asks. S1.17: supervisors and the others are counted apart.
std::string look_difference(const core::Core& core, uint32_t pool, const NaiveCore& naive) {
    Shown real;
    Shown expected;
    add(real, "supervisor_limit", core::Look::supervisor_limit(core, core::PoolId(pool)));
    add(expected, "supervisor_limit", naive.supervisors_max(pool));
    for (const auto& [place, type] : naive.model().types) {
        if (type.pool != pool) continue;
        const uint32_t row = core::Look::find_type(core, core::PoolId(pool), type.name);
        add(real, "unallocated", core::Look::of_type(core, core::TypeId(row)).unallocated);
        add(expected, "unallocated", naive.unallocated(pool, place));
    }
    std::map<bool, uint64_t> positions;
    for (const uint64_t id : naive.entry_order(pool)) {
        const Entry& entry = naive.model().entries.at(id);
        const uint32_t row = core::Look::find_entry(core, core::PoolId(pool), entry.name);
        const uint32_t position = core::Look::entry_position(core, row);
        real.emplace_back("position of " + entry.name, std::to_string(position));
        expected.emplace_back("position of " + entry.name,
                              std::to_string(++positions[entry.is_supervisor]));
    }
    return shown_difference(real, expected);
}

}  // namespace

std::string dispatch_difference(const core::Core& core,
                                std::span<const std::byte> state,
                                const NaiveCore& naive) {
    const Model& model = naive.model();
    const Rows rows = rows_of(state);
    for (const auto& [place, row] : rows) {
        bool is_known = false;
        for (const auto& [id, entry] : model.entries)
            is_known = is_known || (entry.pool == place.first && entry.name == place.second);
        if (!is_known) return "entry " + place.second + " is still there";
    }
    for (const auto& [id, entry] : model.entries) {
        const auto row = rows.find({entry.pool, entry.name});
        if (row == rows.end()) return "entry " + entry.name + " is not there";
        const std::string differs =
            shown_difference(shown_of(core, *row->second), shown_of(naive, core, entry));
        if (!differs.empty()) return "entry " + entry.name + " " + differs;
    }
    for (uint32_t pool = 0; pool < model.pools.size(); ++pool) {
        if (!naive.is_dispatched(pool)) continue;
        const std::string who = "pool " + std::to_string(pool) + " ";
        const std::string differs = pool_difference(core, pool, model.pools[pool].elastic);
        if (!differs.empty()) return who + differs;
    }
    for (uint32_t pool = 0; pool < model.pools.size(); ++pool) {
        if (!naive.is_dispatched(pool)) continue;
        const std::string differs = look_difference(core, pool, naive);
        if (!differs.empty()) return "pool " + std::to_string(pool) + " " + differs;
    }
    std::map<std::pair<uint32_t, uint32_t>, const Slot*> slots;
    for (const auto& [id, slot] : model.slots)
        if (naive.is_dispatched(slot.pool)) slots[{slot.pool, slot.number}] = &slot;
    for (uint32_t at = 0; at < core.slots_max(); ++at) {
        const shm::SlotRow& row = core.slot(at);
        const auto slot = slots.find({row.pool, row.number});
        if (row.state == shm::SlotState::kFree || slot == slots.end()) continue;
        const std::string differs =
            shown_difference(shown_of(core, state, row), shown_of(naive, *slot->second));
        if (!differs.empty()) return "worker " + slot->second->name + " " + differs;
    }
    return {};
}

}  // namespace dibs::naive
