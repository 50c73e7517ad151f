// broker/admission/penalty.hpp -- sessions that sit out: for a while nobody looks at what they say.
//
//     polled ── a turn has read something of it, and Patience shuns it ──► sits out
//        ▲                                                                  │
//        └────────────────────── its pause is over ─────────────────────────┘
//
// Whoever says something while a turn is under way waits for its end. If nonsense were read
// whenever nobody else speaks, nearly every claim would come while some is being refused; read once
// in a pause that is two hundred times as long, it meets fewer than one claim in a hundred. However
// many sessions of one user sit out, they share that: the pause of each is as many times as long,
// up to a bound.
//
// A session that sits out is not in the polled set, but its wake-up word stays clear: its client
// need not ring, and if it does, nobody hears it. The end of the first pause is due in time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "broker/session/sessions.hpp"
#include "shm/cpu.hpp"

namespace dibs {

class Penalty {
  public:
    Penalty(Sessions& sessions, uint32_t sessions_max) : sessions_(sessions) {
        sitting_.reserve(sessions_max);
    }

    // Of a pause that is shared: that of the default, by some 800 sessions.
    static constexpr core::TimeNs kLongest = 200'000'000;

    // 0: nobody sits out from now on. Who does comes back with the next turn.
    void set_pause(core::TimeNs pause) {
        if (pause == pause_) return;
        pause_ = pause;
        for (Session* session : sitting_)
            session->sits_until = 0;
        find_due();
    }

    // The turn at `now` has read something of it.
    void begin(Session& session, core::TimeNs now) {
        if (pause_ == 0 || session.sits_out) return;
        sessions_.unpoll(&session);
        session.sits_out = true;
        sitting_.push_back(&session);
        const auto shared_by =
            std::count_if(sitting_.begin(), sitting_.end(), [&](const Session* other) {
                return other->peer.uid == session.peer.uid;
            });
        const core::TimeNs shared = pause_ * static_cast<core::TimeNs>(shared_by);
        session.sits_until = now + std::min(shared, std::max(pause_, kLongest));
        due_ = std::min(due_, session.sits_until);
    }
    void end_due(core::TimeNs now) {
        if (now < due_) [[likely]]
            return;
        std::erase_if(sitting_, [&](Session* session) {
            if (now < session->sits_until) return false;
            session->sits_out = false;
            if (session->draining) return true;
            sessions_.poll(session);
            session->down->cpu.store(shm::current_cpu(), std::memory_order_relaxed);
            return true;
        });
        find_due();
    }
    // It goes.
    void forget(Session& session) {
        if (!session.sits_out) return;
        session.sits_out = false;
        std::erase(sitting_, &session);
        find_due();
    }
    [[nodiscard]] core::TimeNs next_due() const { return due_; }

  private:
    void find_due() {
        due_ = shm::kNever;
        for (const Session* session : sitting_)
            due_ = std::min(due_, session->sits_until);
    }

    Sessions& sessions_;
    std::vector<Session*> sitting_;
    core::TimeNs pause_ = 0;
    core::TimeNs due_ = shm::kNever;
};

}  // namespace dibs
