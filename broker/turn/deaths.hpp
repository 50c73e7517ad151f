// broker/turn/deaths.hpp -- ends sessions: of dead processes, closed, cut off, or killed at expiry.
//
// A process that has died may have published entries and not rung: its ring is read to its end
// first, so that a worker's last "done" counts. A session that closed, or broke a rule, is not read
// any more. Then the core is told, once; it returns what the session held, over as many turns as
// that takes, while the broker forgets the session at the end of this turn. However many sessions
// end at once, a turn tells the core of a few of them.
//
// Strict expiry kills the holder of an expired lease. The core decides, the turn commits, and only
// then SIGKILL is sent, by the pidfd that the handshake left: never by a number. The pidfd's death
// notice then ends the session as any other death does; nothing here assumes that a process is
// dead. However many leases expire at one instant, a turn kills for a few of them. A kill that
// fails is logged, and the core is told in the next turn, so that it is counted and in the journal.
// A session that breaks a rule while it holds a lease of a strict pool is killed as well, and the
// core learns of the end only with the death.
//
// Where a session has a tree, its leases last until the last process of that has ended: while some
// live, the core is told of its process's death alone. A kill is one of all of them then, as far as
// this broker may; each by a pidfd, and only while it is in the tree. However many there are, a
// turn looks at a few of them, and the next ones go on. What could not be looked at has not been
// killed.
//
//   (none) ── kKill ──► decided ── its process, and some of its tree ──► decided
//                          └── a look finds nothing new ──► killed, or failed
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/session/sessions.hpp"
#include "broker/turn/ingest.hpp"
#include "broker/turn/lease_words.hpp"

namespace dibs {

class Kills {
  public:
    Kills(core::Core& core, Sessions& sessions) : core_(core), sessions_(sessions) {}

    // There are failures to report, or kills to carry out.
    [[nodiscard]] bool any() const { return !failed_.empty() || !decided_.empty(); }
    // Within a turn: the failures, and some of the kills that earlier ones have left.
    void tell();
    // After the commit: what the turn has decided, or the first of it.
    void carry_out();
    // For a broker that stops: kills all that are left, because no successor would.
    void finish();
    // For a broker that takes over: what an earlier one decided and perhaps did not do is to be
    // killed.
    void resume();
    // For a session that is cut off: true if its process had to be killed and its death is awaited.
    [[nodiscard]] bool condemn(Session& session);

  private:
    struct Decided {
        uint64_t lease = 0;
        bool begun = false;            // the holder itself has been killed
        std::set<uint32_t> seen = {};  // of its tree, and still there at the last look
        size_t of_tree = 0;            // how many that were, in all
        std::string why = {};          // something lives on
    };

    void add(uint64_t lease);
    void kill_some(size_t of_a_tree);
    [[nodiscard]] const Session* holder_to_kill(uint64_t id) const;
    [[nodiscard]] static bool is_killed(const Session& session,
                                        Decided& kill,
                                        size_t of_a_tree,
                                        size_t& left);
    [[nodiscard]] static bool is_tree_killed(const Session& session,
                                             Decided& kill,
                                             size_t of_a_tree,
                                             size_t& left);
    void tell_of(const Session& session, const Decided& kill);
    [[nodiscard]] bool holds_strictly(const Session& session) const;

    core::Core& core_;
    Sessions& sessions_;
    std::deque<Decided> decided_;   // leases whose holders are still to be killed
    std::set<uint64_t> queued_;     // those
    std::vector<uint64_t> failed_;  // leases whose holders could not be killed
};

class Deaths {
  public:
    Deaths(core::Core& core, Sessions& sessions, Ingest& ingest, Kills& kills, LeaseWords& words);

    [[nodiscard]] bool any() const { return !sessions_.ending().empty(); }
    // Within a turn: reports the first sessions whose rings are read to their ends to the core;
    // any() as long as more are left.
    void reap();
    // Reported to the core in this turn: the broker forgets it once the turn is committed.
    [[nodiscard]] std::vector<Session*>& gone() { return gone_; }

  private:
    [[nodiscard]] bool drained(Session& session);
    [[nodiscard]] bool outlives(const Session& session) const;

    core::Core& core_;
    Sessions& sessions_;
    Ingest& ingest_;
    Kills& kills_;
    LeaseWords& words_;
    std::vector<Session*> gone_;
};

}  // namespace dibs
