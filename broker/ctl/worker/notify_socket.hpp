// broker/ctl/worker/notify_socket.hpp -- receives sd_notify(3) messages on a private socket.
// It is a datagram socket in a folder that only this user can enter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <string>

#include "shm/descriptor.hpp"

namespace dibs::ctl::worker {

// Goes away with its sockets.
class NotifyFolder {
  public:
    NotifyFolder();  // Failure
    ~NotifyFolder();
    NotifyFolder(const NotifyFolder&) = delete;
    NotifyFolder& operator=(const NotifyFolder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }
    // Other users may find the sockets; each takes messages of its own user alone.
    void let_in() const { (void)chmod(path_.c_str(), 0711); }

  private:
    std::string path_;
};

class NotifySocket {
  public:
    // Failure. `user`: who may write to it beside root.
    NotifySocket(const std::string& path, uid_t user);
    // Takes what has come; true once READY=1 is among it.
    bool ready();
    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] uid_t user() const { return user_; }

  private:
    std::string path_;
    uid_t user_;
    shm::Descriptor fd_;
};

}  // namespace dibs::ctl::worker
