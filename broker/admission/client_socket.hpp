// broker/admission/client_socket.hpp -- reads and closes a client's socket without waiting for it.
//
// Unread packets of a client end with the socket. Descriptors that lie in them are closed in the
// name of the process that closes the socket last, or that receives the packet without room for
// them, and a last close may take as long as the client likes: a TCP connection that lingers does.
// Since Linux 6.16 the kernel lets no descriptors in (broker/admission/listener.hpp). Before, the
// broker receives no packet with descriptors: it only peeks, which closes nothing, and a socket in
// which a descriptor lies ends with a thread, because the kernel lets nothing linger on behalf of a
// thread that ends.
//
//     client ── packet ──► peeked at ──► plain: read
//                              │
//                              └► descriptors: refused, the socket left to a thread that ends
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "shm/descriptor.hpp"

namespace dibs {

class ClientSocket {
  public:
    ClientSocket() = default;
    explicit ClientSocket(shm::Descriptor socket) : socket_(std::move(socket)) {}
    ClientSocket(ClientSocket&& other) noexcept { swap(other); }
    ClientSocket& operator=(ClientSocket&& other) noexcept {
        swap(other);
        return *this;
    }
    ClientSocket(const ClientSocket&) = delete;
    ClientSocket& operator=(const ClientSocket&) = delete;
    ~ClientSocket() { reset(); }

    [[nodiscard]] int get() const { return socket_.get(); }
    [[nodiscard]] bool valid() const { return socket_.valid(); }
    // Of one that holds nothing unread, and to which nothing can be sent any more.
    [[nodiscard]] shm::Descriptor release() { return std::move(socket_); }
    // The set of descriptors that it has been added to: until it is closed it would stay there.
    void watched_in(int epoll) { epoll_ = epoll; }
    void reset();

  private:
    void swap(ClientSocket& other) {
        std::swap(socket_, other.socket_);
        std::swap(epoll_, other.epoll_);
    }

    shm::Descriptor socket_;
    int epoll_ = -1;
};

enum class Packet { kNone, kPlain, kDescriptors, kGone };

// What lies next in the socket; it stays there. One of no bytes is one, too.
Packet next_packet(int socket);
// Nothing more can be sent to it. Plain packets that are unread are read; false if behind them lies
// one with descriptors, which stays.
bool end_reading(int socket);

}  // namespace dibs
