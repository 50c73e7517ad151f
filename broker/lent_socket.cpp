// broker/lent_socket.cpp -- a listening socket that a service manager has opened and lends.
// SPDX-License-Identifier: Apache-2.0
#include "broker/lent_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace dibs {

namespace {

constexpr int kFirst = 3;
const char* const kMark = "DIBS_SOCKET_IS_LENT";

int option(int fd, int name) {
    int value = -1;
    socklen_t size = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

}  // namespace

shm::Descriptor lent_socket() {
    const char* pid = std::getenv("LISTEN_PID");
    const char* count = std::getenv("LISTEN_FDS");
    if (pid == nullptr || count == nullptr || std::to_string(getpid()) != pid) return {};
    if (std::string(count) != "1") {
        throw std::runtime_error("LISTEN_FDS=" + std::string(count) + ": one socket is wanted");
    }
    shm::Descriptor socket(kFirst);
    if (option(kFirst, SO_DOMAIN) != AF_UNIX || option(kFirst, SO_TYPE) != SOCK_SEQPACKET ||
        option(kFirst, SO_ACCEPTCONN) != 1) {
        throw std::runtime_error(
            "descriptor 3 is no listening SOCK_SEQPACKET UNIX socket (ListenSequentialPacket=)");
    }
    const int flags = fcntl(kFirst, F_GETFL);
    if (flags < 0 || fcntl(kFirst, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(kFirst, F_SETFD, FD_CLOEXEC) != 0) {
        throw std::runtime_error("descriptor 3 cannot be used");
    }
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)setenv(kMark, "1", 1);
    return socket;
}

bool is_socket_lent() {
    return std::getenv(kMark) != nullptr;
}

}  // namespace dibs
