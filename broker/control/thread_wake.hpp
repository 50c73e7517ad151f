// broker/control/thread_wake.hpp -- wakes another thread of the broker that sleeps on descriptors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "shm/descriptor.hpp"

namespace dibs {

// An eventfd of the broker's own.
class ThreadWake {
  public:
    ThreadWake() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (!fd_.valid()) throw std::system_error(errno, std::generic_category(), "eventfd");
    }
    [[nodiscard]] int fd() const { return fd_.get(); }
    void call() const {
        const uint64_t one = 1;
        (void)!write(fd_.get(), &one, sizeof(one));  // full means called
    }
    void answer() const {
        uint64_t calls = 0;
        (void)!read(fd_.get(), &calls, sizeof(calls));
    }

  private:
    shm::Descriptor fd_;
};

}  // namespace dibs
