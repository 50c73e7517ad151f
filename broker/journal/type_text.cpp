// broker/journal/type_text.cpp -- writes what an elastic pool has of a type of workers, as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/look.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/journal/state_text.hpp"

namespace dibs::ctl {

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
