// broker/session/control_group.hpp -- finds control groups (cgroup2), and the processes in them.
//
// Only reads. In a unified hierarchy and in a hybrid one alike: the mount is looked up, and so is
// the line "0::" of /proc/PID/cgroup.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dibs {

// Where cgroup2 is mounted; empty: nowhere in sight.
std::string control_group_mount();

// The folder of the group that a process is in: "self", or its number. Empty, and *why, if it has
// none in sight.
std::string control_group_of(const std::string& process, std::string* why);

// Processes of the group and of those below it; of no more than so many.
std::vector<uint32_t> processes_of_group(const std::string& folder, size_t most);

// Whether a process is in the group or in one below it.
bool is_in_group(uint32_t pid, const std::string& folder);

}  // namespace dibs
