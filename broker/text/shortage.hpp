// broker/text/shortage.hpp -- detects a shortage of resources and names the limits behind it.
//
// Resources are memory, descriptors and processes; a shortage may pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <exception>
#include <string>
#include <system_error>

namespace dibs {

inline bool is_shortage(const std::error_code& error) {
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

// What `error` says and, where it is a lack, which limits of this process are near and may be
// behind it: their names, numbers and how to raise them.
std::string with_limits(const std::exception& error);

// Of the control group: a hardened broker may not read it any more. Before there are threads.
void note_task_limit();

}  // namespace dibs
