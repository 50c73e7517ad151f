// broker/session/process_tree.hpp -- the control group that a session's processes are in.
//
// A client that says so in its Hello has all that it starts in a group of its own, so its leases
// last until the last of these processes has ended. The broker only reads: it takes the group that
// the kernel says the client is in, and believes no path. The inode of the group's folder is never
// used again while the system runs, so it alone tells a successor which group was meant.
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
    bool gone = false;            // a successor has looked for it

    // Some process lives in it, or that it is empty cannot be seen.
    [[nodiscard]] bool is_populated() const;
};

// The group of a client: one of its user, without groups below it, in which it is alone. Nothing,
// and *why: it is in another one.
std::optional<ProcessTree> tree_of(uint32_t pid, uint32_t uid, std::string* why);

// The same for a successor, by the row's words: where its process is, else wherever it is.
ProcessTree find_tree(uint64_t id, uint32_t pid, uint32_t uid);

}  // namespace dibs
