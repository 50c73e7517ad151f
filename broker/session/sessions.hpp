// broker/session/sessions.hpp -- lists attached sessions: by row, the polled ones, the ending ones.
//
// An active session is polled: the turn looks at its ring in every sweep, and its wake-up word is
// clear. A silent one leaves the polled set with its word set, and rings to come back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "broker/session/session.hpp"

namespace dibs {

class Sessions {
  public:
    explicit Sessions(uint32_t sessions_max) : by_row_(sessions_max, nullptr) {
        all_.reserve(sessions_max);
        polled_.reserve(sessions_max);
        ending_.reserve(sessions_max);
        in_turn_.reserve(sessions_max);
    }

    [[nodiscard]] Session* at(uint32_t row) const {
        return row < by_row_.size() ? by_row_[row] : nullptr;
    }
    [[nodiscard]] const std::vector<Session*>& all() const { return all_; }

    void add(Session* session) {
        by_row_[session->row] = session;
        all_.push_back(session);
    }
    void remove(Session* session) {
        by_row_[session->row] = nullptr;
        std::erase(all_, session);
        unpoll(session);
    }

    // --- polled
    [[nodiscard]] const std::vector<Session*>& polled() const { return polled_; }
    void poll(Session* session) {
        if (session->polled || session->ending) return;
        session->polled = true;
        polled_.push_back(session);
    }
    void unpoll(Session* session) {
        if (!session->polled) return;
        session->polled = false;
        std::erase(polled_, session);
    }
    // Is there an entry (or a violation) in some ring? One load per polled session.
    [[nodiscard]] bool anything_new() const {
        return std::any_of(
            polled_.begin(), polled_.end(), [](const Session* s) { return s->up.maybe(); });
    }

    // --- ending
    // Cuts a session off: nothing more is read from it or told to it; the next turn tells the core.
    void end(Session* session, shm::Reason reason) {
        if (session->ending) return;
        session->ending = true;
        session->end_reason = reason;
        unpoll(session);
        if (!session->draining) ending_.push_back(session);
    }
    // Its process is dead: what it has published still counts, then it ends.
    void drain(Session* session) {
        session->dead = true;
        if (session->condemned) {
            session->condemned = false;
            ending_.push_back(session);
        }
        if (session->ending || session->draining) return;
        session->draining = true;
        session->drain_until = session->up.head() + session->sizes.submission_entries;
        session->end_reason = shm::Reason::kHolderGone;
        unpoll(session);
        ending_.push_back(session);
    }
    // Of an earlier broker: it was outlived then. Nothing more is read from it.
    void outlived(Session* session) {
        session->dead = session->ending = session->outlived = true;
        session->end_reason = shm::Reason::kHolderGone;
        tree_changed(session);
    }
    // Something has changed in its tree, which was awaited if it is outlived.
    void tree_changed(Session* session) {
        if (!session->outlived || session->tree.is_populated()) return;
        session->outlived = false;
        ending_.push_back(session);
    }
    [[nodiscard]] std::vector<Session*>& ending() { return ending_; }

    // --- the sessions that this turn answers
    void in_turn(Session* session) {
        if (session->in_turn) return;
        session->in_turn = true;
        in_turn_.push_back(session);
    }
    [[nodiscard]] std::vector<Session*>& in_turn() { return in_turn_; }
    // Enough sessions have been read from: each takes a line of the turn's log, whatever it says.
    [[nodiscard]] bool turn_full() const { return in_turn_.size() >= kReadAtOnce; }

  private:
    static constexpr size_t kReadAtOnce = 256;  // the log's last quarter has room for as many

    std::vector<Session*> by_row_;
    std::vector<Session*> all_;
    std::vector<Session*> polled_;
    std::vector<Session*> ending_;
    std::vector<Session*> in_turn_;
};

}  // namespace dibs
