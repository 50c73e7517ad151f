// broker/sandbox/multi_user.hpp -- what a broker must be sure of before it serves users who do not
// trust each other.
//
// The boundary is the uid: whoever has the broker's own can trace it, kill it and open every
// session's memory. So `--multi-user` refuses to start where a client could have it, as far as
// that can be seen, and then gives that uid no session; it may only administer. Root is beyond any
// boundary: a broker that runs as root starts, and gives root no session either.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broker/config/config.hpp"

namespace dibs {

// What stands against it, one sentence each; none: it may start. `socket` is the path that it will
// listen on.
//   the socket    its mode lets in nobody but the broker's own uid
//   the files     others can write, or own, a folder on the way to the socket, the configuration or
//                 the program, or one of these files; what they cannot replace in a sticky folder
//                 is as if it were not
//   the uid       real, effective and saved are not one; it stands for users that this namespace
//                 does not map; people log in as it; programs other than the broker run as it
std::vector<std::string> multi_user_obstacles(const Config& config, const std::string& socket);

// The path that it will listen on: of the socket that is lent (-1: none is), else as configured, in
// a folder that is there from now on. Who looks before it is might find another one later.
std::string make_place(const Config& config, int lent);

// The uid that users appear as whom this process's namespace does not map.
uint32_t overflow_uid();

}  // namespace dibs
