// tests/naive/gang_turn.cpp -- what a turn's end decides of applications.
//
// What names a statement is written from it; what quotes is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "tests/naive/gangs.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using shm::AppState;
using shm::GangStyle;
using shm::Outcome;
using shm::Reason;
using shm::TaskState;

namespace {

struct Due {
    TimeNs at_ns;
    bool is_managers;
    uint64_t number;
    bool operator<(const Due& other) const {
        return std::tuple(at_ns, is_managers, number) <
               std::tuple(other.at_ns, other.is_managers, other.number);
    }
};

std::vector<Due> due_of(const Model& model) {
    std::vector<Due> timers;
    for (const auto& [number, app] : model.applications) {
        timers.push_back({app.placeholder_until_ns, false, number});
        timers.push_back({app.manager_until_ns, true, number});
    }
    std::erase_if(timers, [](const Due& due) { return due.at_ns == shm::kNever; });
    std::sort(timers.begin(), timers.end());
    return timers;
}

}  // namespace

TimeNs next_of_applications(const Model& model) {
    const std::vector<Due> timers = due_of(model);
    return timers.empty() ? shm::kNever : timers.front().at_ns;
}

// "By instant, a reservation before a manager's, by number."
void Gangs::run_timers() {
    for (;;) {
        const std::vector<Due> timers = due_of(m_);
        if (timers.empty() || timers.front().at_ns > m_.now) return;
        Application& app = m_.applications.at(timers.front().number);
        if (timers.front().is_managers) {
            go_to(app, AppState::kFailing, Reason::kManagerGone);
        } else {
            app.placeholder_until_ns = shm::kNever;
            time_is_over(app);
        }
    }
}

// S4.21, S4.22, S4.24.
void Gangs::time_is_over(Application& app) {
    if (app.state == AppState::kRunning) return release_all(app, false);
    if (app.style == GangStyle::kHard)
        return go_to(app, AppState::kFailing, Reason::kReservationTimeOut);
    go_to(app, AppState::kResuming, Reason::kReservationTimeOut);
    drop_asks(app);
    release_all(app, true);
    go_to(app, AppState::kRunning);
}

// "Hard: failing, soft: released, and running; both with reservation_failed."
void Gangs::reservation_fails(Application& app) {
    app.placeholder_until_ns = shm::kNever;
    if (app.style == GangStyle::kHard)
        return go_to(app, AppState::kFailing, Reason::kReservationFailed);
    drop_asks(app);
    release_all(app, true);
    go_to(app, AppState::kRunning, Reason::kReservationFailed);
}

// "Claims of its tasks end rejected (app ended), by task number."
void Gangs::end_claims(Application& app) {
    for (auto& [number, task] : app.tasks) {
        if (task.claim == 0) continue;
        core_.end_claim_and_free(task.claim, Outcome::kRejected, Reason::kAppEnded);
    }
}

// S4.25.
void Gangs::strip(Application& app) {
    drop_asks(app);
    release_all(app, true);
    end_claims(app);
    for (auto& [number, task] : app.tasks) {
        if (task.state != TaskState::kNew) continue;
        task.state = TaskState::kFailed;
        tell_task(app, task, TaskState::kNew);
    }
    if (app.state != AppState::kKilling) return;
    for (const auto& [number, task] : app.tasks) {
        if (task.lease == 0 || task.has_ended()) continue;
        if (m_.leases.at(task.lease).is_being_killed) continue;  // "that are not killing"
        core::Steer steer;
        steer.kind = core::Steer::Kind::kRelease;
        steer.lease = task.lease;
        core_.apply(steer, nullptr);
    }
}

// "Failing → failed, once that is done; killing → killed once the last has ended." One that was
// completed ends as a failed one. One that was removed leaves: "placeholders are released".
void Gangs::end_those_that_end() {
    std::vector<uint64_t> numbers;
    for (const auto& [number, app] : m_.applications)
        if (app.has_ended_or_is_ending()) numbers.push_back(number);
    for (const uint64_t number : numbers) {
        Application& app = m_.applications.at(number);
        if (app.state == AppState::kGoing) {
            free_rows_of(number);
            continue;
        }
        if (!std::exchange(app.is_stripped, true)) strip(app);
        const bool lives = std::any_of(app.tasks.begin(), app.tasks.end(), [](const auto& task) {
            return task.second.lease != 0;
        });
        if (app.state == AppState::kFailing) {
            go_to(app, AppState::kFailed, app.reason);
        } else if (app.state == AppState::kKilling && !lives) {
            go_to(app, AppState::kKilled);
        }
    }
    // One that has ended may have been too many.
    for (const uint64_t number : numbers) {
        const auto found = m_.applications.find(number);
        const bool is_there = found != m_.applications.end();
        if (is_there && found->second.state == AppState::kGoing) free_rows_of(number);
    }
}

// "An accepted application with a manager, or unmanaged: without groups, or with a task that is
// bound or has ended: running. Else reserving." S4.9, S4.10. True: something has changed.
bool Gangs::decide(Application& app) {
    const bool is_managed = app.manager != shm::kNoRow || app.is_unmanaged;
    if (app.state == AppState::kAccepted && is_managed) {
        const bool has_begun = std::any_of(app.tasks.begin(), app.tasks.end(), [](const auto& of) {
            return of.second.state != TaskState::kNew;
        });
        if (app.groups.empty() || has_begun) {
            go_to(app, AppState::kRunning);
        } else {
            go_to(app, AppState::kReserving);
            app.placeholder_until_ns = later(m_.now, app.placeholder_timeout_ns);
        }
        return true;
    }
    if (app.state == AppState::kReserving && reserve(app)) return true;
    // "While it runs"; "a held claim of a draining pool is rejected", whatever its application
    // does.
    const bool runs = app.state == AppState::kRunning;
    if (!runs && !core_.is_draining(app.pool)) return false;
    const bool is_late = runs && app.placeholder_until_ns == shm::kNever &&
                         later(m_.now, app.placeholder_timeout_ns) != shm::kNever;
    if (is_late) release_all(app, false);
    const bool changed = look_at_held(app);
    if (runs && app.placeholders() == 0) app.placeholder_until_ns = shm::kNever;
    return changed;
}

// S4.17: the gate. "The time-out begins again then, for placeholders that nobody replaces."
bool Gangs::reserve(Application& app) {
    if (!core_.pool_lives(app.pool) || core_.is_draining(app.pool) ||
        size_refusal(app.pool, app.groups) != Reason::kOk) {
        reservation_fails(app);
        return true;
    }
    if (app.is_whole()) {
        go_to(app, AppState::kRunning);
        app.placeholder_until_ns = later(m_.now, app.placeholder_timeout_ns);
        return true;
    }
    const bool is_managed = app.manager != shm::kNoRow || app.is_unmanaged;
    return is_managed && ask(app);
}

// "Each group that lacks placeholders has a claim of its own number for them. No claim row for an
// ask: the reservation fails."
bool Gangs::ask(Application& app) {
    bool changed = false;
    for (const Group& group : app.groups) {
        const uint64_t missing = group.members - group.placeholders.size();
        const auto known = m_.claims.find(group.number);
        if (missing == 0) continue;
        if (known != m_.claims.end()) {
            changed = changed || known->second.units != missing;
            known->second.units = static_cast<uint16_t>(missing);
            continue;
        }
        if (core_.claim_rows_used() >= core_.limits_.claims) {
            reservation_fails(app);
            return true;
        }
        Claim asked;
        asked.number = group.number;
        asked.session = shm::kNoRow;
        asked.units = static_cast<uint16_t>(missing);
        asked.pool = app.pool;
        asked.priority = app.priority;
        asked.wants_part = !group.resource.empty();
        asked.least = asked.most = group.resource;
        asked.enqueued_ns = m_.now;
        asked.application = app.number;
        m_.claims[asked.number] = asked;
        changed = true;
    }
    return changed;
}

bool Gangs::look() {
    end_those_that_end();
    bool changed = false;
    std::vector<uint64_t> numbers;
    for (const auto& [number, app] : m_.applications)
        numbers.push_back(number);
    for (const uint64_t number : numbers) {
        while (m_.applications.contains(number) && decide(m_.applications.at(number)))
            changed = true;
    }
    end_those_that_end();
    return changed;
}

// "One that does not wait and is still held at the turn's end is rejected (busy, cold)."
void Gangs::reject_held() {
    const std::map<uint64_t, Claim> claims = m_.claims;
    for (const auto& [number, claim] : claims)
        if (claim.is_held_back && claim.is_impatient) core_.reject_impatient(number);
}

}  // namespace dibs::naive
