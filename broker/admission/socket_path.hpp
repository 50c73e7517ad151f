// broker/admission/socket_path.hpp -- finds the default path of the broker's socket.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace dibs {

// $DIBS_SOCKET, else $XDG_RUNTIME_DIR/dibs/dibs.sock, else /run/dibs/dibs.sock.
std::string default_socket();

}  // namespace dibs
