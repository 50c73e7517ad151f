// broker/ctl/exec/holder.hpp -- the process that becomes the command.
//
// It attaches, claims, and executes: the broker watches the process by its pidfd, and an exec does
// not end a process. What a session consists of in the process (mappings, descriptors) is gone with
// the exec; the session itself lives as long as its process. So the lease lasts exactly as long as
// the command, whoever else dies, and nothing has to be handed from one process to another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "broker/ctl/exec/options.hpp"

namespace dibs::ctl::exec {

// Both are for the child of a fork and end the process if they fail, with a message.
[[noreturn]] void claim_and_become(const Options& options);
[[noreturn]] void become(const Options& options, const std::vector<std::string>& environment);

// Says on standard error which slots the command has, if asked to.
void tell_grant(const Options& options, const dibs_lease& lease);

}  // namespace dibs::ctl::exec
