// tests/process/pushed.hpp -- descriptors that nobody has asked for, and those whose last close
// takes as long as their owner likes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "shm/descriptor.hpp"

namespace dibs::test {

// Sends a packet with `count` copies of a descriptor.
inline ssize_t push(
    int socket, const void* packet, size_t size, int count, int what = STDIN_FILENO) {
    std::vector<char> control(CMSG_SPACE(sizeof(int) * static_cast<size_t>(count)));
    struct iovec part = {const_cast<void*>(packet), size};
    struct msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
        std::memcpy(CMSG_DATA(header) + static_cast<size_t>(i) * sizeof(int), &what, sizeof(what));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

// A TCP connection with more in it than its other end has room for: whoever closes it last waits
// for an hour, or until that end is closed.
struct Lingering {
    Lingering() {
        const shm::Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        struct sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* name = reinterpret_cast<struct sockaddr*>(&address);
        socklen_t size = sizeof(address);
        (void)bind(listener.get(), name, size);
        (void)listen(listener.get(), 1);
        (void)getsockname(listener.get(), name, &size);
        writer = shm::Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        (void)connect(writer.get(), name, size);
        reader = shm::Descriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        const std::vector<char> some(1 << 16);
        while (send(writer.get(), some.data(), some.size(), MSG_NOSIGNAL) > 0) {
        }
    }
    // In a packet, by a process that ends with it: that one lingers for nothing, and nobody else
    // here has the connection any more. False if the packet could not be sent.
    bool push_to(int socket, const void* packet, size_t packet_size) {
        int go[2];
        if (pipe(go) != 0) return false;
        const pid_t pusher = fork();
        if (pusher == 0) {
            char none = 0;
            (void)!read(go[0], &none, 1);
            const struct linger hour = {1, 3600};
            (void)setsockopt(writer.get(), SOL_SOCKET, SO_LINGER, &hour, sizeof(hour));
            _exit(push(socket, packet, packet_size, 1, writer.get()) > 0 ? 0 : 1);
        }
        writer.reset();
        (void)!write(go[1], "", 1);
        int status = 0;
        (void)waitpid(pusher, &status, 0);
        close(go[0]);
        close(go[1]);
        return status == 0;
    }

    shm::Descriptor writer;
    shm::Descriptor reader;
};

}  // namespace dibs::test
