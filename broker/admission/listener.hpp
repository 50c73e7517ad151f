// broker/admission/listener.hpp -- the broker's place in the file system: its listening socket.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "shm/descriptor.hpp"

struct sockaddr_un;

namespace dibs {

// Binds and listens. The folder is made (mode 0700, or 0755 for root) if it is not there; a socket
// that a dead broker has left is removed, one that somebody listens on is not. Looking, removing
// and binding happen under a lock (broker/admission/socket_lock.hpp), so that of brokers that start
// at once one listens and the others say so. Removes its own name, and nobody else's, when it goes,
// and then the lock; one that a keeper holds for the next broker leaves both. Throws
// std::runtime_error with the path and what is wrong.
//
// It keeps a spare descriptor: when the table is full it gives that up for the next caller, who
// can so be told, instead of being left in a queue that stays readable for ever.
class Listener {
  public:
    Listener(std::string path, uint32_t mode);
    // An earlier broker's, or a service manager's: bound, and with whoever waits in its queue.
    // Where the lock cannot be had, since the folder is gone, say, its name stays when it goes.
    // `inode`: of its name, from who has bound it; 0: not known.
    Listener(shm::Descriptor inherited, uint64_t inode);
    ~Listener() { close(); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    struct Accepted {
        shm::Descriptor socket;
        bool no_room = false;  // it stands on the spare's place: to be told, and closed by refuse()
        int error = 0;         // no socket, and this is why; 0: nobody is there
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
    // Whether others go on with it when this process ends. An inherited one is others' at first.
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
