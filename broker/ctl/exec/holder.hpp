// broker/ctl/exec/holder.hpp -- the process that becomes the command, and holds its lease.
//
// The broker watches the process that connects, by its pidfd, and an exec does not end a process:
// so the lease lasts exactly as long as the command, whatever other process dies. The exec would
// destroy the parts of a session (mappings, descriptors), and no process would learn of the lease's
// end. So the holder connects and hands the connection to the wrapper, which attaches over it,
// claims, and listens:
//
//     wrapper ── connect ──► holder                    the wrapper dies: the holder leaves
//     wrapper ◄── a connection, or errno ── holder
//     wrapper: attaches, claims, waits for the grant
//     wrapper ── execute {environment} ──► holder: the command
//
// From there on the wrapper may die: the command runs on, and its lease with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "broker/ctl/exec/options.hpp"
#include "shm/descriptor.hpp"

namespace dibs::ctl::exec {

class Holder {
  public:
    explicit Holder(const Options& options);  // forks; Failure

    [[nodiscard]] pid_t pid() const { return pid_; }
    // A socket that the holder has connected to the broker's; Failure.
    [[nodiscard]] shm::Descriptor connect() const;
    // Has it execute the command with this environment, whole. If it cannot, it says so and ends
    // with 126 or 127; if it has died, nothing happens. `bound`: it ends with this process.
    // Failure: there is no memory for it, or no way to tell the holder.
    void execute(const std::vector<std::string>& environment, bool bound) const;

  private:
    [[noreturn]] void obey(int channel, pid_t wrapper) const;  // in the holder
    [[noreturn]] void become(const std::string& environment) const;

    const Options& options_;
    shm::Descriptor channel_;
    pid_t pid_ = -1;
};

// Says on standard error which slots the command has, if asked to.
void tell_grant(const Options& options, const dibs_lease& lease);

}  // namespace dibs::ctl::exec
