// broker/journal/gang_text.cpp -- writes applications, their groups and their tasks as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/look.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/journal/state_rows.hpp"
#include "broker/journal/state_text.hpp"

namespace dibs::ctl {
namespace {

using core::Core;
using core::Look;

std::string_view name_of(const auto& row) {
    return {row.name, row.name_size};
}

std::string_view name_of_group(const Core& core, uint32_t row) {
    return name_of(Look::groups(core)[row]);
}

void write_groups(JsonText& json, const Core& core, const shm::AppRow& app) {
    json.open_list("groups");
    for (uint32_t row = app.first_group; row != shm::kNoRow;) {
        const shm::GroupRow& group = Look::groups(core)[row];
        json.open_object();
        json.text("name", name_of(group));
        json.number("members", group.members);
        json.number("bound", group.bound);
        json.number("replaced", group.replaced);
        json.close_object();
        row = group.next;
    }
    json.close_list();
}

std::string application_line(const Core& core, const NameTables& names, uint32_t row) {
    const shm::AppRow& app = Look::applications(core)[row];
    const auto flag = [&](uint8_t bit) { return (app.flags & bit) != 0; };
    const auto time = [](JsonText& json, std::string_view key, uint64_t time_ns) {
        if (time_ns != shm::kNever) json.number(key, time_ns);
    };
    JsonText json;
    json.open_object();
    json.open_object("application");
    json.text("application", name_of(app));
    json.number("uid", app.uid);
    json.text("state", app_state_word(app.state));
    json.number("number", app.number);
    if (app.pool != shm::kNoPool) json.text("pool", names.pool(app.pool));
    if (app.manager != shm::kNoRow) json.text("session", names.session(app.manager));
    json.signed_number("priority", app.priority);
    json.text("style", app.style == shm::GangStyle::kHard ? "hard" : "soft");
    if (app.reason != 0) json.text("reason", reason_word(static_cast<shm::Reason>(app.reason)));
    json.truth("gate_open", flag(shm::AppFlag::kGateOpen));
    json.truth("unmanaged", flag(shm::AppFlag::kUnmanaged));
    time(json, "placeholder_until_ns", app.placeholder_until_ns);
    time(json, "manager_until_ns", app.manager_until_ns);
    json.number("created_ns", app.created_ns);
    if (app.ended_ns != 0) time(json, "ended_ns", app.ended_ns);
    if (app.tags != shm::kNoRow) {
        std::string tags(app.tags_size, '\0');
        core.copy_chain(app.tags, app.tags_size, reinterpret_cast<std::byte*>(tags.data()));
        json.text("tags", tags);
    }
    json.number("placeholders", app.placeholders);
    json.number("tasks", app.tasks);
    json.number("claims", app.claims);
    json.number("leases", app.leases);
    write_groups(json, core, app);
    json.close_object();
    json.close_object();
    return json.line();
}

// As it is seen: what its claim does is its state until that has ended.
shm::TaskState state_of(const Core& core, const shm::TaskRow& task) {
    const bool is_new = task.state == shm::TaskState::kNew && task.claim != shm::kNoRow;
    if (!is_new) return task.state;
    const bool reserved = core.claim(task.claim).state == shm::ClaimState::kReserved;
    return reserved ? shm::TaskState::kAllocated : shm::TaskState::kScheduling;
}

std::string task_line(const Core& core, const NameTables& names, uint32_t row) {
    const shm::TaskRow& task = Look::tasks(core)[row];
    const shm::AppRow& app = Look::applications(core)[task.app];
    JsonText json;
    json.open_object();
    json.open_object("task");
    json.text("application", name_of(app));
    json.number("uid", app.uid);
    json.text("task", name_of(task));
    json.text("state", task_state_word(state_of(core, task)));
    json.number("number", task.number);
    if (task.group != shm::kNoRow) json.text("group", name_of_group(core, task.group));
    json.signed_number("priority", task.priority);
    if (task.claim != shm::kNoRow) json.text("claim", names.claim(core.claim(task.claim).arrival));
    if (task.lease != shm::kNoRow) json.text("claim", names.claim(core.lease(task.lease).arrival));
    if (task.reason != 0) json.text("reason", reason_word(static_cast<shm::Reason>(task.reason)));
    json.close_object();
    json.close_object();
    return json.line();
}

uint32_t find_application(const Core& core, uint32_t uid, const std::string& name) {
    const auto& apps = Look::applications(core);
    for (uint32_t row = 0; row < apps.size(); ++row) {
        const bool lives =
            apps[row].state != shm::AppState::kFree && apps[row].state != shm::AppState::kGoing;
        if (lives && apps[row].uid == uid && name_of(apps[row]) == name) return row;
    }
    return shm::kNoRow;
}

uint32_t find_task(const Core& core, uint32_t app, const std::string& name) {
    const auto& tasks = Look::tasks(core);
    for (uint32_t row = 0; row < tasks.size(); ++row) {
        const bool lives = tasks[row].state != shm::TaskState::kFree;
        if (lives && tasks[row].app == app && name_of(tasks[row]) == name) return row;
    }
    return shm::kNoRow;
}

}  // namespace

std::string application_text(const Core& core,
                             const NameMap& map,
                             uint32_t uid,
                             const std::string& application) {
    const uint32_t row = find_application(core, uid, application);
    if (row != shm::kNoRow) return application_line(core, map.names(), row);
    JsonText json;
    json.open_object();
    json.open_object("application");
    json.text("application", application);
    json.number("uid", uid);
    json.text("state", "none");
    json.close_object();
    json.close_object();
    return json.line();
}

std::string task_text(const Core& core,
                      const NameMap& map,
                      uint32_t uid,
                      const std::string& application,
                      const std::string& task) {
    const uint32_t app = find_application(core, uid, application);
    const uint32_t row = app == shm::kNoRow ? shm::kNoRow : find_task(core, app, task);
    if (row != shm::kNoRow) return task_line(core, map.names(), row);
    JsonText json;
    json.open_object();
    json.open_object("task");
    json.text("application", application);
    json.number("uid", uid);
    json.text("task", task);
    json.text("state", "none");
    json.close_object();
    json.close_object();
    return json.line();
}

void add_applications(const Core& core, const NameTables& names, std::vector<std::string>* lines) {
    const auto& apps = Look::applications(core);
    const auto& tasks = Look::tasks(core);
    for (const uint32_t row : rows_by(apps.size(), [&](uint32_t row) {
             return std::pair(apps[row].state != shm::AppState::kFree, apps[row].number);
         }))
        lines->push_back(application_line(core, names, row));
    for (const uint32_t row : rows_by(tasks.size(), [&](uint32_t row) {
             const uint64_t number = tasks[row].number;
             const bool there = tasks[row].state != shm::TaskState::kFree;
             return std::pair(there, std::pair(there ? apps[tasks[row].app].number : 0, number));
         }))
        lines->push_back(task_line(core, names, row));
}

void write_placeholder(JsonText& json, const Core& core, const shm::SlotRow& slot) {
    if (slot.group == shm::kNoRow || Look::is_dispatched(core, slot.pool)) return;
    json.text("group", name_of_group(core, slot.group));
    json.number("index", slot.index);
}

void write_member(JsonText& json, const Core& core, const shm::ClaimRow& claim) {
    if (claim.task != shm::kNoRow) {
        const shm::TaskRow& task = Look::tasks(core)[claim.task];
        json.text("application", name_of(Look::applications(core)[task.app]));
        json.text("task", name_of(task));
        if (task.group != shm::kNoRow) json.text("group", name_of_group(core, task.group));
    } else if (claim.group != shm::kNoRow) {
        const shm::GroupRow& group = Look::groups(core)[claim.group];
        json.text("application", name_of(Look::applications(core)[group.app]));
        json.text("group", name_of(group));
    }
}

}  // namespace dibs::ctl
