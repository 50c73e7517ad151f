// broker/core/gang/recovery.cpp -- rebuilds what is derived of applications, and checks it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::AppState;
using shm::ClaimState;
using shm::TaskState;

namespace {

// Rows in use, by number.
template <class Row>
std::vector<uint32_t> by_number(const Rows<Row>& rows) {
    std::vector<uint32_t> found;
    for (uint32_t row = 0; row < rows.size(); ++row)
        if (static_cast<int>(rows[row].state) != 0) found.push_back(row);
    std::sort(found.begin(), found.end(), [&](uint32_t one, uint32_t other) {
        return rows[one].number < rows[other].number;
    });
    return found;
}

}  // namespace

void Gangs::placeholder_is_found(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    uint32_t behind = placeholders.head(slot.group);
    while (behind != kNoRow && state.slots[behind].index < slot.index)
        behind = placeholders.next(behind);
    placeholders.insert_before(slot.group, row, behind);
    ++linked;
}

// Claims and slots have been found.
void Gangs::rebuild_gangs() {
    for (const uint32_t row : by_number(state.tasks)) {
        const shm::TaskRow& task = state.tasks[row];
        task_names.insert(task_hash(task.app, {task.name, task.name_size}), row);
        app_tasks.push_back(task.app, row);
        if (task.lease != kNoRow) task_of[task.lease] = row;
    }
    std::vector<uint32_t> past;
    for (const uint32_t row : by_number(state.apps)) {
        const shm::AppRow& app = state.apps[row];
        if (app.state == AppState::kGoing) {
            ending_.push_back(row);
            continue;
        }
        app_names.insert(app_hash(app.uid, {app.name, app.name_size}), row);
        if (app.manager != kNoRow) session_apps.push_back(app.manager, row);
        if (has_ended(app.state)) {
            past.push_back(row);
            ending_.push_back(row);
            continue;
        }
        pool_apps.push_back(app.pool, row);
        if (is_ending(app.state)) ending_.push_back(row);
        add_news(row);
        const bool is_part = app.placeholders != 0 && !is_whole(row);
        if (app.state == AppState::kReserving && is_part) holder[app.pool] = row;
        if (app.placeholder_until_ns != kNever) {
            due.set(TimerKind::kKept, row, app.placeholder_until_ns, app.number);
        }
        if (app.manager_until_ns != kNever) {
            due.set(TimerKind::kLease, row, app.manager_until_ns, app.number);
        }
    }
    std::stable_sort(past.begin(), past.end(), [&](uint32_t one, uint32_t other) {
        return state.apps[one].ended_ns < state.apps[other].ended_ns;
    });
    for (const uint32_t row : past)
        ended_apps.push_back(0, row);
}

void Gangs::check_gangs(std::vector<std::string>* wrongs) const {
    const auto expect = [&](bool holds, uint32_t app, const char* what) {
        if (holds) return;
        wrongs->push_back("application " + std::to_string(state.apps[app].number) + ": " + what);
    };
    uint32_t placeholders_of_all = 0;
    for (uint32_t row = 0; row < state.apps.size(); ++row) {
        const shm::AppRow& app = state.apps[row];
        if (app.state == AppState::kFree || app.state == AppState::kGoing) continue;
        expect(find(app.uid, {app.name, app.name_size}) == row, row, "its name does not find it");
        uint32_t tasks = 0;
        uint32_t claims = 0;
        uint32_t leases = 0;
        for (uint32_t task = app_tasks.head(row); task != kNoRow; task = app_tasks.next(task)) {
            const shm::TaskRow& found = state.tasks[task];
            ++tasks;
            claims += found.claim != kNoRow ? 1 : 0;
            leases += found.lease != kNoRow ? 1 : 0;
            expect(found.app == row, row, "another's task is listed");
            if (found.claim != kNoRow) {
                expect(state.claims[found.claim].task == task, row, "a task's claim is another's");
            }
            if (found.lease != kNoRow) {
                expect(task_of[found.lease] == task && state.leases[found.lease].of_task == 1,
                       row,
                       "a task's lease does not say so");
            }
        }
        expect(tasks == app.tasks, row, "its tasks are miscounted");
        expect(claims == app.claims, row, "its claims are miscounted");
        expect(leases == app.leases, row, "its leases are miscounted");
        uint32_t bound = 0;
        each_group(row, [&](uint32_t group) {
            const shm::GroupRow& found = state.groups[group];
            uint32_t slots = 0;
            for (uint32_t slot = placeholders.head(group); slot != kNoRow;
                 slot = placeholders.next(slot))
                ++slots;
            expect(slots == found.bound, row, "placeholders of a group are miscounted");
            bound += slots;
            const bool asks =
                app.state == AppState::kReserving && is_managed(app) && found.bound < found.members;
            if (!has_news()) {
                expect((found.claim != kNoRow) == asks, row, "what it asks for is not missing");
            }
        });
        expect(bound == app.placeholders, row, "its placeholders are miscounted");
        placeholders_of_all += bound;
        uint32_t waiting = 0;
        for (uint32_t claim = held.head(row); claim != kNoRow; claim = held.next(claim)) {
            ++waiting;
            expect(state.claims[claim].state == ClaimState::kHeld, row, "it holds another claim");
        }
        expect(waiting <= app.claims, row, "it holds claims that are not its");
        if (turn().cut || has_news()) continue;
        const bool reserves = app.state == AppState::kReserving;
        expect(!reserves || turn().now_ns < app.placeholder_until_ns, row, "it reserves too long");
        expect(!reserves || !is_whole(row), row, "it is whole, and does not run");
        expect(bound == 0 || reserves || app.state == AppState::kRunning, row, "it holds slots");
        const bool is_holder = app.pool != shm::kNoPool && holder[app.pool] == row;
        expect(is_holder == (reserves && bound != 0), row, "another one holds a part");
    }
    if (placeholders_of_all != linked) wrongs->push_back("placeholders are miscounted");
}

}  // namespace dibs::core
