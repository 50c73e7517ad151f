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

#include "shm/descriptor.hpp"

namespace dibs {

// Where cgroup2 is mounted; empty: nowhere in sight.
std::string control_group_mount();

// The folder of the group that a process is in: "self", or its number. Empty, and *why, if it has
// none in sight.
std::string control_group_of(const std::string& process, std::string* why);

// The folder of a group, to read what is in it; invalid, errno set: it cannot be opened.
shm::Descriptor open_group(const std::string& folder);

// Whether a descriptor is of cgroup2.
bool is_of_groups(int fd);

struct GroupProcesses {
    std::vector<uint32_t> pids;
    bool all = true;    // false: there are more, or not all of it could be read
    size_t groups = 0;  // that it has looked at: one at least
};

// Processes of the group and of those below it: of no more than so many, and of 256 groups, 16
// deep, beside 1,024 that have no process.
GroupProcesses processes_of_group(const shm::Descriptor& group, size_t most);

// Whether a process is in the group or in one below it.
bool is_in_group(uint32_t pid, const std::string& folder);

// By "populated 0" of a group's cgroup.events. One that has been removed is empty: the kernel
// removes no other. One that cannot be read is not.
bool is_empty_group(const shm::Descriptor& events);

}  // namespace dibs
