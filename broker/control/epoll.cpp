// broker/control/epoll.cpp -- waits for descriptors by one system call, or by two.
// SPDX-License-Identifier: Apache-2.0
#include "broker/control/epoll.hpp"

#include <poll.h>

#include <cerrno>
#include <ctime>
#include <system_error>

#include "shm/layout.hpp"

namespace dibs {

Epoll::Epoll() : set_(epoll_create1(EPOLL_CLOEXEC)) {
    if (!set_.valid()) throw std::system_error(errno, std::generic_category(), "epoll_create1");
}

bool Epoll::add(int fd, uint32_t events, uint64_t word) const {
    epoll_event event = {};
    event.events = events;
    event.data.u64 = word;
    return epoll_ctl(set_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Epoll::remove(int fd) const {
    (void)epoll_ctl(set_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

std::span<const epoll_event> Epoll::wait(uint64_t wait_ns) {
    timespec wait = {};
    wait.tv_sec = static_cast<time_t>(wait_ns / 1'000'000'000);
    wait.tv_nsec = static_cast<long>(wait_ns % 1'000'000'000);
    const timespec* most = wait_ns == shm::kNever ? nullptr : &wait;
    int count = -1;
    if (exact_) {
        count = epoll_pwait2(set_.get(), happened_.data(), int{kAtOnce}, most, nullptr);
        // Refused by whatever word: a filter says ENOSYS, EPERM, or what it was told to.
        exact_ = count >= 0 || errno == EINTR;
        // It was stopped and continued, say: what has come meanwhile is not left for later.
        if (exact_ && count < 0) count = epoll_wait(set_.get(), happened_.data(), int{kAtOnce}, 0);
    }
    if (!exact_) {
        pollfd anything = {set_.get(), POLLIN, 0};
        if (wait_ns != 0) (void)ppoll(&anything, 1, most, nullptr);
        count = epoll_wait(set_.get(), happened_.data(), int{kAtOnce}, 0);
    }
    return {happened_.data(), count > 0 ? static_cast<size_t>(count) : 0};
}

}  // namespace dibs
