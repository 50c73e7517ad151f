// broker/admission/socket_lock.hpp -- locks a socket's path against other starting brokers.
//
// The lock is an empty file, PATH.lock, held with flock(2). Its holder may look at the socket's
// name, remove it and make it. A broker that ends removes the file last, so a broker that has
// waited for it may then hold a file without a name: it locks the file that has the name by then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "shm/descriptor.hpp"

namespace dibs {

std::string lock_of(const std::string& socket);

// Throws std::runtime_error, with the path, where it cannot be had, or is another's file.
shm::Descriptor open_lock(const std::string& socket);

// SIGTERM or SIGINT came while a start waited; the signal still waits to be taken.
struct StartEnds : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class SocketLock {
  public:
    // Waits as long as another broker holds it, which is an instant; for a process that is not a
    // broker it waits five seconds, and then throws std::runtime_error. It logs which process it
    // waits for. The two signals end the wait where they are blocked: throws StartEnds.
    static std::unique_ptr<SocketLock> to_begin(int fd, const std::string& socket);
    // Null: it is held for longer than an end may wait. That is logged, too.
    static std::unique_ptr<SocketLock> to_end(int fd, const std::string& socket);
    ~SocketLock();
    SocketLock(const SocketLock&) = delete;
    SocketLock& operator=(const SocketLock&) = delete;

    // Whether it is still the lock of this socket.
    [[nodiscard]] bool lies_at(const std::string& socket) const;

  private:
    explicit SocketLock(int fd) : fd_(fd) {}

    int fd_;
};

}  // namespace dibs
