// broker/turn/kills.hpp -- strict expiry: the holders that the core wants dead.
//
// The core decides, the turn commits, and only then SIGKILL is sent, by the pidfd that the
// handshake left: no number is ever killed. What follows is the pidfd's death notice, which ends
// the session as any other does; nothing here says that a process is dead. However many leases
// expire at one instant, a turn kills for a few of them. A kill that fails is logged, and the core
// is told in the next turn, so that it is counted and in the journal.
//
// A session that breaks a rule is cut off while its process lives. If it holds a lease of a strict
// pool, that process is killed, too, and the core hears of the end only with the death.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/session/sessions.hpp"

namespace dibs {

class Kills {
  public:
    Kills(core::Core& core, Sessions& sessions) : core_(core), sessions_(sessions) {}

    // There are failures to tell, or kills to carry out.
    [[nodiscard]] bool any() const { return !failed_.empty() || !decided_.empty(); }
    // Within a turn: the failures, and some of the kills that earlier ones have left.
    void tell();
    // After the commit: what the turn has decided, or the first of it.
    void carry_out();
    // Of a broker that stops: all that is left, whom no successor would kill.
    void finish();
    // Of a broker that takes over: what an earlier one decided and perhaps did not do.
    void resume();
    // Of a session that is cut off: true if its process had to be killed and its death is awaited.
    [[nodiscard]] bool condemn(Session& session);

  private:
    void kill_some();
    void kill(const Session& session, uint64_t lease);
    [[nodiscard]] bool holds_strictly(const Session& session) const;

    core::Core& core_;
    Sessions& sessions_;
    std::vector<uint64_t> decided_;  // leases whose holders are still to be killed
    std::vector<uint64_t> failed_;   // leases whose holders could not be killed
};

}  // namespace dibs
