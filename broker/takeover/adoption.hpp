// broker/takeover/adoption.hpp -- attaches a dead broker's sessions to its successor.
//
// A session continues where its row says: what the dead broker took and told is committed there.
// Its other knowledge is rebuilt from the rows: the rooms of claims, leases and slots in DOWN, and
// those of unread completions. Lost is the room of a lease that another session has ended and whose
// answer its holder may still look at; that room may be written again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/session/sessions.hpp"
#include "broker/takeover/inheritance.hpp"
#include "broker/turn/operations.hpp"

namespace dibs {

class Adoption {
  public:
    Adoption(core::Core& core, Sessions& sessions, Operations& operations)
        : core_(core), sessions_(sessions), operations_(operations) {}

    // Maps them all, some of them by another thread, and keeps them. What is wrong with one is
    // adopt()'s to say.
    void map(std::vector<InheritedSession>& inherited);
    // The one at that place, and what was inherited is marked as taken by having no row; null, and
    // its client told, if there is no such session any more. Each once, in their order.
    Session* adopt(size_t place);
    // After the last one: their rooms. Ends a session whose rooms contradict each other.
    void restore_rooms();
    // Of a broker's death: entries up to it were in hand. What was so at two deaths running ends.
    void take_hand(Session& session);

  private:
    // By its place among those that were inherited.
    struct Mapped {
        std::unique_ptr<Session> session;
        std::exception_ptr thrown;
    };

    [[nodiscard]] bool is_open(const InheritedSession& inherited) const;
    void restore_claims();
    void restore_leases();
    void restore_slots();
    void restore_applications();
    void restore_unread(Session& session);
    void fetch_tag(const core::Core::HeldRoom& room) const;
    // False: its room is another's.
    bool restore_tag(
        Session& session, uint32_t pool_row, uint16_t tag, uint32_t first, uint32_t lines) const;
    bool restore_several(Session& session, uint16_t tag, uint32_t first, uint32_t lines) const;
    void end_clashing(Session& session);

    std::vector<InheritedSession>* inherited_ = nullptr;
    std::vector<Mapped> mapped_;
    core::Core& core_;
    Sessions& sessions_;
    Operations& operations_;
};

// Tells the client of a session that cannot go on, and wakes it.
void part_with(InheritedSession& inherited, shm::Reason reason);

}  // namespace dibs
