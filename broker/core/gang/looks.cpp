// broker/core/gang/looks.cpp -- looks at applications with news at a turn's end.
//
// In the order of their numbers, so that what is decided does not depend on whose news came first.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::AppState;

namespace {

// Of those that run: the time of their placeholders.
bool is_over(const shm::AppRow& app) {
    return app.placeholder_until_ns == kNever && app.placeholder_timeout_ns != kNever;
}

}  // namespace

void Gangs::add_news(uint32_t row) {
    if (has_news_[row] != 0) return;
    has_news_[row] = 1;
    news_.push_back(row);
}

bool Gangs::run_looks() {
    early_grants().settle_fresh();
    for (const uint32_t app : blocked_)
        add_news(app);
    blocked_.clear();
    return run_app_timers() && go_on_ending() && look_at_all();
}

bool Gangs::run_app_timers() {
    while (!due.empty() && due.first().due_ns <= turn().now_ns) {
        if (turn().full()) return false;
        const uint32_t app = due.first().row;
        if (due.first().kind == TimerKind::kKept) {
            time_is_over(app);
            continue;
        }
        set_manager(app, kNoRow);  // its limit is over
        fail(app, AppState::kFailing, Reason::kManagerGone);
    }
    return true;
}

bool Gangs::look_at_all() {
    while (!news_.empty()) {
        looks_.swap(news_);
        std::sort(looks_.begin(), looks_.end(), [&](uint32_t one, uint32_t other) {
            return state.apps[one].number < state.apps[other].number;
        });
        for (const uint32_t app : looks_)
            has_news_[app] = 0;
        for (size_t at = 0; at < looks_.size(); ++at) {
            if (look_at(looks_[at])) continue;
            for (; at < looks_.size(); ++at)
                add_news(looks_[at]);
            looks_.clear();
            return false;
        }
        looks_.clear();
        if (!go_on_ending()) return false;
    }
    return true;
}

bool Gangs::look_at(uint32_t row) {
    if (turn().full()) return false;
    const shm::AppRow& app = state.apps[row];
    if (app.state == AppState::kAccepted && is_managed(app)) decide_on(row);
    if (app.state == AppState::kReserving) {
        if (pools().draining(app.pool) || !can_be_whole(row)) {
            reservation_fails(row, Reason::kReservationFailed);
        } else if (is_whole(row)) {
            open_gate(row);
        } else {
            go_on_reserving(row);
        }
    }
    const bool is_used = app.state == AppState::kRunning && app.placeholders == 0;
    if (is_used && app.placeholder_until_ns != kNever) set_timeout(row, kNever);
    // Those whose replacement has come to nothing since.
    if (app.placeholders != 0 && app.state == AppState::kRunning && is_over(app)) release_all(row);
    return held.head(row) == kNoRow || serve_held(row);
}

bool Gangs::is_whole(uint32_t row) const {
    bool lacks_none = true;
    each_group(row, [&](uint32_t group) {
        lacks_none = lacks_none && state.groups[group].bound >= state.groups[group].members;
    });
    return lacks_none;
}

// Its pool may have become too small for it.
bool Gangs::can_be_whole(uint32_t row) const {
    std::vector<Members> groups;
    each_group(row, [&](uint32_t group) {
        groups.push_back({state.groups[group].members, {}});
        std::copy(std::begin(state.groups[group].resource),
                  std::end(state.groups[group].resource),
                  groups.back().each.begin());
    });
    return size_refusal(state.apps[row].pool, groups) == Reason::kOk;
}

void Gangs::go_on_reserving(uint32_t row) {
    const shm::AppRow& app = state.apps[row];
    uint32_t& held_by = holder[app.pool];
    // It was whole, has lost a slot since, before its gate could open, and another one holds a part
    // by now: two would wait for each other.
    if (app.placeholders != 0 && held_by == kNoRow) held_by = row;
    if (app.placeholders != 0 && held_by != row) release_all(row);
    bool has_rows = true;
    each_group(row, [&](uint32_t group) {
        const shm::GroupRow& wanted = state.groups[group];
        if (wanted.bound >= wanted.members || !is_managed(app)) return;
        has_rows = has_rows && ask(group);
    });
    if (!has_rows) reservation_fails(row, Reason::kReservationFailed);
}

// S4.10.
void Gangs::decide_on(uint32_t row) {
    const shm::AppRow& app = state.apps[row];
    bool runs = app.first_group == kNoRow;
    for (uint32_t task = app_tasks.head(row); task != kNoRow && !runs; task = app_tasks.next(task))
        runs = state.tasks[task].state != shm::TaskState::kNew;
    if (runs) return set_state(row, AppState::kRunning);
    set_state(row, AppState::kReserving);
    const TimeNs timeout_ns = app.placeholder_timeout_ns;
    set_timeout(row, timeout_ns == kNever ? kNever : sum_or_never(turn().now_ns, timeout_ns));
}

void Gangs::set_timeout(uint32_t row, TimeNs until_ns) {
    shm::AppRow& app = edit().row(state.apps[row], 1);
    if (app.placeholder_until_ns != kNever) due.remove(TimerKind::kKept, row);
    put(app.placeholder_until_ns, until_ns);
    if (until_ns != kNever) due.set(TimerKind::kKept, row, until_ns, app.number);
}

// All placeholders hold a slot (S4.17). Those that nobody replaces have as long as they took.
void Gangs::open_gate(uint32_t row) {
    shm::AppRow& app = edit().row(state.apps[row], 1);
    put(app.flags, app.flags | uint32_t{shm::AppFlag::kGateOpen});
    if (holder[app.pool] == row) {  // else another one has come to hold a part meanwhile
        holder[app.pool] = kNoRow;
        matcher().touch(app.pool);
    }
    set_state(row, AppState::kRunning);
    const TimeNs timeout_ns = app.placeholder_timeout_ns;
    set_timeout(row, timeout_ns == kNever ? kNever : sum_or_never(turn().now_ns, timeout_ns));
}

// S4.21.
void Gangs::time_is_over(uint32_t row) {
    if (state.apps[row].state == AppState::kReserving) {
        return reservation_fails(row, Reason::kReservationTimeOut);
    }
    set_timeout(row, kNever);
    release_all(row);
    add_news(row);
}

void Gangs::reservation_fails(uint32_t row, Reason reason) {
    set_timeout(row, kNever);
    if (state.apps[row].style == shm::GangStyle::kHard) {
        return fail(row, AppState::kFailing, reason);
    }
    const bool is_late = reason == Reason::kReservationTimeOut;
    if (is_late) set_state(row, AppState::kResuming, reason);
    stop_holding(row);
    set_state(row, AppState::kRunning, is_late ? Reason::kOk : reason);
}

// Claims that do not wait, and that nothing has served in this turn.
bool Gangs::end_impatient_held() {
    std::sort(impatient_.begin(), impatient_.end(), [&](uint32_t one, uint32_t other) {
        return state.claims[one].arrival < state.claims[other].arrival;
    });
    while (!impatient_.empty()) {
        const uint32_t row = impatient_.front();
        const shm::ClaimRow& claim = state.claims[row];
        if (claim.state == shm::ClaimState::kHeld && (claim.flags & kImpatient) != 0) {
            if (turn().full()) return false;
            const bool cold = (claim.flags & shm::ClaimFlag::kCold) != 0;
            claims().end_claim(row,
                               Outcome::kRejected,
                               cold ? Reason::kCold : Reason::kBusy,
                               state.pools[claim.pool].retry_after_ns,
                               true);
        }
        impatient_.erase(impatient_.begin());
    }
    return true;
}

}  // namespace dibs::core
