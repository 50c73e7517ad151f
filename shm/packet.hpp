// shm/packet.hpp -- reads packets from a peer that may have hung up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>

namespace dibs::shm {

// As recvmsg. Of a peer that hung up before it read all that it was sent, the kernel tells that
// first (ECONNRESET, once), and what the peer had said before is read after that.
inline ssize_t receive_packet(int socket, msghdr* message, int flags) {
    const ssize_t size = recvmsg(socket, message, flags);
    return size < 0 && errno == ECONNRESET ? recvmsg(socket, message, flags) : size;
}

inline ssize_t receive_packet(int socket, void* packet, size_t room) {
    const ssize_t size = recv(socket, packet, room, 0);
    return size < 0 && errno == ECONNRESET ? recv(socket, packet, room, 0) : size;
}

// Whether a send failed because the peer has hung up: what it said before can still be read.
inline bool peer_has_hung_up() {
    return errno == EPIPE || errno == ECONNRESET;
}

}  // namespace dibs::shm
