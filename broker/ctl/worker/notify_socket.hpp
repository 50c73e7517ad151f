// broker/ctl/worker/notify_socket.hpp -- receives sd_notify(3) messages on a private socket.
// It is a datagram socket in a folder that only this user can enter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

  private:
    std::string path_;
};

class NotifySocket {
  public:
    explicit NotifySocket(const std::string& path);  // Failure
    // Takes what has come; true once READY=1 is among it.
    bool ready();
    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
    shm::Descriptor fd_;
};

}  // namespace dibs::ctl::worker
