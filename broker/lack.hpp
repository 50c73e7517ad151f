// broker/lack.hpp -- what a process may lack now and have a moment later: memory, descriptors,
// processes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <system_error>

namespace dibs {

inline bool is_lack(const std::error_code& error) {
    switch (error.value()) {
        case EAGAIN:
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
        case ENOSPC:
        case ETOOMANYREFS:
            return true;
        default:
            return false;
    }
}

}  // namespace dibs
