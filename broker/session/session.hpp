// broker/session/session.hpp -- the broker's private side of a session: mappings, rings, rooms.
//
// The control thread makes it, the turn owns it while the session lives, the control thread frees
// it. No member is read back from shared memory: cursors, credit and rooms are the broker's own, so
// a client that scribbles over its segment confuses only itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "broker/admission/peer.hpp"
#include "broker/core/command.hpp"
#include "broker/segments/mapping.hpp"
#include "broker/session/process_tree.hpp"
#include "broker/session/rooms.hpp"
#include "broker/turn/ingest.hpp"
#include "shm/descriptor.hpp"
#include "shm/handshake.hpp"
#include "shm/layout.hpp"

namespace dibs {

struct Allowance;
struct InheritedSession;

// The grant room that a tag of the session has. It is taken when the claim comes in, and freed
// with the claim or the lease. One per tag, and a takeover fills in all of them: kept small.
struct TagRoom {
    uint32_t first = shm::kNoRow;  // line
    uint32_t lines = 0;
    uint32_t stride = 0;
    uint32_t answer_place = 0;
    core::TimeNs ingested_ns = 0;
    // Unless the room is in use: the lease has ended by another's doing, and its holder may still
    // read the answer. The room is kept until its client says that it does not (free_ended) or
    // uses the tag again, and until completions below this index have been read.
    uint64_t unread = kInUse;
    static constexpr uint64_t kInUse = ~uint64_t{0};

    [[nodiscard]] bool ended() const { return unread != kInUse; }
};
static_assert(sizeof(TagRoom) == 32);

struct PendingFree {
    uint32_t first;
    uint32_t lines;
    uint64_t unread;  // completions below this index must have been read
};

struct Session {
    // A new one, with segments and doorbells of its own.
    Session(Peer peer, const shm::SessionSizes& sizes);
    // An earlier broker's, over its descriptors: taken and told as far as its row says. Throws if
    // they do not fit. Most of its pages are still to be touched.
    Session(const shm::SessionRow& row, InheritedSession& inherited);

    // --- the ring and words of the turn
    Upstream up;
    shm::DownHead* down = nullptr;
    shm::CompletionEntry* completions = nullptr;
    std::atomic<uint64_t>* events = nullptr;
    std::byte* payload = nullptr;  // of DOWN
    uint64_t consumed = 0;         // submissions read and committed
    uint64_t completion_tail = 0;  // completions staged; after the commit: stored
    uint64_t completions_released = 0;
    uint32_t row = shm::kNoRow;
    uint32_t generation = 0;

    // --- marks of the turn
    bool in_turn = false;  // in the list of sessions that this turn answers
    bool events_changed = false;
    bool polled = false;
    bool singly = false;        // when it was last read it had one thing to say, and no more
    uint16_t claimed_pool = 0;  // by its last claim: the next one is likely to be such
    uint16_t claimed_tag = 0;
    bool ending = false;           // no longer read nor answered; its death is reported to the core
    bool dead = false;             // its process is
    bool condemned = false;        // ending; its process must be dead before the core is told
    bool outlived = false;         // ending; the core is told when its tree is dead, too
    bool told_outlived = false;    // it has been told that the process is
    core::TimeNs outlived_ns = 0;  // since when, by the turn's clock
    bool draining = false;         // its process is dead; what it published is still read
    uint64_t drain_until = 0;      // draining: no entry from here on is a dead process's
    uint64_t careful_until = 0;    // entries below it are read one a turn
    bool false_order = false;      // a worker of it has named one, and that has been told
    uint64_t unread_until = 0;     // while time stands still for it (broker/turn/clock_stop.hpp)
    shm::Reason end_reason = shm::Reason::kOk;
    core::TimeNs last_active_ns = 0;  // last turn in which it said something
    bool sits_out = false;        // not polled, whatever it says (broker/admission/throttle.hpp)
    core::TimeNs sits_until = 0;  // if so

    // --- rooms in DOWN
    Rooms rooms;
    std::vector<TagRoom> tags;
    std::vector<PendingFree> frees;
    size_t frees_committed = 0;  // the first of them: freed by earlier turns
    uint32_t slots = 0;          // announced: each has completions reserved (kCompletionsPerSlot)
    // Rows of those that it manages, likewise (kCompletionsPerApplication), or did manage.
    std::vector<uint32_t> applications;

    // False if the client's index cannot be.
    [[nodiscard]] bool refresh_released();
    [[nodiscard]] uint32_t completion_room() const {
        return sizes.completion_entries -
               static_cast<uint32_t>(completion_tail - completions_released);
    }
    // Completions below `tail` are there: says so, and wakes a client that sleeps.
    void announce(uint64_t tail);
    // A room of `lines`, or shm::kNoRow.
    [[nodiscard]] uint32_t take_room(uint32_t lines);
    // Gives lines back once the turn is committed and completions below `unread` are read.
    void free_room(uint32_t first, uint32_t lines, uint64_t unread);
    void free_tag(uint16_t tag, uint64_t unread);
    // Its client reads no more of the lease that has ended under this tag.
    void free_ended(uint16_t tag);
    // Of a room that was given back in this turn: not before completions below `unread` are read.
    void keep_until_read(uint32_t first, uint64_t unread);
    void settle_rooms();  // after the commit
    void settle(size_t count);

    // --- what its user may do (broker/admission/quotas); in step with the turn's policy
    const Allowance* allowance = nullptr;
    bool bounded = false;  // some limit on claims or pools is not "none"
    bool admin = false;    // sees whose things are whose
    // The account that its claims name, where that is not the one of its row: the policy, or the
    // pools, have changed since it was opened.
    std::string charged_to;

    // --- the rest: touched when it begins and ends
    shm::SessionSizes sizes;
    Peer peer;
    ProcessTree tree;
    Mapping up_mapping;
    Mapping down_mapping;
    shm::Descriptor socket;  // the handshake's
    shm::Descriptor bell;
    shm::Descriptor event_socket;
    uint64_t net_rings_seen = 0;
    std::vector<uint32_t> histogram_seen;
    uint64_t completions_harvested = 0;

    // For the Welcome, for the keeper, and for what is left of the session
    // (broker/session/leftovers.hpp).
    shm::Descriptor up_fd;
    shm::Descriptor down_fd;
    bool taken_over = false;              // from an earlier broker
    shm::Descriptor client_event_socket;  // until its client has been welcomed

  private:
    void map(uint64_t submissions_taken, Mapping::Pages pages);
};

}  // namespace dibs
