// broker/core/gang/endings.cpp -- ends applications, over as many turns as their tasks take.
//
// An application that ends, or is removed, stands in a list until no claim, no new task and, being
// removed, no row of it is left: what it still has says where to go on.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::AppState;
using shm::TaskState;

namespace {

// Nothing of it lives, and all of its end has been told.
bool is_only_remembered(const shm::AppRow& ended, TimeNs now_ns) {
    return ended.claims == 0 && ended.leases == 0 && ended.ended_ns < now_ns;
}

}  // namespace

// Its asks and placeholders end here, those that are being replaced, too; claims and tasks follow.
void Gangs::stop_holding(uint32_t row) {
    each_group(row, [&](uint32_t group) {
        drop_ask(group);
        while (placeholders.head(group) != kNoRow)
            put_back(placeholders.head(group));
    });
    const uint32_t pool = state.apps[row].pool;
    if (pool != shm::kNoPool && holder[pool] == row) holder[pool] = kNoRow;
}

void Gangs::begin_to_end(uint32_t row) {
    set_timeout(row, kNever);
    set_manager_limit(row, kNever);
    if (std::find(ending_.begin(), ending_.end(), row) == ending_.end()) ending_.push_back(row);
}

void Gangs::fail(uint32_t row, AppState to, Reason reason) {
    set_state(row, to, reason);
    begin_to_end(row);
}

Reason Gangs::complete(uint32_t row) {
    if (state.apps[row].state != AppState::kRunning) return Reason::kState;
    set_state(row, AppState::kCompleted);
    leave(row);
    begin_to_end(row);
    return Reason::kOk;
}

// S4.3.
Reason Gangs::remove(uint32_t row, SessionId by, uint64_t* left) {
    for (uint32_t task = app_tasks.head(row); task != kNoRow; task = app_tasks.next(task))
        if (!has_ended(state.tasks[task].state)) ++*left;
    if (*left != 0) return Reason::kState;
    const AppState now = state.apps[row].state;
    const bool is_news = !has_ended(now) && state.apps[row].manager != by;
    if (is_news) tell_state(row, now, AppState::kGoing, Reason::kOk);
    forget(row);
    return Reason::kOk;
}

// It has ended: it serves no task any more, and is remembered.
void Gangs::leave(uint32_t row) {
    shm::AppRow& app = edit().row(state.apps[row], 1U | 1U << 1U);
    put(app.ended_ns, turn().now_ns);
    pool_apps.remove(app.pool, row);
    if (!pools().pool_lives(app.pool)) put(app.pool, shm::kNoPool);
    // By number within an instant: a restart finds them so.
    uint32_t behind = kNoRow;
    for (uint32_t other = ended_apps.tail(0);
         other != kNoRow && state.apps[other].ended_ns == app.ended_ns &&
         state.apps[other].number > app.number;
         other = ended_apps.previous(other))
        behind = other;
    ended_apps.insert_before(0, row, behind);
    uint32_t of_user = 0;
    uint32_t oldest = kNoRow;
    for (uint32_t other = ended_apps.head(0); other != kNoRow; other = ended_apps.next(other)) {
        if (state.apps[other].uid != app.uid) continue;
        ++of_user;
        const bool is_over = is_only_remembered(state.apps[other], turn().now_ns);
        if (oldest == kNoRow && is_over) oldest = other;
    }
    const uint32_t most = std::min(shm::kEndedAppsMax, state.apps.size() / 4);
    if (of_user <= std::max(most, 1U) || oldest == kNoRow) return;
    forget(oldest);
}

// Called before a task, or an application with so many groups, takes its rows. Where few are free,
// the application that ended first is forgotten: of this user, or else of any. Its rows are free at
// the turn's end.
void Gangs::make_room(uint32_t uid, size_t groups) {
    const shm::CountersRow& counters = *state.counters;
    const auto are_few = [](uint32_t free, uint32_t rows) { return free <= rows / 8; };
    if (!are_few(counters.apps_free, state.apps.size()) && counters.groups_free >= groups &&
        !are_few(counters.groups_free, state.groups.size()) &&
        !are_few(counters.tasks_free, state.tasks.size())) {
        return;
    }
    uint32_t oldest = kNoRow;
    for (uint32_t app = ended_apps.head(0); app != kNoRow; app = ended_apps.next(app)) {
        const bool is_own = state.apps[app].uid == uid;
        if (!is_only_remembered(state.apps[app], turn().now_ns)) continue;
        if (is_own || oldest == kNoRow) oldest = app;
        if (is_own) break;
    }
    if (oldest != kNoRow) forget(oldest);
}

// Its name is free, its rows follow.
void Gangs::forget(uint32_t row) {
    shm::AppRow& app = edit().row(state.apps[row], 1);
    app_names.remove(app_hash(app.uid, {app.name, app.name_size}), row);
    (has_ended(app.state) ? ended_apps : pool_apps)
        .remove(has_ended(app.state) ? 0 : app.pool, row);
    set_manager(row, kNoRow);
    put(app.state, AppState::kGoing);
    begin_to_end(row);
}

bool Gangs::go_on_ending() {
    std::sort(ending_.begin(), ending_.end(), [&](uint32_t one, uint32_t other) {
        return state.apps[one].number < state.apps[other].number;
    });
    while (!ending_.empty()) {
        const uint32_t row = ending_.front();
        const AppState now = state.apps[row].state;
        const bool goes = now == AppState::kGoing;
        if (turn().full()) return false;
        stop_holding(row);
        if (!(goes ? free_rows_of(row) : end_tasks(row))) return false;
        ending_.erase(ending_.begin());
        if (goes || !is_ending(now)) continue;
        if (now == AppState::kKilling && state.apps[row].leases != 0) continue;
        set_state(row,
                  now == AppState::kKilling ? AppState::kKilled : AppState::kFailed,
                  static_cast<Reason>(state.apps[row].reason));
        leave(row);
    }
    return true;
}

// Claims of tasks, then tasks without one; of a killed application then leases.
bool Gangs::end_tasks(uint32_t row) {
    const auto each_task = [&](const auto& visit) {
        for (uint32_t task = app_tasks.head(row); task != kNoRow; task = app_tasks.next(task)) {
            if (has_ended(state.tasks[task].state)) continue;
            if (turn().full()) return false;
            visit(task, state.tasks[task]);
        }
        return true;
    };
    const auto end_claim_of = [&](uint32_t, const shm::TaskRow& task) {
        if (task.claim != kNoRow) end_claim(task.claim, Outcome::kRejected, Reason::kAppEnded);
    };
    const auto end_new = [&](uint32_t at, const shm::TaskRow& task) {
        if (task.state != TaskState::kNew) return;
        const auto reason = static_cast<Reason>(state.apps[row].reason);
        const std::string_view name{task.name, task.name_size};
        Decision& told = tell_of(DecisionKind::kTask, row, name);
        told.from_class = static_cast<uint8_t>(TaskState::kNew);
        told.to_class = static_cast<uint8_t>(TaskState::kFailed);
        told.reason = reason;
        end_task(at, TaskState::kFailed, reason);
    };
    const auto end_lease_of = [&](uint32_t, const shm::TaskRow& task) {
        if (task.lease == kNoRow) return;
        if (state.leases[task.lease].state != shm::LeaseState::kKilling) revoke(task.lease);
    };
    if (!each_task(end_claim_of) || !each_task(end_new)) return false;
    return state.apps[row].state != AppState::kKilling || each_task(end_lease_of);
}

// As an administrator's; one whose holder is being killed ends with its death.
void Gangs::revoke(uint32_t lease) {
    TimeNs unused = 0;
    const Steer steer{.kind = Steer::Kind::kRelease,
                      .lease = row_id(state.leases[lease].head.generation, lease)};
    (void)leases().apply(steer, &unused);
}

bool Gangs::free_rows_of(uint32_t row) {
    while (app_tasks.head(row) != kNoRow) {
        if (turn().full()) return false;
        free_task(app_tasks.head(row));
    }
    each_group(row, [&](uint32_t group) {
        put(edit().row(state.groups[group], 1).state, 0);
        free_rows().free_group_row(group);
    });
    const shm::AppRow& app = state.apps[row];
    arena().free(app.tags, app.tags_size);
    free_rows().free_app_row(row);
    return true;
}

}  // namespace dibs::core
