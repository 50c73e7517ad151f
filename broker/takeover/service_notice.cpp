// broker/takeover/service_notice.cpp -- sends notices to the service manager ($NOTIFY_SOCKET).
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/service_notice.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "broker/turn/clock.hpp"

namespace dibs {

ServiceNotices::ServiceNotices() {
    if (!connect()) socket_.reset();
}

// Connected, so that poll() says when the manager has room.
bool ServiceNotices::connect() {
    const char* path = std::getenv("NOTIFY_SOCKET");
    if (path == nullptr || (path[0] != '/' && path[0] != '@')) return false;
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const size_t size = std::strlen(path);
    if (size >= sizeof(address.sun_path)) return false;
    std::memcpy(address.sun_path, path, size);
    if (path[0] == '@') address.sun_path[0] = '\0';  // a name that is in no folder
    socket_ = shm::Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const auto length = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + size);
    return socket_.valid() &&
           ::connect(socket_.get(), reinterpret_cast<const struct sockaddr*>(&address), length) ==
               0;
}

ServiceNotices::Sent ServiceNotices::send(const std::string& lines,
                                          std::span<const int> descriptors) const {
    struct iovec part = {const_cast<char*>(lines.data()), lines.size()};
    alignas(struct cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control =
        {};
    struct msghdr packet = {};
    packet.msg_iov = &part;
    packet.msg_iovlen = 1;
    if (!descriptors.empty()) {
        packet.msg_control = control.data();
        packet.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        struct cmsghdr* header = CMSG_FIRSTHDR(&packet);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    ssize_t sent = -1;
    do {
        sent = sendmsg(socket_.get(), &packet, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return Sent::kYes;
    const bool full = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ||
                      errno == ENOMEM || errno == ETOOMANYREFS;
    return full ? Sent::kNoRoom : Sent::kNobody;
}

// False: there is no room now.
bool ServiceNotices::push(const std::string& lines, std::span<const int> descriptors) {
    Sent sent = send(lines, descriptors);
    // A manager that has begun anew listens at the same place.
    if (sent == Sent::kNobody && connect()) sent = send(lines, descriptors);
    if (sent == Sent::kNobody) socket_.reset();
    return sent != Sent::kNoRoom;
}

bool ServiceNotices::try_say(const std::string& lines, std::span<const int> descriptors) {
    return !connected() || (!waiting() && push(lines, descriptors));
}

void ServiceNotices::say(std::string lines) {
    if (!try_say(lines)) waiting_.push_back(std::move(lines));
}

void ServiceNotices::flush() {
    while (waiting()) {
        if (connected() && !push(waiting_.front(), {})) return;
        waiting_.pop_front();
    }
}

bool ServiceNotices::await_room(uint64_t deadline_ns) const {
    constexpr int kMomentMs = 5;
    const uint64_t now = Clock::monotonic();
    if (now >= deadline_ns) return false;
    const auto left_ms = static_cast<int>((deadline_ns - now) / 1'000'000 + 1);
    struct pollfd room = {socket_.get(), POLLOUT, 0};
    if (poll(&room, 1, 0) <= 0) return poll(&room, 1, left_ms) > 0;
    (void)poll(nullptr, 0, std::min(left_ms, kMomentMs));
    return true;
}

void ServiceNotices::settle(uint32_t ms) {
    const uint64_t deadline_ns = Clock::monotonic() + uint64_t{ms} * 1'000'000;
    flush();
    while (waiting() && await_room(deadline_ns))
        flush();
}

}  // namespace dibs
