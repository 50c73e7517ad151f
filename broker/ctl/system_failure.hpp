// broker/ctl/system_failure.hpp -- reports a system call that must not fail: dibs itself failed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

// Says what errno says now.
inline Failure system_failure(const std::string& what) {
    return {kExitOwnFailure, what + ": " + std::strerror(errno)};
}

}  // namespace dibs::ctl
