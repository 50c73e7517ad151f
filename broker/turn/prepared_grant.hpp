// broker/turn/prepared_grant.hpp -- the grant that the next claim would get, worked out while there
// is nothing to do.
//
// Most of what a claim waits for is no secret before it comes: that it may, which slot is next, in
// which room its grant will lie, how it will be told. No row, room or quota changes between two
// turns, so what is worked out behind one holds until the next begins. It is worked out for the
// session that spoke last, as if it claimed what it claimed last; if that comes, and comes alone,
// only its own words are put in before it is pledged and told (broker/turn/pledges.hpp).
//
//            prepare()              find(): fits, tell()
//   nothing ───────────► prepared ────────────────────► told, the turn applies it
//      ▲                     │
//      └──── a turn ─────────┘  whatever else it does
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

    // `session` has spoken: its next words are expected.
    void expect(Session* session) { expected_ = session; }
    void forget(const Session& gone) {
        if (expected_ != &gone) return;
        expected_ = nullptr;
        prepared_ = false;
    }
    // Between turns, from Core::clear() on. Once is enough: until the next turn there is nothing
    // new to know.
    void prepare() {
        if (!looked_) work_out();
    }
    // Before a turn that has nothing else to do: whether `polled` have but the claim to say that it
    // was prepared for. Its session, and the claim in `entry`; else null.
    [[nodiscard]] Session* find(const std::vector<Session*>& polled, shm::Submission& entry) const;
    // Whether the time of its grant counts: a lease does not last shorter than it was asked for.
    [[nodiscard]] static bool counts_time(const shm::Submission& claim) { return claim.fence != 0; }
    // Tells the claim that was found its grant. False, and nothing told, if a timer is due first.
    [[nodiscard]] bool tell(core::TimeNs now, const shm::Submission& claim);
    // The turn has begun: what was prepared for it is of no use behind it.
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
