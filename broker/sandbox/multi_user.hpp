// broker/sandbox/multi_user.hpp -- checks that a broker may serve users who distrust each other.
//
// The boundary is the uid: a process with the broker's uid can trace it, kill it and open every
// session's memory. So `--multi-user` refuses to start where a client could have that uid, as far
// as that can be seen, and then gives that uid no session; it may only administer. Root is beyond
// any boundary: a broker that runs as root starts, and gives root no session either.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broker/config/config.hpp"

namespace dibs {

// What stands against it, one sentence each; none: it may start. `socket` is the path that it will
// listen on.
//   the socket    its mode lets in only the broker's own uid
//   the files     other users can write, or own, a folder on the way to the socket, the
//                 configuration or the program, or one of these files; what they cannot replace
//                 in a sticky folder is as if it were not
//   the uid       real, effective and saved are not one; it stands for users that this namespace
//                 does not map; people log in as it; programs other than the broker run as it
std::vector<std::string> multi_user_obstacles(const Config& config, const std::string& socket);

// The path that it will listen on: of the lent socket (-1: not lent), else as configured, in a
// folder that exists from now on. A look before that might find another path later.
std::string make_place(const Config& config, int lent);

// The uid of users that this process's namespace does not map.
uint32_t overflow_uid();

}  // namespace dibs
