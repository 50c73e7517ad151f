// broker/ctl/app/app_sheet.cpp -- fills the columns of applications, their groups and their tasks.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/app/app_sheet.hpp"

#include <algorithm>
#include <string>

#include "broker/ctl/admin/listing.hpp"
#include "broker/ctl/output/who.hpp"
#include "dibs/dibs.h"

namespace dibs::ctl {

namespace {

template <class T>
Cell known(bool is_known, const T& value) {
    return is_known ? Cell::of(value) : Cell();
}

Cell known_duration(bool is_known, uint64_t ns) {
    return is_known ? Cell::duration(ns) : Cell();
}

// Nobody can give a negative one.
Cell priority_cell(int32_t priority) {
    return Cell::of(static_cast<uint32_t>(std::max(priority, 0)));
}

std::string manager_of(const admin::ApplicationT& row) {
    if (row.unmanaged) return "none needed";
    return row.client.empty() ? "none" : row.client;
}

bool has_reason(int16_t reason) {
    return reason != DIBS_OK;
}

}  // namespace

Sheet application_sheet(const Applications& applications, const Viewpoint& from) {
    Sheet sheet{"dibs.applications/1",
                {{"application", "APPLICATION"},
                 {"number", ""},
                 {"pool", "POOL"},
                 {"state", "STATE"},
                 {"reason", "REASON", 1},
                 {"members", "MEMBERS", 3},
                 {"placeholders", "PLACEHOLDERS", 2},
                 {"tasks", "TASKS", 2},
                 {"claims", "WAIT", 3},
                 {"leases", "RUN", 3},
                 {"style", "STYLE", 7},
                 {"manager", "MANAGER", 4},
                 {"account", "ACCOUNT", 6},
                 {"uid", ""},
                 {"user", "USER", 4},
                 {"pid", ""},
                 {"age_ns", "AGE", 5},
                 {"since", ""},
                 {"left_ns", "TIME-OUT", 5},
                 {"manager_left_ns", ""},
                 {"ended_ns", ""},
                 {"whole", ""},
                 {"priority", ""},
                 {"tags", "TAGS", 9}}};
    for (const auto& row : applications) {
        const bool full = row->full;
        const uint64_t since = from.wall_ns - std::min(from.wall_ns, row->age_ns);
        const bool reserves = full && row->placeholders_left_ns != shm::kNever;
        const bool ended = full && row->ended_ns != 0;
        sheet.rows.push_back(
            {known(full, row->name),
             known(full, row->number),
             Cell::of(row->pool.empty() ? "-" : row->pool),
             known(full, row->state),
             full && has_reason(row->reason) ? Cell::of(dibs_reason_name(row->reason)) : Cell(),
             known(full, row->members),
             known(full, row->placeholders),
             known(full, row->tasks),
             known(full, row->claims),
             known(full, row->leases),
             full ? Cell::of(row->hard ? "hard" : "soft") : Cell(),
             known(full, manager_of(*row)),
             Cell::of(row->account),
             known(full, row->uid),
             full ? Cell::of(user_name(row->uid)) : Cell(),
             known(full && row->pid != 0, row->pid),
             Cell::duration(row->age_ns),
             Cell::instant(since),
             known_duration(reserves, row->placeholders_left_ns),
             known_duration(full && row->manager_left_ns != shm::kNever, row->manager_left_ns),
             known_duration(ended, row->ended_ns),
             known(full, row->gate_open),
             full ? priority_cell(row->priority) : Cell(),
             known(full && !row->tags.empty(), row->tags)});
    }
    return sheet;
}

Sheet group_sheet(const std::vector<std::unique_ptr<admin::GroupT>>& groups) {
    Sheet sheet{"dibs.groups/1",
                {{"group", "GROUP"},
                 {"members", "MEMBERS"},
                 {"bound", "PLACEHOLDERS"},
                 {"replaced", "REPLACED"},
                 {"resources", "RESOURCES"}}};
    for (const auto& row : groups) {
        sheet.rows.push_back(
            {Cell::of(row->name),
             Cell::of(row->members),
             Cell::of(row->bound),
             Cell::of(row->replaced),
             known(!row->resources.empty(), amounts_text(row->resources, row->amounts))});
    }
    return sheet;
}

Sheet task_sheet(const Tasks& tasks) {
    Sheet sheet{"dibs.tasks/1",
                {{"task", "TASK"},
                 {"number", ""},
                 {"group", "GROUP"},
                 {"state", "STATE"},
                 {"reason", "REASON", 1},
                 {"claim", "CLAIM"},
                 {"lease", "LEASE"},
                 {"priority", "PRIORITY", 2}}};
    for (const auto& row : tasks) {
        sheet.rows.push_back(
            {Cell::of(row->name),
             Cell::of(row->number),
             known(!row->group.empty(), row->group),
             Cell::of(row->state),
             has_reason(row->reason) ? Cell::of(dibs_reason_name(row->reason)) : Cell(),
             row->claim != 0 ? Cell::numbered(Letter::kClaim, row->claim) : Cell(),
             row->lease != 0 ? Cell::numbered(Letter::kLease, row->lease) : Cell(),
             priority_cell(row->priority)});
    }
    return sheet;
}

void add_parts(const admin::ApplicationT& application, const Tasks& tasks, Sheet* sheet) {
    sheet->columns.push_back({"groups", ""});
    sheet->columns.push_back({"task_list", ""});
    sheet->rows.front().push_back(Cell::of(group_sheet(application.groups)));
    sheet->rows.front().push_back(Cell::of(task_sheet(tasks)));
}

}  // namespace dibs::ctl
