// broker/session/leftovers.hpp -- reclaims the memory of ended sessions once no process holds it.
//
// A client can keep UP and DOWN for longer than its session: as descriptors, as mappings, in a
// Welcome that is never read, in its children. As long as any process holds them, they stay counted
// against the session's user, as a session and as bytes, and the broker keeps its own descriptors
// of them.
//
// The kernel says whether a process holds them. A client is given descriptors that were opened once
// more; a write lease on yet another such descriptor is granted only if no others are open
// anywhere. The descriptors that a segment was made with, which broker, keeper and service manager
// hold, do not count. Nor does one opened with O_PATH, which holds the pages all the same: so the
// pages are freed under the lease. After that no process can read them, and no process can be
// inside of a write, which might block the thread that frees them (docs/decisions.md).
//
//     ended ── no process has it ──► its pages taken back, no longer counted
//       └──── a process has it ──► looked at again: when a session is refused for want of it, a few
//                                  times at once, then after pauses of 1 to 256 ms; by itself
//                                  after 50 ms, and after twice as long each time, up to a minute
//
// A look takes some 20 us. Without the pauses a client that is refused in a loop would keep the
// control thread busy, at the cost of all other clients.
//
// Where the kernel does not say, the death of the session's process has to do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <unordered_map>

#include "shm/descriptor.hpp"

namespace dibs {

enum class Holders : uint8_t { kNone, kSome, kUnknown };

// For a memory file of which only reopened descriptors have been given away. If none of those is
// open its pages are gone. *looked, if asked for: false where there was no descriptor or memory to
// look with, which counts as held.
Holders take_back(int memfd, bool* looked = nullptr);
using TakeBack = std::function<Holders(int)>;
// That, if this kernel is seen to do what it relies on; else one that never knows.
TakeBack way_to_take_back();

struct Leftover {
    uint32_t number = 0;  // at the keeper
    uint32_t uid = 0;
    uint64_t memory = 0;
    shm::Descriptor up = {};
    shm::Descriptor down = {};
    shm::Descriptor process = {};  // the pidfd
    bool up_is_gone = false;       // no process had it at the last look: none will again
};

class Leftovers {
  public:
    // `gone` is called for each one that was kept and that no process has any more.
    Leftovers(TakeBack take_back, std::function<void(const Leftover&)> gone)
        : take_back_(std::move(take_back)), gone_(std::move(gone)) {}

    // Whether no process has it any more: it need not be kept.
    [[nodiscard]] bool is_gone(Leftover& leftover) const;
    void keep(Leftover leftover, uint64_t now_ns);
    // After a refusal: looks at some of this user's, or of all users', beginning with those not
    // looked at for longest, and at none again within its pause. True if there is more room than
    // before.
    bool look(std::optional<uint32_t> uid, uint64_t now_ns);
    void look_due(uint64_t now_ns);
    [[nodiscard]] uint64_t next_due() const { return next_due_ns_; }  // monotonic; kNever = none
    [[nodiscard]] size_t size() const { return kept_.size(); }
    // One that no leftover has.
    [[nodiscard]] uint32_t new_number();

  private:
    struct Kept {
        Leftover leftover;
        uint64_t due_ns;
        uint64_t pause_ns;
        uint32_t asked = 0;     // looks that were made because a session was refused
        uint64_t asked_ns = 0;  // from when on it may be again
    };
    using Place = std::list<Kept>::iterator;

    bool drop_if_gone(Place place);

    TakeBack take_back_;
    std::function<void(const Leftover&)> gone_;
    std::list<Kept> kept_;                            // the one that was looked at last is the last
    std::unordered_map<uint32_t, uint32_t> of_user_;  // how many of them
    uint64_t next_due_ns_ = ~uint64_t{0};
    uint32_t last_number_ = 0;
};

}  // namespace dibs
