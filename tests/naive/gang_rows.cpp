// tests/naive/gang_rows.cpp -- applications, groups and tasks by name, in both cores.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/gang_rows.hpp"

#include <map>
#include <string>

#include "broker/core/look.hpp"

namespace dibs::naive {

namespace {

using Picture = std::map<std::string, std::string>;

std::string name_of(const auto& row) {
    return {row.name, row.name_size};
}

std::string place(uint32_t uid, const std::string& name) {
    return "application " + std::to_string(uid) + "/" + name;
}

std::string number(const char* name, uint64_t value) {
    return std::string(" ") + name + " " + std::to_string(value);
}

std::string until(const char* name, TimeNs at) {
    return at == shm::kNever ? "" : number(name, at);
}

Picture picture_of(const core::Core& core) {
    Picture picture;
    const auto apps = core::Look::applications(core);
    const auto groups = core::Look::groups(core);
    const auto tasks = core::Look::tasks(core);
    for (uint32_t at = 0; at < apps.size(); ++at) {
        const shm::AppRow& app = apps[at];
        if (app.state == shm::AppState::kFree || app.state == shm::AppState::kGoing) continue;
        const std::string name = place(app.uid, name_of(app));
        picture[name] = number("number", app.number) +
                        number("state", static_cast<uint64_t>(app.state)) +
                        number("placeholders", app.placeholders) + number("tasks", app.tasks) +
                        number("claims", app.claims) + number("leases", app.leases) +
                        until("placeholders until", app.placeholder_until_ns) +
                        until("manager until", app.manager_until_ns);
        for (uint32_t row = app.first_group; row != shm::kNoRow; row = groups[row].next)
            picture[name + " group " + name_of(groups[row])] =
                number("members", groups[row].members) + number("bound", groups[row].bound) +
                number("asks", groups[row].claim != shm::kNoRow ? 1 : 0);
    }
    for (uint32_t at = 0; at < tasks.size(); ++at) {
        const shm::TaskRow& task = tasks[at];
        if (task.state == shm::TaskState::kFree) continue;
        const shm::AppRow& app = apps[task.app];
        if (app.state == shm::AppState::kFree || app.state == shm::AppState::kGoing) continue;
        picture[place(app.uid, name_of(app)) + " task " + name_of(task)] =
            number("number", task.number) + number("state", static_cast<uint64_t>(task.state));
    }
    return picture;
}

Picture picture_of(const NaiveCore& core) {
    Picture picture;
    for (const auto& [key, app] : core.model().applications) {
        const std::string name = place(app.uid, app.name);
        uint64_t claims = 0;
        uint64_t leases = 0;
        for (const auto& [at, task] : app.tasks) {
            claims += task.claim != 0 ? 1 : 0;
            leases += task.lease != 0 ? 1 : 0;
            picture[name + " task " + task.name] =
                number("number", task.number) + number("state", static_cast<uint64_t>(task.state));
        }
        picture[name] =
            number("number", app.number) + number("state", static_cast<uint64_t>(app.state)) +
            number("placeholders", app.placeholders()) + number("tasks", app.tasks.size()) +
            number("claims", claims) + number("leases", leases) +
            until("placeholders until", app.placeholder_until_ns) +
            until("manager until", app.manager_until_ns);
        for (const Group& group : app.groups)
            picture[name + " group " + group.name] =
                number("members", group.members) + number("bound", group.placeholders.size()) +
                number("asks", core.model().claims.contains(group.number) ? 1 : 0);
    }
    return picture;
}

}  // namespace

std::string gang_difference(const core::Core& real, const NaiveCore& naive) {
    const Picture is = picture_of(real);
    const Picture should = picture_of(naive);
    for (const auto& [name, what] : is) {
        const auto expected = should.find(name);
        if (expected == should.end()) return name + " is still there:" + what;
        if (expected->second != what) return name + ": core" + what + ", naive" + expected->second;
    }
    for (const auto& [name, what] : should)
        if (!is.contains(name)) return name + " is not there:" + what;
    return {};
}

}  // namespace dibs::naive
