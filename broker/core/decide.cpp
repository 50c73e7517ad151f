// broker/core/decide.cpp -- ends a turn:
// work of earlier turns, due timers, the pass, then the news.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

void Turn::result(SessionId session, uint64_t user_data, Reason reason, uint64_t value) {
    Decision& told = decide_that(DecisionKind::kResult);
    told.session = session;
    told.user_data = user_data;
    told.reason = reason;
    told.value = value;
}

// Slots that were kept for a while are idle again, before anything can queue behind them: at the
// opening of a turn. What a turn itself has kept too long, or its log had no room for, comes first
// among the timers.
bool Turn::sweep_kept() {
    while (!slots().kept_slots.empty() && slots().kept_slots.first().due_ns <= now_ns) {
        if (full()) return false;
        const uint32_t slot = slots().kept_slots.first().row;
        assert(is_kept(state.slots[slot]));
        slots().kept_slots.remove(TimerKind::kKept, slot);
        slots().make_idle(slot);
    }
    return true;
}

bool Turn::run_timers() {
    if (!sweep_kept()) return false;
    while (!timers.empty() && timers.first().due_ns <= now_ns) {
        if (full()) return false;
        run_timer(timers.first());
    }
    return true;
}

void Turn::run_timer(const Timer& timer) {
    const uint32_t row = timer.row;
    switch (timer.kind) {
        case TimerKind::kDeadline:
            return claims().claim_deadline(row);
        case TimerKind::kReservation:
            return claims().reservation_over(row);
        case TimerKind::kKept:
            break;  // has its own
        case TimerKind::kLease:
        case TimerKind::kGrace:
            return leases().lease_expired(row);
    }
}

// Applications are looked at before each pass, and again if a pass has made news of one, or has had
// the lease row given back that one lacked.
bool Turn::serve_all() {
    do {
        if (!gangs().go_on() || !matcher().pass()) return false;
    } while (gangs().has_news() || gangs().has_unblocked());
    return gangs().end_impatient();
}

void Core::decide() {
    Parts& parts = *parts_;
    // Each step is taken up again in the next turn if the log nears its end.
    parts.cut = !((!parts.book || parts.go_on_pulling()) && parts.bury_the_dying() &&
                  parts.go_on_draining() && parts.grow_pools() && parts.shrink_pools() &&
                  parts.run_timers() && parts.run_due() &&
                  (!parts.forgetting || parts.forget_workers()) && parts.serve_all());
    if (parts.cut) return parts.settle_fresh();
    parts.passes_again = !parts.dirty.empty();
    parts.impatient.clear();
    parts.cut = !parts.tell_news();
}

// What has been decided once is not decided again, so a cut needs no place kept.
bool Turn::tell_news() {
    bool some_drain = false;  // one walk for both, because most turns have no news
    bool some_moved = false;
    for (uint32_t pool = touched.first(0); pool != kNoRow; pool = touched.first(pool + 1)) {
        some_drain = some_drain || state.pools[pool].state == shm::PoolState::kDraining;
        some_moved = some_moved || pools().demand_moved(pool);
    }
    if (some_drain && !tell_drained()) return false;
    if (state.counters->draining == 1) pools().tell_all_drained();
    if (book() && !passes_again && !reports().tell_pulled()) return false;
    if (passes_again) return true;  // what is told of pools is told once, behind the last pass
    if (some_moved && !tell_demand()) return false;
    return provisioning().passed.empty() || provisioning().tell_headroom();
}

bool Turn::tell_drained() {
    for (uint32_t pool = touched.first(0); pool != kNoRow; pool = touched.first(pool + 1)) {
        if (state.pools[pool].state != shm::PoolState::kDraining) continue;
        if (full()) return false;
        pools().tell_drained(pool);
    }
    return true;
}

bool Turn::tell_demand() {
    for (uint32_t pool = touched.first(0); pool != kNoRow; pool = touched.first(pool + 1)) {
        if (!pools().demand_moved(pool) || !pools().pool_lives(pool)) continue;
        if (full()) return false;
        pools().publish_demand(pool);
    }
    return true;
}

}  // namespace dibs::core
