// broker/service_notice.cpp -- what a service manager is told: datagrams to $NOTIFY_SOCKET.
// SPDX-License-Identifier: Apache-2.0
#include "broker/service_notice.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "shm/descriptor.hpp"

namespace dibs {

void notify_service(const std::string& lines) {
    const char* path = std::getenv("NOTIFY_SOCKET");
    if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const size_t size = std::strlen(path);
    if (size >= sizeof(address.sun_path)) return;
    std::memcpy(address.sun_path, path, size);
    if (path[0] == '@') address.sun_path[0] = '\0';  // a name that is in no folder
    const shm::Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return;
    const auto length = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + size);
    // A manager that does not listen misses it: serving goes on.
    (void)sendto(socket.get(),
                 lines.data(),
                 lines.size(),
                 MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const struct sockaddr*>(&address),
                 length);
}

}  // namespace dibs
