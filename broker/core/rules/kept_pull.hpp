// broker/core/rules/kept_pull.hpp -- keeps a pull that the log had no room to finish.
// It is a copy of what the caller said; the next turn continues it, and it dies with the broker.
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
