// broker/takeover/standby.hpp -- the keeper's handle on a standby: a broker started ahead.
//
//   none ── a moment after the broker serves: start() ──► waits ── take(): begin ──► is the broker
//     ▲                                                     │
//     └── it has ended: ended() · not wanted: let_go() ─────┘
//         the broker has grown since: look()
//
// A start takes milliseconds, in which no broker serves: the program is loaded and linked, memory
// is touched for the first time. A standby has done that when its predecessor dies. It holds
// nothing of the service, no descriptor and no message, until it receives *begin*, and a keeper
// without a standby starts a broker then: so a standby can be killed at any time
// (broker/takeover/head_start.hpp is its own side).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "broker/takeover/keeper_child.hpp"
#include "broker/takeover/keeper_socket.hpp"
#include "shm/layout.hpp"

namespace dibs {

class Standby {
  public:
    // Like the broker that serves, in memory: twice as much is taken for longer than a takeover.
    static constexpr uint64_t kMemoryMaxKib = 65'536;

    struct Started {
        Process process;
        KeeperSocket socket;
    };

    // A broker serves, and if it dies another is wanted.
    void plan(uint64_t now_ns);
    // None is wanted any more; one that waits stays.
    void cancel() { due_ns_ = shm::kNever; }
    // When start() is to be called.
    [[nodiscard]] uint64_t due_ns() const { return due_ns_; }
    // What a broker after `like` would be. What fails is tried again, ever more seldom.
    void start(const OwnProgram& program, bool replaced, const Process& like, uint64_t now_ns);

    // Now and then, when the keeper is awake anyway: one that was started when `like` was smaller
    // is let go, and another is due a moment later.
    void look(const Process& like, uint64_t now_ns);

    // Readable: it has ended by itself. -1: no standby.
    [[nodiscard]] int pidfd() const { return process_.pidfd(); }
    // Another is due after a pause, the longer the sooner this one has ended.
    std::optional<Process::Ending> ended(uint64_t now_ns);

    // The one that waits, if it is the file that would be started now, and runs.
    [[nodiscard]] std::optional<Started> take(const OwnProgram& program, bool replaced);
    // Ends it; it has nothing of the service's, and is not waited for.
    void let_go();
    // Waits for the end of what was let go, a moment at most.
    void settle();

  private:
    void try_later(uint64_t now_ns);

    Process process_;
    Process leaving_;  // was let go, and has perhaps not ended yet
    KeeperSocket socket_;
    std::optional<ProgramFile> file_;
    uint64_t due_ns_ = shm::kNever;
    uint64_t pause_ns_ = 0;  // before the next attempt
    uint64_t started_ns_ = 0;
    uint64_t look_ns_ = 0;  // not before
    uint64_t kib_ = 0;      // of the broker, when this one was started
};

}  // namespace dibs
