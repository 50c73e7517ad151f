// tests/process/tracer.hpp -- a thread of another process that is run from one system call to the
// next, so that a test can end it at a known one.
//
// Everything is done by the thread that made the tracer; while it looks, the other one stands
// still. What is let go of runs on as if nobody had looked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>

#include "broker/takeover/keeper_socket.hpp"

namespace dibs::test {

inline constexpr const char* kMayNotTrace = "this process may not trace others";

// Where a traced thread stands: before a system call, or behind it.
struct Call {
    bool begins = false;
    uint64_t number = 0;                  // begins
    std::array<uint64_t, 6> arguments{};  // begins
};

class Tracer {
  public:
    // Of a child that has asked to be traced and stands behind its execve(). Nothing if it has
    // ended instead: it may not be traced.
    static std::optional<Tracer> of_child(pid_t pid);
    // Of a thread that runs. Nothing where this process may not trace it.
    static std::optional<Tracer> of_running(pid_t tid);
    ~Tracer();
    Tracer(Tracer&& other) noexcept;
    Tracer(const Tracer&) = delete;
    Tracer& operator=(const Tracer&) = delete;

    [[nodiscard]] pid_t tid() const { return tid_; }
    // Runs to the next beginning or end of a system call; nothing: it has ended.
    std::optional<Call> next();
    // Runs to the next process that it starts; that one stands at its first instruction.
    std::optional<Tracer> next_child();
    // What the call that begins here says to keeper or broker, if it does.
    [[nodiscard]] std::optional<KeeperMessage> said(const Call& call) const;
    // Kills the whole process and waits until this thread is no more.
    void kill();
    void let_go();

  private:
    explicit Tracer(pid_t tid) : tid_(tid) {}
    [[nodiscard]] uint64_t peek(uint64_t address) const;
    // The next stop, with the event that it is for; nothing: it has ended.
    std::optional<int> go_on(int request);

    pid_t tid_ = -1;
    int signal_ = 0;  // that it stands before, and is to be given
};

}  // namespace dibs::test
