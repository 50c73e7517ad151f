// broker/listener.hpp -- the broker's place in the file system: its listening socket.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "shm/descriptor.hpp"

namespace dibs {

// Binds and listens. The folder is made (mode 0700, or 0755 for root) if it is not there; a socket
// that a dead broker has left is removed, one that somebody listens on is not. Removes its name
// when it goes. Throws std::runtime_error with the path and what is wrong.
class Listener {
  public:
    Listener(std::string path, uint32_t mode);
    ~Listener() { close(); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] const std::string& path() const { return path_; }
    void close();

  private:
    std::string path_;
    shm::Descriptor socket_;
};

}  // namespace dibs
