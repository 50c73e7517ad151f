// broker/ctl/worker/forerunners.hpp -- a `dibs-runner`'s control group, and what runners that have
// died have left beside it.
//
//   GROUP of the service                     delegated to its user
//     dibs-runner-PID-START                  all that the runner's workers are and start
//       POOL-TYPE-INDEX                      a worker
//     dibs-runner-PID-START-self             the runner, where a limit needs GROUP to be empty
//
// PID and START, its start time, name the runner: one that is not there, or has started at another
// time, is dead, whatever process has its number now.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "broker/ctl/tree/tree_leaf.hpp"

namespace dibs::ctl::worker {

// Kills what dead runners have left, waits until it is gone, and makes this one's. Null, and *why:
// no group can be had. Failure: what was left does not end.
std::unique_ptr<TreeLeaf> make_runner_tree(std::string* why);

// Has groups below `tree` limited by a controller, "memory" or "cpu". For that no process may be in
// the group above: this one and its guard leave it. Empty, or why it cannot be.
std::string enable_controller(const TreeLeaf& tree, const std::string& controller, pid_t guard);

}  // namespace dibs::ctl::worker
