// broker/arguments.hpp -- parses dibsd's command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dibs {

struct Arguments {
    std::string config;        // file; empty: defaults
    std::string check_config;  // file to check, then exit
    std::string socket;        // before the configuration's and the environment's
    int state_fd = -1;         // STATE of an earlier broker, or an empty memfd
    std::string load;          // a snapshot to go on from instead
    int ready_fd = -1;         // where the ready line goes; -1 = standard output
    bool no_keeper = false;
    bool multi_user = false;
    bool no_standby = false;
    // How keeper and broker call each other up.
    int link_fd = -1;                   // be the broker of the keeper at the other end
    int keep_fd = -1;                   // be the keeper of the broker at the other end
    std::optional<uint64_t> ahead_kib;  // be the next broker, and have so much memory until then

    // What a successor is called with.
    [[nodiscard]] std::vector<std::string> options() const;
};

// Nothing, and *exit_code, if there is nothing more to do: help was asked for, or a mistake.
std::optional<Arguments> parse_arguments(int argc, char** argv, int* exit_code);

}  // namespace dibs
