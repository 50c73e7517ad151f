// broker/admission/listener.hpp -- makes the broker's listening socket and accepts its connections.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "shm/descriptor.hpp"

struct sockaddr_un;

namespace dibs {

// Binds and listens. The folder is made (mode 0700, or 0755 for root) if it is not there; a socket
// that a dead broker has left is removed, one that a process listens on is not. Looking, removing
// and binding happen under a lock (broker/admission/socket_lock.hpp), so that of brokers that start
// at once one listens and the others report that. At its end it removes its own name, and no other,
// and then the lock; a socket that a keeper holds for the next broker leaves both. Throws
// std::runtime_error with the path and what is wrong.
//
// It keeps a spare descriptor: when the table is full it closes the spare one for the next caller,
// which can so be told, instead of being left in a queue that stays readable for ever.
class Listener {
  public:
    Listener(std::string path, uint32_t mode);
    // An earlier broker's, or a service manager's: bound, and with connections waiting in its
    // queue. Where the lock cannot be had, since the folder is gone, say, its name stays at the
    // end. `inode`: of its name, from the process that bound it; 0: not known.
    Listener(shm::Descriptor inherited, uint64_t inode);
    ~Listener() { close(); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    struct Accepted {
        shm::Descriptor socket;
        bool no_room = false;  // it stands on the spare's place: to be told, and closed by refuse()
        int error = 0;         // no socket, and this is why; 0: no connection
    };
    [[nodiscard]] Accepted accept();
    // Closes a caller for whom there was no room, and has the spare again.
    void refused();

    // Whether callers may pass descriptors (SO_PASSRIGHTS): if not, what they send with some fails
    // at their end, from the connect on. Kernels before 6.16 let them in.
    void let_descriptors_in(bool yes);

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] bool is_lent() const { return is_lent_; }
    [[nodiscard]] uint64_t inode() const { return inode_; }
    // Whether another process goes on with it when this one ends. An inherited one initially is
    // another process's.
    void leave_name(bool yes) { leaves_name_ = yes; }
    void close();

  private:
    void bind_to(const struct sockaddr_un& address, uint32_t mode);

    std::string path_;
    shm::Descriptor lock_;
    shm::Descriptor socket_;
    shm::Descriptor spare_;
    uint64_t inode_ = 0;    // of its name
    bool is_lent_ = false;  // its name is a service manager's, and stays
    bool leaves_name_ = false;
};

}  // namespace dibs
