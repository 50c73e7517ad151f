// broker/journal/entry_text.cpp -- writes the entries and the workers of dispatched pools, and what
// an elastic pool has of a type of workers, as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/look.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/journal/state_text.hpp"

namespace dibs::ctl {
namespace {

using core::Core;
using core::Look;
using shm::EntryState;

std::string_view name_of(const shm::EntryRow& entry) {
    return {entry.name, entry.name_size};
}

std::string_view state_word(const shm::EntryRow& entry) {
    constexpr std::string_view kWords[] = {
        "none", "absent", "waiting", "locked", "running", "complete", "cancelled"};
    const bool is_held = entry.state == EntryState::kQueued && entry.priority < 1;
    return is_held ? "held" : kWords[static_cast<size_t>(entry.state)];
}

std::string_view operation_word(const shm::EntryRow& entry) {
    constexpr std::string_view kWords[] = {"none", "lock", "unlock", "kill"};
    const bool starts = (entry.flags & shm::EntryFlag::kStarting) != 0;
    return starts && entry.op == shm::EntryOp::kNone ? "start"
                                                     : kWords[static_cast<size_t>(entry.op)];
}

void write_worker(JsonText& json,
                  const Core& core,
                  const NameTables& names,
                  const shm::EntryRow& entry) {
    if (entry.worker == shm::kNoRow) return;
    const shm::SlotRow& slot = core.slot(entry.worker);
    const auto named = names.slots.find({slot.pool, slot.number});
    named != names.slots.end() ? json.text("worker", named->second)
                               : json.number("worker", slot.number);
}

std::string entry_line(const Core& core, const NameTables& names, uint32_t row) {
    const shm::EntryRow& entry = Look::entry(core, row);
    JsonText json;
    json.open_object();
    json.open_object("claim");
    json.text("claim", name_of(entry));
    json.text("pool", names.pool(entry.pool));
    json.text("state", state_word(entry));
    json.number("position", Look::entry_position(core, row));
    json.text("reason", entry_reason_word(Look::entry_reason(core, row)));
    json.number("lock_count", entry.lock_count);
    json.text("operation", operation_word(entry));
    write_worker(json, core, names, entry);
    if (entry.exited_ns != shm::kNever) json.number("exited_ns", entry.exited_ns);
    json.close_object();
    json.close_object();
    return json.line();
}

}  // namespace

std::string_view entry_reason_word(core::EntryReason reason) {
    constexpr std::string_view kWords[] = {"none",
                                           "running",
                                           "exited",
                                           "preparing",
                                           "old_process",
                                           "held",
                                           "reading",
                                           "supervisor_limit",
                                           "limit",
                                           "at_quota",
                                           "at_capacity",
                                           "no_provisioner",
                                           "being_made",
                                           "starts"};
    return kWords[static_cast<size_t>(reason)];
}

std::string entry_text(const Core& core,
                       const NameMap& map,
                       const std::string& pool,
                       const std::string& entry) {
    const uint32_t pool_row = core.find_pool(pool);
    if (pool_row == shm::kNoRow) throw JournalError("there is no pool " + json_string(pool));
    const uint32_t row = Look::find_entry(core, pool_row, entry);
    if (row != shm::kNoRow) return entry_line(core, map.names(), row);
    JsonText json;
    json.open_object();
    json.open_object("claim");
    json.text("claim", entry);
    json.text("pool", pool);
    json.text("state", "none");
    json.close_object();
    json.close_object();
    return json.line();
}

void add_entries(const Core& core, const NameTables& names, std::vector<std::string>* lines) {
    for (uint32_t pool = 0; pool < core.pools(); ++pool) {
        if (!core.pool_lives(pool) || !Look::is_dispatched(core, pool)) continue;
        for (const uint32_t row : Look::entries(core, pool))
            lines->push_back(entry_line(core, names, row));
    }
}

void write_dispatched_worker(JsonText& json, const Core& core, uint32_t row) {
    constexpr std::string_view kBehaviours[] = {"run", "hold", "drain"};
    const shm::SlotRow& slot = core.slot(row);
    const bool said_ready = (slot.flags & shm::SlotFlag::kSaidReady) != 0;
    const bool is_idle = slot.state == shm::SlotState::kIdle || said_ready;
    const bool drains = slot.behaviour == shm::Behaviour::kDrain;
    json.text("state",
              slot.state == shm::SlotState::kUnknown ? "unknown"
              : slot.entry != shm::kNoRow            ? "running"
              : drains                               ? "shutdown"
              : is_idle                              ? "idle"
                                                     : "booting");
    if (slot.entry != shm::kNoRow) json.text("claim", name_of(Look::entry(core, slot.entry)));
    json.text("behaviour", kBehaviours[static_cast<size_t>(slot.behaviour)]);
    json.number("confirmed_ns", slot.confirmed_ns);
    json.number("modified_ns", slot.modified_ns);
}

std::string type_text(const core::Core& core, const std::string& pool, const std::string& type) {
    const uint32_t pool_row = core.find_pool(pool);
    if (pool_row == shm::kNoRow) throw JournalError("there is no pool " + json_string(pool));
    const uint32_t row = core::Look::find_type(core, pool_row, type);
    if (row == shm::kNoRow) throw JournalError("there is no type " + json_string(type));
    const core::Look::OfType has = core::Look::of_type(core, row);
    JsonText json;
    json.open_object();
    json.open_object("type");
    json.text("type", type);
    json.text("pool", pool);
    json.number("unallocated", has.unallocated);
    json.truth("at_quota", has.at_quota);
    json.truth("at_capacity", has.at_capacity);
    json.number("creating", has.creating);
    json.open_list("workers");
    for (const uint32_t workers : has.workers)
        json.number({}, workers);
    json.close_list();
    json.close_object();
    json.close_object();
    return json.line();
}

void write_elastic(JsonText& json, const core::Core& core, uint32_t pool) {
    const shm::ElasticRow& row = core::Look::elastic(core, pool);
    if (row.workers_max == 0) return;
    json.number("ordered", row.ordered);
    json.number("limit", row.limit);
    json.number("within_quota", row.within_quota);
    if (!core::Look::is_dispatched(core, pool)) return;
    constexpr std::string_view kPhases[] = {"reading", "stale", "serving"};
    json.text("phase", kPhases[static_cast<size_t>(row.phase)]);
    json.number("supervisor_limit", core::Look::supervisor_limit(core, pool));
}

}  // namespace dibs::ctl
