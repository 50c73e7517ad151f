// broker/control/epoll.hpp -- waits for descriptors, each with a word that its owner chose.
//
// A wait is exact to the nanosecond. Where epoll_pwait2 is refused (before Linux 5.11, under a
// container's filter or an emulator that does not know it), ppoll waits for the set itself: one
// system call more for each sleep.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

#include "shm/descriptor.hpp"

namespace dibs {

class Epoll {
  public:
    static constexpr size_t kAtOnce = 64;

    Epoll();  // throws std::system_error

    // Readable when something has happened.
    [[nodiscard]] int fd() const { return set_.get(); }
    // False if the kernel has no room for it.
    [[nodiscard]] bool add(int fd, uint32_t events, uint64_t word) const;
    // Explicitly: closing does not remove it where other descriptors refer to the same file.
    void remove(int fd) const;

    // What has happened, some of it: waits for it at most so long, shm::kNever for ever. Valid
    // until the next call. A signal ends the wait.
    [[nodiscard]] std::span<const epoll_event> wait(uint64_t wait_ns);

  private:
    shm::Descriptor set_;
    std::array<epoll_event, kAtOnce> happened_{};
    bool exact_ = true;  // epoll_pwait2 has not been refused yet
};

}  // namespace dibs
