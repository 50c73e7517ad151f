// broker/admission/throttle.hpp -- slows down the reading of a session whose entries are refused.
//
//                      most of what a turn read of it was refused
//   budget   64 ─────────────────► 16 ─────────────────► 4 ─────────────────► 1
//             ▲                     │                    │                    │
//             └──── twice as many ──┴────────────────────┴──── else ──────────┘
//   throttled: a budget of 4 or 1
//
//   polled ── a turn has read entries of it, and it is throttled ──► paused
//   paused ── the pause is over ──► polled
//
// A client that waits for an answer waits for everything that the same turn reads. So a session
// that sends only errors is read in small pieces, with a pause behind each: it pays with its own
// time. One refusal now and then costs nothing: it leaves a budget of 16, and the next good entry
// makes that up.
//
// The pause is two hundred times as long as the reading, so such a session delays fewer than one
// claim in a hundred. Paused sessions of one user share that rate: the pause of each is longer by
// their number, up to a bound. A paused session is not in the polled set, but its wake-up word
// stays clear: its client need not ring, and a bell that it rings anyway is ignored.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "broker/session/sessions.hpp"
#include "broker/turn/ingest.hpp"
#include "shm/cpu.hpp"
#include "shm/layout.hpp"

namespace dibs {

// How many entries of each session one turn reads.
class ReadBudget {
  public:
    static constexpr uint32_t kMost = Ingest::kSessionBudget;
    static constexpr uint32_t kThrottled = 4;

    explicit ReadBudget(uint32_t sessions) : of_(sessions) {}

    [[nodiscard]] uint32_t budget(uint32_t row) const { return of_[row].budget; }
    [[nodiscard]] bool throttles(uint32_t row) const { return of_[row].budget <= kThrottled; }
    // How many sessions are.
    [[nodiscard]] uint32_t throttled() const { return throttled_; }

    // An entry of it was answered with this. What a client may meet that makes no mistake, as that
    // a pool is busy, is no refusal; nor is what a worker says of a slot that is freed meanwhile.
    void answered(uint32_t row, shm::Reason reason, bool has_slots = false) {
        if (has_slots && is_crossing(reason)) return;
        if (is_nonsense(reason)) ++of_[row].refused;
    }
    // The turn that has read so many entries of it is committed.
    void settle(uint32_t row, uint64_t entries) {
        Of& one = of_[row];
        const bool mostly = uint64_t{one.refused} * 2 > entries;
        one.refused = 0;
        if (!mostly && one.budget == kMost) return;
        change(one, mostly ? std::max(one.budget / 4, 1U) : std::min(one.budget * 2, kMost));
    }
    // It has gone: another one may have its row.
    void forget(uint32_t row) {
        change(of_[row], kMost);
        of_[row].refused = 0;
    }

  private:
    struct Of {
        uint32_t budget = kMost;
        uint32_t refused = 0;
    };

    static bool is_crossing(shm::Reason reason) {
        return reason == shm::Reason::kStale || reason == shm::Reason::kState ||
               reason == shm::Reason::kNotFound;
    }
    static bool is_nonsense(shm::Reason reason) {
        switch (reason) {
            case shm::Reason::kUnknownPool:
            case shm::Reason::kTooManyUnits:
            case shm::Reason::kLimit:
            case shm::Reason::kPayload:
            case shm::Reason::kNotFound:
            case shm::Reason::kStale:
            case shm::Reason::kNotHolder:
            case shm::Reason::kState:
            case shm::Reason::kNameInUse:
            case shm::Reason::kMalformed:
            case shm::Reason::kNotAllowed:
            case shm::Reason::kUnkillable:
            case shm::Reason::kUnavailable:
            case shm::Reason::kVector:
            case shm::Reason::kOfferExpired:
                return true;
            default:
                return false;
        }
    }
    void change(Of& one, uint32_t budget) {
        throttled_ -= one.budget <= kThrottled ? 1 : 0;
        one.budget = budget;
        throttled_ += one.budget <= kThrottled ? 1 : 0;
    }

    std::vector<Of> of_;
    uint32_t throttled_ = 0;
};

// The throttled sessions that are not read for a while.
class ThrottlePause {
  public:
    ThrottlePause(Sessions& sessions, uint32_t sessions_max) : sessions_(sessions) {
        sitting_.reserve(sessions_max);
    }

    // Of a pause that is shared: that of the default, by some 800 sessions.
    static constexpr core::TimeNs kLongest = 200'000'000;

    // 0: no session is paused from now on. Paused ones come back with the next turn.
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
