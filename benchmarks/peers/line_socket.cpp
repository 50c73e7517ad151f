// benchmarks/peers/line_socket.cpp -- a connection to a server whose protocol consists of lines.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/line_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace dibs::bench {

bool LineSocket::connect_to(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    socket_ = shm::Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool LineSocket::connect_to(uint16_t port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket_ = shm::Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    (void)setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

void LineSocket::send(std::string_view text) {
    if (write(socket_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        throw std::runtime_error("a server takes no command");
    }
}

std::string_view LineSocket::line() {
    for (;;) {
        const std::string_view unread(buffer_ + begin_, end_ - begin_);
        const size_t length = unread.find("\r\n");
        if (length != std::string_view::npos) {
            begin_ += length + 2;
            return unread.substr(0, length);
        }
        std::memmove(buffer_, unread.data(), unread.size());
        end_ = unread.size();
        begin_ = 0;
        const ssize_t count = read(socket_.get(), buffer_ + end_, sizeof buffer_ - end_);
        if (count <= 0) throw std::runtime_error("a server has closed its connection");
        end_ += static_cast<size_t>(count);
    }
}

std::string_view LineSocket::expect(std::string_view begin) {
    const std::string_view found = line();
    if (!found.starts_with(begin)) {
        throw std::runtime_error(std::string(begin) + " expected, not " + std::string(found));
    }
    return found;
}

}  // namespace dibs::bench
