// broker/turn/clock_stop.cpp -- stops broker time while overdue input is read.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/clock_stop.hpp"

#include <algorithm>

#include "shm/cpu.hpp"
#include "shm/doorbell.hpp"

namespace dibs {

ClockStop::ClockStop(core::Core& core, Sessions& sessions, Clock& clock)
    : core_(core), sessions_(sessions), clock_(clock) {
    unread_.reserve(core.sessions_max());
}

core::TimeNs ClockStop::latest(core::TimeNs now, core::TimeNs due) {
    if (now < due) return std::max(core_.now(), now);
    // Without the 1, a host that is always late would put it off for ever.
    const core::TimeNs slack = due == slack_for_ ? 1 : std::max(now - due, kSlackNs);
    slack_for_ = due;
    return std::max({core_.now(), seen_, due - std::min(due, slack)});
}

core::TimeNs ClockStop::at_late(core::TimeNs now, core::TimeNs due) {
    if (!stands_) {
        // What a cut turn has left is decided at that turn's time, however late it has become.
        if (core_.cut()) return clock_.now();
        begin(latest(now, due));
    }
    look();
    seen_ = stands_ ? instant_ : clock_.now();
    return seen_;
}

void ClockStop::begin(core::TimeNs instant) {
    instant_ = instant;
    stands_ = true;
    for (Session* session : sessions_.all()) {
        if (session->ending || session->draining || session->sits_out) continue;
        if (!session->up.maybe()) continue;
        session->unread_until = session->up.head() + session->sizes.submission_entries;
        session->last_active_ns = instant;
        unread_.push_back(session);
        if (session->polled) continue;
        sessions_.poll(session);
        shm::disarm_submissions(*session->down);
        session->down->cpu.store(shm::current_cpu(), std::memory_order_relaxed);
    }
    go_on_from(instant);
}

void ClockStop::look() {
    if (!stands_) return;
    std::erase_if(unread_, [](const Session* session) {
        // An unpolled session had an empty ring when it was looked at with its word set: what it
        // has now is new. Nor may a line that comes and goes stop the time.
        return !session->polled || session->ending || session->draining || session->sits_out ||
               session->up.head() >= session->unread_until || !session->up.maybe();
    });
    if (!unread_.empty()) return;
    stands_ = false;
    go_on_from(instant_);
}

// This broker's successor counts from there, too.
void ClockStop::go_on_from(core::TimeNs instant) {
    clock_.go_on_from(instant);
    core_.set_clock_offset(clock_.offset());
}

}  // namespace dibs
