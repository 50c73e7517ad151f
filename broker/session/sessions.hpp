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
        outlived_.reserve(sessions_max);
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

    // --- outlived by their trees (process_tree.hpp); `told`: the core knows
    void outlive(Session* session, bool told, core::TimeNs now) {
        session->dead = session->ending = session->outlived = true;
        session->end_reason = shm::Reason::kHolderGone;
        session->told_outlived = told;
        session->outlived_ns = now;
        outlived_.push_back(session);
        settling_ = settling_ || !told;
    }
    [[nodiscard]] bool any_outlived() const { return !outlived_.empty(); }
    // When trees are to be looked at, whatever has been notified.
    [[nodiscard]] core::TimeNs next_look() const {
        if (outlived_.empty()) return shm::kNever;
        return looked_ns_ + (settling_ ? kSettlesNs : kLookEveryNs);
    }
    static bool holds_something(const Session& /*session*/) { return true; }
    // Ends those whose trees are empty by now, those that hold nothing any more (by `holds`), and
    // those that the core is to be told of.
    template <typename Holds = bool (*)(const Session&)>
    void look_at_trees(core::TimeNs now, Holds holds = holds_something) {
        looked_ns_ = now;
        settling_ = false;
        std::erase_if(outlived_, [&](Session* session) {
            const bool tells = !session->told_outlived && now - session->outlived_ns >= kSettlesNs;
            if (session->tree.is_populated() && !tells && holds(*session)) {
                settling_ = settling_ || !session->told_outlived;
                return false;
            }
            session->outlived = false;
            ending_.push_back(session);
            return true;
        });
    }
    // Something has changed in its tree.
    void tree_changed(const Session* session) {
        if (session->outlived) looked_ns_ = 0;
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
    // A process's death may be seen before it has left its group (Linux 6.19).
    static constexpr core::TimeNs kSettlesNs = 10'000'000;
    // The kernel tells no change of a group that is removed within 10 ms of the one before it.
    static constexpr core::TimeNs kLookEveryNs = 250'000'000;
    static constexpr size_t kReadAtOnce = 256;  // the log's last quarter has room for as many

    std::vector<Session*> by_row_;
    std::vector<Session*> all_;
    std::vector<Session*> polled_;
    std::vector<Session*> ending_;
    std::vector<Session*> outlived_;
    core::TimeNs looked_ns_ = 0;  // at their trees
    bool settling_ = false;       // the core has not been told of some of them yet
    std::vector<Session*> in_turn_;
};

}  // namespace dibs
