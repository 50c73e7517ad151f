// broker/turn/prepared_grant.hpp -- prepares the next claim's grant while the broker is idle.
//
// Most of what a claim waits for is known before it comes: that it is allowed, which slot is next,
// in which room its grant will lie, and its completion. No row, room or quota changes between two
// turns, so a grant prepared after one turn holds until the next begins. It is prepared for the
// session that was read last, as if that session repeated its last claim; if this claim comes, and
// comes alone, only its own words are put in before the grant is pledged and published
// (broker/turn/pledges.hpp).
//
//            prepare()              find(): fits, tell()
//   nothing ───────────► prepared ────────────────────► told, the turn applies it
//      ▲                     │
//      └──── a turn ─────────┘  of any kind
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/session/session.hpp"
#include "broker/turn/operations.hpp"
#include "broker/turn/pledges.hpp"
#include "shm/ring.hpp"

namespace dibs {

class PreparedGrant {
  public:
    PreparedGrant(core::Core& core, Operations& operations, Pledges& pledges)
        : core_(core), operations_(operations), pledges_(pledges) {}

    // `session` has been read: its next claim is expected.
    void expect(Session* session) { expected_ = session; }
    void forget(const Session& gone) {
        if (expected_ != &gone) return;
        expected_ = nullptr;
        prepared_ = false;
    }
    // Between turns, from Core::clear() on. Once is enough: nothing changes until the next turn.
    void prepare() {
        if (!looked_) work_out();
    }
    // Before a turn that has nothing else to do: whether the only new entry of `polled` is the
    // claim that the grant was prepared for. Its session, and the claim in `entry`; else null.
    [[nodiscard]] Session* find(const std::vector<Session*>& polled, shm::Submission& entry) const;
    // Whether the time of its grant counts: a lease does not last shorter than it was asked for.
    [[nodiscard]] static bool counts_time(const shm::Submission& claim) { return claim.fence != 0; }
    // Publishes the grant of the claim that was found. False, and nothing published, if a timer is
    // due first.
    [[nodiscard]] bool tell(core::TimeNs now, const shm::Submission& claim);
    // The turn has begun: the prepared grant is of no use after it.
    void forget() { looked_ = prepared_ = false; }

  private:
    void work_out();
    [[nodiscard]] bool work_out_for(Session& session);
    [[nodiscard]] bool fits(const shm::Submission& entry) const;

    core::Core& core_;
    Operations& operations_;
    Pledges& pledges_;
    Session* expected_ = nullptr;
    bool looked_ = false;
    bool prepared_ = false;
    core::TimeNs due_ns_ = 0;  // from then on the turn has a timer to run first
    core::TimeNs interval_max_ns_ = 0;
    core::Claim command_;
    shm::Completion told_;
};

}  // namespace dibs
