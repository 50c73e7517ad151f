// broker/ctl/exec/options.hpp -- what `dibs exec` is asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/ctl/attachment.hpp"

namespace dibs::ctl::exec {

struct Options {
    PoolOperand pool;
    std::string socket;
    int64_t timeout_ns = DIBS_FOREVER;
    bool now = false;                  // or not at all
    int64_t keepalive_ns = 0;          // 0: the lease is bound to the command's life
    std::optional<int> conflict_exit;  // in place of 75 and 124
    bool verbose = false;
    std::vector<std::pair<std::string, std::string>> variables;  // name, attribute
    std::vector<std::string> labels;
    std::vector<std::pair<std::string, std::string>> claim_options;
    std::vector<std::string> command;
    std::string program;  // the file of command[0]
};

}  // namespace dibs::ctl::exec
