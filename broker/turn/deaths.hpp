// broker/turn/deaths.hpp -- how a session ends, whoever ended it.
//
// A process that has died may have published entries and not rung: its ring is read to its end
// first, so that a worker's last "done" counts. A session that closed, or broke a rule, is not
// read any more. Then the core is told, once; it returns what the session held, over as many turns
// as that takes, while the broker forgets the session at the end of this one. However many end at
// once, a turn tells of a few of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "broker/core/core.hpp"
#include "broker/session/sessions.hpp"
#include "broker/turn/ingest.hpp"
#include "broker/turn/kills.hpp"

namespace dibs {

class Deaths {
  public:
    Deaths(core::Core& core, Sessions& sessions, Ingest& ingest, Kills& kills);

    [[nodiscard]] bool any() const { return !sessions_.ending().empty(); }
    // Within a turn: tells the core of sessions that have nothing left to say, the first ones;
    // any() as long as others are left.
    void reap();
    // Told to the core in this turn: no longer any of the broker's business once it is committed.
    [[nodiscard]] std::vector<Session*>& gone() { return gone_; }

  private:
    [[nodiscard]] bool drained(Session& session);

    core::Core& core_;
    Sessions& sessions_;
    Ingest& ingest_;
    Kills& kills_;
    std::vector<Session*> gone_;
};

}  // namespace dibs
