// broker/ctl/worker/guard.hpp -- ends the processes of a worker that was killed.
//
// The kernel kills the processes of a worker with it (PR_SET_PDEATHSIG), but not what those have
// started. A process of its own, in a session of its own, receives each group's number over a pipe;
// at the end of the pipe, which is the worker's end, it kills the process groups that are left, and
// all that is in the worker's control group.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

#include "shm/descriptor.hpp"

namespace dibs::ctl::worker {

class Guard {
  public:
    // Starts the process; Failure. `tree`: the folder of the worker's control group, or empty.
    explicit Guard(std::string tree);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    void add(pid_t group) const {
        groups_.insert(group);
        tell(group);
    }
    void remove(pid_t group) const {
        groups_.erase(group);
        tell(-group);
    }
    [[nodiscard]] bool has(pid_t group) const { return groups_.count(group) != 0; }
    // Until it is reaped; else -1.
    [[nodiscard]] pid_t pid() const { return pid_; }
    // To be polled, with POLLERR once the process has ended: it was killed.
    [[nodiscard]] int fd() const { return pipe_.get(); }
    void reap();
    // Once it has ended: no more of it; another one, which knows what the last one did (Failure).
    void give_up();
    void start();

  private:
    void tell(pid_t word) const;

    std::string tree_;
    shm::Descriptor pipe_;
    pid_t pid_ = -1;
    mutable std::set<pid_t> groups_;
};

}  // namespace dibs::ctl::worker
