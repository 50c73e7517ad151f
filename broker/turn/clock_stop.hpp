// broker/turn/clock_stop.hpp -- stops broker time while overdue input is read.
//
//   goes on ── something has been due for kLateNs, or a broker takes over: begin ──► time stopped
//      ▲                                                                                  │
//      └──── every ring has been read as far as a client can have filled it by then ──────┘
//
// So downtime expires no lease. A broker that was stopped, frozen or starved, and one that follows
// another, find rings full of entries that clients wrote in time, keepalives above all: they are
// read before anything due is decided, at an instant at which nothing was due. From that instant
// broker time goes on, so that all deadlines move by the time that was lost. The holder of what is
// due first may have been stopped as well, with the whole host: it gets as much time as was lost,
// kSlackNs at least, but not more than it had when the broker last looked; and that only once.
//
// Entries that a client adds meanwhile do not count, nor do sessions that are paused
// (broker/admission/throttle.hpp): no client stops the time for longer than it takes to read its
// ring once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/session/sessions.hpp"
#include "broker/turn/clock.hpp"

namespace dibs {

class ClockStop {
  public:
    // A busy machine wakes a sleeper later than it is due, too: by less than this, nearly always.
    static constexpr core::TimeNs kLateNs = 10'000'000;
    static constexpr core::TimeNs kSlackNs = 100'000'000;

    ClockStop(core::Core& core, Sessions& sessions, Clock& clock);

    // What the turn is to take for now at `now`, where `due` is the first instant at which
    // something comes due.
    [[nodiscard]] core::TimeNs at(core::TimeNs now, core::TimeNs due) {
        if (stands_ || (now >= due && now - due >= kLateNs)) [[unlikely]]
            return at_late(now, due);
        seen_ = now;
        return now;
    }
    // The turn stands at this instant until what is in the rings by now has been read.
    void begin(core::TimeNs instant);
    // Where to begin at `now`: nothing is due yet, and time does not go back.
    [[nodiscard]] core::TimeNs latest(core::TimeNs now, core::TimeNs due);
    [[nodiscard]] bool stands() const { return stands_; }

    // Before an ending session is freed: no longer waits for it.
    void look();
    // A turn has looked into its ring and found nothing.
    void found_nothing(Session& session) const {
        if (stands_) [[unlikely]]
            session.unread_until = 0;
    }

  private:
    [[nodiscard]] core::TimeNs at_late(core::TimeNs now, core::TimeNs due);
    void go_on_from(core::TimeNs instant);

    core::Core& core_;
    Sessions& sessions_;
    Clock& clock_;
    std::vector<Session*> unread_;
    core::TimeNs instant_ = 0;    // at which it stands
    core::TimeNs seen_ = 0;       // the last instant that a turn had, or could have had
    core::TimeNs slack_for_ = 0;  // what was due when slack was last granted
    bool stands_ = false;
};

}  // namespace dibs
