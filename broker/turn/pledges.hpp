// broker/turn/pledges.hpp -- answers a lone claim before its turn runs.
//
// A client that asks an idle broker waits for its answer, not for the broker's books. So where one
// entry is all there is to read, and the core can foresee its grant, the grant is written into the
// STATE's log (broker/core/fast/pledge.cpp) and published at once; the turn that follows does the
// rest, and reads nothing more: the client's next entry may already be about its lease. A turn for
// each claim would be expensive for a client that submits many at a time: a session that had more
// than one entry when it was last read is not answered early.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>

#include "broker/core/core.hpp"
#include "broker/session/session.hpp"

namespace dibs {

class Pledges {
  public:
    explicit Pledges(core::Core& core) : core_(core) {}

    void begin_turn() { alone_ = told_ = false; }
    // `alone`: only one session has a new entry.
    void allow(bool alone) { alone_ = alone; }
    // The session has more than one new entry.
    void refrain() { alone_ = false; }
    // Before the claim is applied, which has its room.
    void claim(Session& session, const core::Claim& command) {
        if (told_) return keep(command);
        if (alone_ && command.refusal == shm::Reason::kOk) told_ = tell(session, command);
    }
    // A prepared grant, in this room: the claim that is applied next.
    void has_told(uint32_t room) {
        told_ = true;
        room_ = room;
    }
    // The turn's claim has been answered.
    [[nodiscard]] bool told() const { return told_; }

  private:
    bool tell(Session& session, const core::Claim& command);
    // Nothing has changed since the grant was foreseen, so the decision must be the same.
    void keep([[maybe_unused]] const core::Claim& command) const {
        assert(command.refusal == shm::Reason::kOk && command.room == room_);
    }

    core::Core& core_;
    bool alone_ = false;
    bool told_ = false;
    uint32_t room_ = shm::kNoRow;
};

}  // namespace dibs
