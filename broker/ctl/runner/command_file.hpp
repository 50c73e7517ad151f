// broker/ctl/runner/command_file.hpp -- reads the file of a `dibs-runner`: the types that it
// provides, each with its command.
//
// It is the runner's own. The broker never reads it, and nothing that the broker or a client of it
// says becomes part of a command.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "broker/ctl/worker/options.hpp"

namespace dibs::ctl {

struct CommandFile {
    std::vector<worker::Options> types;
    std::vector<std::string> mistakes;  // lines for people, "FILE:LINE:COLUMN: what"
};

// `socket` comes before the file's. Another user than root and this one may not be able to write to
// the file: that is a mistake, too.
CommandFile read_command_file(const std::string& path, const std::string& socket);

}  // namespace dibs::ctl
