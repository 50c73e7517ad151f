// broker/turn/lease_words.hpp -- reads the words of leases, and recalls those that are parked.
//
// A word is read, or made wanted, before the command that depends on it, in the same turn: what was
// found enters the core as a Harvest. Should the broker die in between, the word says that its
// lease is wanted and the rows do not. The successor looks at all words before it reads a client
// (resume), and takes the outcome in then.
//
// The touch word of a lease is read where the lease would expire in this turn, and nowhere else:
// what it says enters the core as a Touch, before the timers run. However often a client touches,
// the broker does nothing about it until then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/session/sessions.hpp"
#include "broker/turn/clock.hpp"
#include "broker/turn/ingest.hpp"

namespace dibs {

class LeaseWords {
  public:
    LeaseWords(core::Core& core, Sessions& sessions, const Clock& clock);

    // --- inside a turn
    // Before a claim: recalls as many free leases as it takes to serve what waits, and it.
    void make_room(uint32_t pool, uint32_t units);
    // Before a claim is ranked over these pools: learns of as many free leases as it lacks slots.
    void look_for_free(std::span<const core::RouteMember> members, uint32_t units);
    // A claim of this turn has had words read for it. What is read later may have been submitted
    // meanwhile, and must not be granted at the time from before: its lease would end early.
    [[nodiscard]] bool has_looked() const { return has_looked_; }
    void begin_turn() { has_looked_ = false; }
    // Before a lease is ended or moved by another than its holder; after it, nobody takes it.
    void want(uint32_t lease);
    // A client claims with a tag under which it has such a lease: it has put it aside and found it
    // recalled, though no row says so. False: there is none.
    bool put_aside(const Session& session, uint16_t tag);
    // Before an operation of a holder that shows this fence. False: it is parked.
    [[nodiscard]] bool hear(uint32_t lease, uint64_t fence);
    // Before the core learns of the session's death. Where its memory is lost, its leases are said
    // to have been taken as often as can be. False: the turn is full, and it has to be said again.
    [[nodiscard]] bool session_ends(uint32_t session);
    // Recalls free leases of the user; false: there were none.
    bool recall_of(uint32_t uid);
    // All that are free.
    void recall_parked();
    // Recalls the free leases of the session, which frees their rooms.
    void recall_of(const Session& session);
    // After a takeover, before a client is read: takes in what a recall of the last broker has
    // found and its rows do not say. False: the turn is full, and it has to be called again.
    [[nodiscard]] bool resume();
    // Reads all words: an administrator is about to look, or the state is copied.
    void read_all();
    // Right before the core decides: the leases that would expire, and that their holders have
    // touched, do not. Where the turn is full it decides nothing either, and they come in the next.
    void read_touches();
    // What is due: recalls, the harvest, what a changed configuration or a drain asks back.
    void step(core::TimeNs now);

    // --- between turns
    [[nodiscard]] core::TimeNs next_due(core::TimeNs now);
    // Pools have changed, or are drained: their parked leases are looked at once.
    void pools_change() { all_due_ = true; }
    // Who may claim may be another one: whoever has a lease asks again.
    void rules_change() { all_due_ = all_back_ = true; }

  private:
    struct Found {
        bool parked = false;
        bool ended = false;
    };
    [[nodiscard]] bool in_use(uint32_t lease) const;
    [[nodiscard]] uint64_t takes_at_most(const shm::LeaseRow& lease);
    Found take_in(uint32_t lease, const LeaseWordSeen& seen, bool recalled);
    [[nodiscard]] LeaseWordSeen seen(uint32_t lease) const;
    template <class Visit>
    bool each_parkable(uint32_t pool, const Visit& visit);
    Found read(uint32_t lease);
    Found recall(uint32_t lease);
    uint32_t recall_free(uint32_t pool, uint32_t count);
    void recall_due(uint32_t pool, core::TimeNs now);
    void recall_all(uint32_t pool);
    void harvest(core::TimeNs now);

    core::Core& core_;
    Sessions& sessions_;
    const Clock& clock_;
    // Clients go on while broker time stands: what of it was lost, for leases that had been granted
    // when that was last found.
    uint64_t offset_;
    core::TimeNs lost_ns_;
    core::TimeNs lost_until_ns_;
    std::vector<uint32_t> parking_;    // pools in which leases may be parked
    std::vector<uint32_t> contended_;  // pools in which something waits, or did
    bool has_looked_ = false;
    bool all_due_ = true;
    bool all_back_ = false;
    core::TimeNs harvest_due_ns_ = shm::kNever;
    core::TimeNs harvest_every_ns_;
    uint32_t harvest_pool_ = 0;             // it goes on here
    uint32_t harvest_lease_ = shm::kNoRow;  // and behind this one,
    uint32_t harvest_generation_ = 0;       // if it is still there
    bool harvest_found_ = false;            // something, since it began
};

}  // namespace dibs
