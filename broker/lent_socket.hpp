// broker/lent_socket.hpp -- a listening socket that a service manager has opened and lends.
//
// The protocol of sd_listen_fds(3), without its library: $LISTEN_PID names the process that is
// meant, $LISTEN_FDS counts descriptors from 3 on. The socket's name stays the manager's: no broker
// removes it. That is remembered in the environment, for every broker that is started later.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shm/descriptor.hpp"

namespace dibs {

// Takes it; invalid if nobody lends one to this process. Before any thread is started. Throws
// std::runtime_error if it is not one that a broker can listen on.
[[nodiscard]] shm::Descriptor lent_socket();

// Of this process, or of the one that started it.
[[nodiscard]] bool is_socket_lent();

}  // namespace dibs
