// broker/ctl/command_path.hpp -- finds the program that a command names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace dibs::ctl {

// The file that execvp(3) would run. Failure: 127 if no file is found, 126 if it cannot be
// executed.
std::string find_command(const std::string& name);

}  // namespace dibs::ctl
