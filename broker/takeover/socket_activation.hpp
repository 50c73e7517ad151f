// broker/takeover/socket_activation.hpp -- takes the descriptors that a service manager passes.
//
// These are a listening socket that the manager lends, and what it has stored for the keeper.
//
// The protocol of sd_listen_fds_with_names(3), without its library: $LISTEN_PID names the process
// that is meant, $LISTEN_FDS counts descriptors from 3 on, $LISTEN_FDNAMES has their names. The
// manager owns the socket's name: no broker removes it. The environment records that, for every
// broker that is started later.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "shm/descriptor.hpp"

namespace dibs {

struct PassedDescriptor {
    std::string name;
    shm::Descriptor descriptor;
};

struct PassedDescriptors {
    shm::Descriptor listener;              // invalid if none is lent
    std::vector<PassedDescriptor> stored;  // everything else: unlooked at, but for its name
};

// Takes them. Before any thread is started. Throws std::runtime_error if what is lent is not one
// socket that a broker can listen on.
[[nodiscard]] PassedDescriptors passed_descriptors();

// To this process, or to the one that started it.
[[nodiscard]] bool is_socket_activated();

}  // namespace dibs
