// tests/fuzz/plain_socket.cpp -- the linker gives the library these calls; what is not about one of
// our numbers goes on to the kernel.
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/plain_socket.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "tests/fuzz/bytes.hpp"

namespace {

using dibs::fuzz::expect;

// No descriptor of this process is so large.
constexpr int kFirst = 1 << 20;
constexpr int kBells = kFirst + 3;   // behind the segments
constexpr int kSocket = kFirst + 5;  // what comes with a packet is before it
constexpr int kEpoll = kFirst + 6;
constexpr int kReserved = kFirst + 7;  // copies of the socket, and behind them nothing
constexpr int kEnd = kReserved + 8;
constexpr std::align_val_t kAlign{4096};

dibs::fuzz::Said now;
bool heard = false;
std::array<int, kEnd - kFirst> opened = {};  // by number
std::array<int, 3> mapped = {};              // by segment
int private_pages = 0;                       // pieces of them

bool ours(int fd) {
    return fd >= kFirst && fd < kEnd;
}

int open_one(int fd) {
    ++opened[static_cast<size_t>(fd - kFirst)];
    return fd;
}

std::span<std::byte> segment(int fd) {
    return fd < kBells ? now.segments[fd - kFirst] : std::span<std::byte>{};
}

}  // namespace

namespace dibs::fuzz {

void say(const Said& said) {
    now = said;
    heard = false;
}

void expect_all_given_back() {
    const auto none = [](int count) { return count == 0; };
    expect(std::all_of(opened.begin(), opened.end(), none), "what was opened is closed");
    expect(std::all_of(mapped.begin(), mapped.end(), none), "what was mapped is unmapped");
    expect(private_pages == 0, "its own memory is given back");
}

}  // namespace dibs::fuzz

extern "C" {

int __real_close(int fd);
ssize_t __real_write(int fd, const void* bytes, size_t size);

int __wrap_socket(int, int, int) {
    return open_one(kSocket);
}
int __wrap_connect(int, const struct sockaddr*, socklen_t) {
    return 0;
}
int __wrap_setsockopt(int, int, int, const void*, socklen_t) {
    return 0;
}
ssize_t __wrap_send(int, const void*, size_t size, int) {
    return static_cast<ssize_t>(size);
}

ssize_t __wrap_recvmsg(int, struct msghdr* message, int) {
    message->msg_flags = 0;
    const size_t room = std::exchange(message->msg_controllen, 0);
    if (std::exchange(heard, true)) return 0;
    const size_t size = std::min(now.packet.size(), message->msg_iov[0].iov_len);
    if (size != 0) std::memcpy(message->msg_iov[0].iov_base, now.packet.data(), size);
    if (size < now.packet.size()) message->msg_flags |= MSG_TRUNC;
    if (now.cut) message->msg_flags |= MSG_CTRUNC;
    std::array<int, kSocket - kFirst> numbers;
    for (size_t i = 0; i < now.descriptors; ++i)
        numbers[i] = open_one(kFirst + static_cast<int>(i));
    const size_t bytes = now.descriptors * sizeof(int);
    expect(CMSG_SPACE(bytes) <= room, "there is room for all that comes with a welcome");
    if (bytes == 0) return static_cast<ssize_t>(size);
    struct cmsghdr* header = static_cast<struct cmsghdr*>(message->msg_control);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), numbers.data(), bytes);
    message->msg_controllen = CMSG_SPACE(bytes);
    return static_cast<ssize_t>(size);
}

int __wrap_fcntl64(int, int command, ...) {
    expect(command == F_DUPFD_CLOEXEC, "of all commands it gives this one only");
    for (int fd = kReserved; fd < kEnd; ++fd) {
        if (opened[static_cast<size_t>(fd - kFirst)] == 0) return open_one(fd);
    }
    errno = EMFILE;
    return -1;
}

// What is said of a session that is not used.
ssize_t __wrap_pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
    const std::span<std::byte> up = segment(fd);
    const auto place = static_cast<size_t>(at);
    expect(fd == kFirst, "only UP is written to");
    if (place > up.size() || size > up.size() - place) return -1;  // it would grow, and is sealed
    std::memcpy(up.data() + place, bytes, size);
    return static_cast<ssize_t>(size);
}

int __wrap_fstat64(int fd, struct stat64* status) {
    *status = {};
    status->st_size = static_cast<off64_t>(segment(fd).size());
    return 0;
}

void* __wrap_mmap64(void*, size_t size, int, int flags, int fd, off_t) {
    if ((flags & MAP_ANONYMOUS) != 0) {
        ++private_pages;
        void* memory = operator new(size, kAlign);
        std::memset(memory, 0, size);
        return memory;
    }
    expect(size <= segment(fd).size(), "a segment is mapped as far as it goes");
    ++mapped[static_cast<size_t>(fd - kFirst)];
    return segment(fd).data();
}

int __wrap_munmap(void* at, size_t) {
    for (size_t which = 0; which < mapped.size(); ++which) {
        if (now.segments[which].data() != at) continue;
        --mapped[which];
        return 0;
    }
    --private_pages;
    operator delete(at, kAlign);
    return 0;
}

int __wrap_madvise(void*, size_t, int) {
    return 0;
}
int __wrap_epoll_create1(int) {
    return open_one(kEpoll);
}
int __wrap_epoll_ctl(int, int, int, struct epoll_event*) {
    return 0;
}
int __wrap_poll(struct pollfd* peer, nfds_t, int) {
    peer->revents = POLLRDHUP;
    return 1;
}

// Nobody wakes who sleeps: his time is over at once, and he looks whether his peer is there.
long __wrap_syscall(long number, ...) {
    expect(number == SYS_futex, "of all calls without a name it makes this one only");
    errno = ETIMEDOUT;
    return -1;
}

int __wrap_close(int fd) {
    if (!ours(fd)) return __real_close(fd);
    expect(--opened[static_cast<size_t>(fd - kFirst)] >= 0, "what is closed was open");
    return 0;
}

ssize_t __wrap_write(int fd, const void* bytes, size_t size) {
    return ours(fd) ? static_cast<ssize_t>(size) : __real_write(fd, bytes, size);
}
}
