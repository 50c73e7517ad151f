// broker/ctl/subcommand.hpp -- what a subcommand of `dibs` is: a function in a file of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dibs::ctl {

// Exit codes of every subcommand.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// `argv[0]` is the subcommand's own name.
int run_replay(int argc, char** argv);
int run_version(int argc, char** argv);

}  // namespace dibs::ctl
