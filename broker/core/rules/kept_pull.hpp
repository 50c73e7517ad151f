// broker/core/rules/kept_pull.hpp -- a pull that goes on in the next turn, because the log had no
// room for the rest of it: what its caller said, in memory of its own. It dies with the broker.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/command.hpp"

namespace dibs::core {

struct KeptPull {
    KeptPull(const Pull& pull, size_t next_worker);
    KeptPull(const KeptPull&) = delete;
    KeptPull& operator=(const KeptPull&) = delete;

    std::deque<std::string> texts;  // that the rest names
    std::vector<std::vector<std::string_view>> labels;
    std::vector<Pull::Worker> workers;
    Pull command;
    size_t next;  // of its workers; those before it have been reported
};

}  // namespace dibs::core
