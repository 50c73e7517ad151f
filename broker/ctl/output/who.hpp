// broker/ctl/output/who.hpp -- looks up names of users and processes on this machine.
//
// The broker gives numbers; the tool looks up their names, with its own rights. Users choose these
// names: code that shows them on a terminal must escape them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dibs::ctl {

// By name, or by number where it has no name.
std::string user_name(uint32_t uid);
// "alice" or "1000"; nothing: there is no such user.
std::optional<uint32_t> user_number(const std::string& text);
std::string group_name(uint32_t gid);

// What the kernel calls the process's command, 15 bytes at most; empty: it is not known.
std::string command_name(uint32_t pid);

// "process 21245 (python3) of user alice".
std::string process_text(uint32_t pid, const std::string& command, uint32_t uid);
// The same of a process on this machine.
std::string process_text(uint32_t pid);

}  // namespace dibs::ctl
