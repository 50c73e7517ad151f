// broker/takeover/keeper_link.hpp -- the broker's end of the keeper's socket; renews the keeper.
//
// It is made before the threads, and then only the control thread uses it. It remembers what it has
// handed over, so that it can hand all of it to the next keeper; the descriptors belong to their
// owners, the configuration's to the link itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "broker/session/leftovers.hpp"
#include "broker/session/session.hpp"
#include "broker/takeover/inheritance.hpp"
#include "broker/takeover/keeper_child.hpp"
#include "broker/takeover/keeper_socket.hpp"

namespace dibs {

class KeeperLink {
  public:
    // `socket` is the broker's end; `program` is how a new keeper is called.
    KeeperLink(shm::Descriptor socket, OwnProgram program);

    // Everything that the keeper has to give. Waits for it. Throws std::runtime_error if the keeper
    // is gone.
    Inheritance receive();
    // Why the program that lies at the path does not serve in this one's place, if it was to.
    [[nodiscard]] const std::string& not_upgraded() const { return not_upgraded_; }
    void begun();  // after having waited for it: the first word

    // --- what the keeper holds; each descriptor stays open until it is dropped
    void hold(Kept what, int descriptor);  // STATE, BOARD
    void hold_listener(int descriptor, uint64_t inode);
    // A copy of it, in the place of an earlier one: the configuration that is in force.
    void keep_config(const std::string& text);
    void hold(Session& session);   // until next_acknowledged() names it, it is not safe
    void holds(Session& session);  // from an earlier broker: the same if it is not welcome yet
    void welcomed(const Session& session);
    void drop(Kept what);
    void drop(uint32_t row, uint32_t generation);
    void drop(const Session& session) { drop(session.row, session.generation); }
    void hold(const Leftover& leftover);
    void holds(const Leftover& leftover);  // from an earlier broker
    void drop(const Leftover& leftover);

    void serving(uint64_t clock_offset, const std::string& socket_path);
    // While the broker does not listen to it; without a keeper it sends nothing.
    class Busy {
      public:
        explicit Busy(KeeperLink* link) : link_(link) {
            if (link_ != nullptr) link_->say(KeeperWord::kBusy);
        }
        ~Busy() {
            if (link_ != nullptr) link_->say(KeeperWord::kHere);
        }
        Busy(const Busy&) = delete;
        Busy& operator=(const Busy&) = delete;

      private:
        KeeperLink* link_;
    };
    void stopping(uint64_t asked_ns);  // monotonic; the first order counts
    void stopped();                    // waits until the keeper can read it, or is gone
    void yielded();                    // the same
    void settle();                     // waits until it can read all that was said, or is gone

    // --- for the control thread's epoll
    [[nodiscard]] int fd() const { return socket_.fd(); }
    [[nodiscard]] int keeper_pidfd() const { return keeper_.pidfd(); }
    [[nodiscard]] bool lives() const { return keeper_.pidfd() >= 0 && !keeper_.dead(); }
    [[nodiscard]] bool waits_for_room() const { return socket_.waits_for_room(); }
    [[nodiscard]] bool waits_for_time() const { return socket_.waits_for_time(); }
    void flush() { socket_.flush(); }
    // A session that the keeper has acknowledged since; null: none (any more).
    [[nodiscard]] Session* next_acknowledged();
    // The keeper is dead, or is killed: nothing is sent until renew().
    void part();
    // The same: starts another and hands everything over. False if none can be started.
    [[nodiscard]] bool renew();
    // Ends a keeper that cannot be reached: it would start a broker of its own. Does nothing
    // without a keeper.
    void refuse();
    void set_watch(int timer) { watch_ = timer; }

  private:
    struct Left {
        uint32_t number;
        uint32_t uid;
        std::array<int, static_cast<size_t>(RemnantDescriptor::kCount)> descriptors;
    };

    void drop(Kept what, uint32_t row, uint32_t generation);
    void say(KeeperWord word);
    void say(const Left& left);
    void say(Kept what, int descriptor);
    void say(const Session& session);

    OwnProgram program_;
    KeeperSocket socket_;
    Process keeper_;
    std::array<int, 5> segments_ = {-1, -1, -1, -1, -1};  // by Kept
    shm::Descriptor config_;
    std::unordered_map<uint32_t, Session*> sessions_;  // by row
    std::unordered_map<uint32_t, Left> remnants_;      // by number
    uint64_t listener_inode_ = 0;
    int watch_ = -1;
    uint64_t clock_offset_ = 0;
    uint64_t asked_ns_ = 0;  // to stop
    std::string not_upgraded_;
};

}  // namespace dibs
