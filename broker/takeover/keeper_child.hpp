// broker/takeover/keeper_child.hpp -- starts and watches the partner process, broker or keeper.
//
// A process is held by its pidfd alone, whether it is a child or not: readable means that all its
// threads have ended, which is the proof of death that a successor waits for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "shm/descriptor.hpp"

namespace dibs {

// Of a broker that leaves everything as it is to the next one: an upgrade, or a snapshot that was
// loaded.
inline constexpr int kExitYielded = 3;
// Of a broker that cannot begin for want of something that the next one may find: memory, say, or
// descriptors. What it was to go on from is not at fault.
inline constexpr int kExitUnable = 4;

// Which file is executed, whatever it is called.
struct ProgramFile {
    dev_t device;
    ino_t inode;
    bool operator==(const ProgramFile&) const = default;
};

// How keeper and broker call each other up: the same program, with the options it was called with.
struct OwnProgram {
    std::string path;  // where this program lay when it began: an upgrade has put another there
    std::vector<std::string> options;

    static OwnProgram called_with(std::vector<std::string> options);
    // Another file lies at that path by now.
    [[nodiscard]] bool replaced() const;
    // What Process::start() would start now, or start_own(). Nothing: it cannot be known.
    [[nodiscard]] std::optional<ProgramFile> file(bool at_path) const;
};

// Of the process that a pidfd stands for, -1 once it is gone; nothing: it is no pidfd.
[[nodiscard]] std::optional<pid_t> pid_of(int pidfd);

class Process {
  public:
    Process() = default;
    explicit Process(shm::Descriptor pidfd) : pidfd_(std::move(pidfd)) {}
    // Starts the program with `option` naming the socket, which the child inherits; in a process
    // group of its own, so that a terminal's signals reach its partner alone. Throws
    // std::system_error.
    static Process start(const OwnProgram& program, const std::string& option, int socket);
    // The same, but what this process is itself, whatever lies at the path, if anything does.
    static Process start_own(const OwnProgram& program, const std::string& option, int socket);
    static shm::Descriptor own_pidfd();

    [[nodiscard]] int pidfd() const { return pidfd_.get(); }
    [[nodiscard]] bool dead() const;
    // Waits for its death, for so long at most. False: it lives.
    [[nodiscard]] bool await_death(int ms) const;
    void signal(int number) const;
    // Ends what it has started and left in its process group, dead or not, before ending().
    void kill_group() const;
    // A child of ours that was stopped and not continued.
    [[nodiscard]] bool stopped() const;

    struct Ending {
        bool by_signal;
        int number;  // the signal, or the exit code
    };
    // Once it is dead: how, if it was our child to wait for.
    [[nodiscard]] std::optional<Ending> ending() const;

  private:
    static Process started(pid_t pid);

    shm::Descriptor pidfd_;
};

// " with exit code 1"; nothing where it is not known.
[[nodiscard]] std::string shown(const std::optional<Process::Ending>& ending);

}  // namespace dibs
