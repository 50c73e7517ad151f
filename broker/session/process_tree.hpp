// broker/session/process_tree.hpp -- the control group that a session's processes are in.
//
// A client that says so in its Hello has all that it starts in a group of its own, so its leases
// last until the last of these processes has ended. The broker only reads: it takes the group that
// the kernel says the client is in, and believes no path. What is proved is proved by the
// descriptor of the group's cgroup.events, which the keeper holds as well: it is of this group and
// no other, whatever is made under its path. The path is for looking at processes, and is believed
// only while the inode of its folder, which the kernel never uses again, is the group's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shm/descriptor.hpp"

namespace dibs {

struct ProcessTree {
    uint64_t id = 0;  // inode of the folder; 0: the session has none
    std::string folder = {};
    shm::Descriptor events = {};  // its cgroup.events

    // Some process lives in it, or that it is empty cannot be seen.
    [[nodiscard]] bool is_populated() const;
    // The folder, to read what is in it; invalid: there is none, or another one in its place.
    [[nodiscard]] shm::Descriptor open() const;
};

// The group of a client: one of its user, without groups below it, in which it is alone. Nothing,
// and *why: it is in another one.
std::optional<ProcessTree> tree_of(uint32_t pid, uint32_t uid, std::string* why);

// The same for a successor, by the row's word and what the keeper has held. `whose` it is, for the
// log: without the descriptor it counts as populated for good.
ProcessTree inherited_tree(uint64_t id, shm::Descriptor events, const std::string& whose);

}  // namespace dibs
