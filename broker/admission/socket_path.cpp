// broker/admission/socket_path.cpp -- finds the default socket path, as libdibs does.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/socket_path.hpp"

#include <cstdlib>

namespace dibs {

std::string default_socket() {
    const char* socket = std::getenv("DIBS_SOCKET");
    if (socket != nullptr && *socket != '\0') return socket;
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && *runtime != '\0') return std::string(runtime) + "/dibs/dibs.sock";
    return "/run/dibs/dibs.sock";
}

}  // namespace dibs
