// broker/turn/pledges.hpp -- grants that are told before their turn.
//
// A client that asks an idle broker waits for its answer, not for the broker's books. So where an
// entry is all that anybody has to say, and the core can foresee what it will get, that is written
// into the STATE's log (broker/core/fast/pledge.cpp) and told at once; the turn that follows does
// the rest, and reads nothing more: what the client says next may already be about its lease. A
// turn for each claim would be dear for a client that submits many at a time: whoever has said more
// than one thing when it was last read is not answered early.
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
    // `alone`: of all sessions one has something to say.
    void allow(bool alone) { alone_ = alone; }
    // The session has more than one thing to say.
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
    // Between turns and now nothing has changed, so the same must have come out.
    void keep([[maybe_unused]] const core::Claim& command) const {
        assert(command.refusal == shm::Reason::kOk && command.room == room_);
    }

    core::Core& core_;
    bool alone_ = false;
    bool told_ = false;
    uint32_t room_ = shm::kNoRow;
};

}  // namespace dibs
