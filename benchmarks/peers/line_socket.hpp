// benchmarks/peers/line_socket.hpp -- a connection to a server whose protocol consists of lines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "shm/descriptor.hpp"

namespace dibs::bench {

class LineSocket {
  public:
    bool connect_to(const std::string& path);  // a UNIX socket
    bool connect_to(uint16_t port);            // of the loopback interface
    // These throw if the server has closed the connection.
    void send(std::string_view text);
    std::string_view line();  // the next one, without its end; valid until the next call
    // The next line, which must begin like this.
    std::string_view expect(std::string_view begin);

  private:
    shm::Descriptor socket_;
    char buffer_[8192];
    size_t begin_ = 0;
    size_t end_ = 0;
};

}  // namespace dibs::bench
