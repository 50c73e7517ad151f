// broker/admission/admission.hpp -- bounds each uid's connections, sessions and memory.
//
// These are the control thread's own counts. A connection costs its uid a handshake whether it says
// Hello or not; handshakes come back with time, up to one second's worth. A session costs a row and
// the bytes of its segments until the turn has handed it back, and beyond that for as long as any
// process holds its memory (broker/session/leftovers.hpp).
//
// The share of newcomers: where the socket lets several users in, the last quarter of the rows is
// open only to a uid that has fewer than a sixty-fourth of all rows (one at least). So no uid ever
// has more than three quarters, and once those are taken sixteen more uids get in at the least (of
// fewer than 64 rows: as many as a quarter has).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "broker/admission/handshake.hpp"
#include "broker/admission/policy.hpp"

namespace dibs {

class Admission {
  public:
    struct Room {
        uint32_t sessions = 0;                          // rows that may be taken
        bool newcomers = true;                          // several users may come
        std::optional<uint32_t> administers_only = {};  // uid that gets no session
        std::optional<uint32_t> nameless = {};          // uid of users that are not mapped here
    };

    Admission(std::shared_ptr<const Policy> policy, const Room& room);

    void set_policy(std::shared_ptr<const Policy> policy) { policy_ = std::move(policy); }
    void set_newcomers(bool newcomers) { room_.newcomers = newcomers; }
    [[nodiscard]] const Policy& policy() const { return *policy_; }

    // Takes one of the peer's handshakes; returns a refusal if none is left.
    [[nodiscard]] std::optional<Refusal> connect(const Credentials& peer, uint64_t now_ns);
    // Takes a session and its memory.
    [[nodiscard]] std::optional<Refusal> begin(const Credentials& peer, uint64_t memory);
    // True when at most a quarter of all session rows is free: then also leftovers of other users
    // are looked at for a newcomer.
    [[nodiscard]] bool is_crowded() const {
        return room_.sessions - std::min(sessions_, room_.sessions) <= room_.sessions / 4;
    }
    // The same for a session that an earlier broker has let in.
    void adopt(uint32_t uid, uint64_t memory);
    // Gives both back.
    void end(uint32_t uid, uint64_t memory);
    // The session has ended, and a process still holds its memory: it counts on, until released()
    // gives it back.
    void outlasted(uint32_t uid) { ++visitors_[uid].outlasted; }
    void released(uint32_t uid, uint64_t memory);

  private:
    struct Visitor {
        uint32_t sessions = 0;
        uint32_t outlasted = 0;  // of them
        uint64_t memory = 0;
        uint64_t handshakes = 0;  // left, in billionths
        uint64_t counted_ns = 0;  // when
        bool known = false;
    };

    void forget_idle(uint64_t now_ns);
    [[nodiscard]] static std::string outlasted_of(const Visitor& visitor);

    std::shared_ptr<const Policy> policy_;
    Room room_;
    uint32_t sessions_ = 0;
    uint64_t swept_ns_ = 0;
    std::unordered_map<uint32_t, Visitor> visitors_;  // by uid
};

}  // namespace dibs
