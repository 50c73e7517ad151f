// broker/takeover/keeper_socket.cpp -- sends and receives messages between keeper and broker.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/keeper_socket.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "broker/text/shortage.hpp"

namespace dibs {

namespace {

// Takes ownership of everything that came with a packet.
void take_descriptors(struct msghdr& message, KeeperPacket& packet) {
    for (struct cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
            shm::Descriptor owned(fd);
            if (packet.count < kKeptMax) packet.descriptors[packet.count++] = std::move(owned);
        }
    }
}

}  // namespace

std::array<shm::Descriptor, 2> KeeperSocket::make_pair() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        throw std::system_error(errno, std::generic_category(), "socketpair");
    }
    return {shm::Descriptor(ends[0]), shm::Descriptor(ends[1])};
}

bool KeeperSocket::push(const KeeperMessage& message, std::span<const int> descriptors) {
    KeeperMessage copy = message;
    struct iovec part = {&copy, sizeof(copy)};
    alignas(struct cmsghdr) std::array<char, CMSG_SPACE(kKeptMax * sizeof(int))> control = {};
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
    for (;;) {
        if (sendmsg(socket_.get(), &packet, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
        if (errno == EINTR) continue;
        const bool full = errno == EAGAIN || errno == EWOULDBLOCK;
        lacked_ = !full && is_shortage({errno, std::generic_category()});
        // A partner that is gone is noticed by its pidfd; what it misses it does not need.
        return !full && !lacked_;
    }
}

void KeeperSocket::send(const KeeperMessage& message, std::span<const int> descriptors) {
    if (waiting_.empty() && push(message, descriptors)) return;
    Waiting waiting = {message, {}, descriptors.size()};
    std::copy(descriptors.begin(), descriptors.end(), waiting.descriptors.begin());
    waiting_.push_back(waiting);
}

void KeeperSocket::send_ahead(const KeeperMessage& message) {
    if (!push(message, {})) waiting_.push_front({message, {}, 0});
}

void KeeperSocket::flush() {
    while (!waiting_.empty()) {
        const Waiting& next = waiting_.front();
        if (!push(next.message, std::span(next.descriptors).first(next.count))) return;
        waiting_.pop_front();
    }
}

void KeeperSocket::forget(Kept what, uint32_t row, uint32_t generation) {
    std::erase_if(waiting_, [&](const Waiting& waiting) {
        const KeeperMessage& message = waiting.message;
        return message.word == KeeperWord::kHold && message.what == what && message.row == row &&
               message.generation == generation;
    });
}

void KeeperSocket::forget(Kept what) {
    std::erase_if(waiting_, [&](const Waiting& waiting) {
        return waiting.message.word == KeeperWord::kHold && waiting.message.what == what;
    });
}

KeeperSocket::Received KeeperSocket::receive(KeeperPacket& packet) const {
    packet = KeeperPacket();
    struct iovec part = {&packet.message, sizeof(packet.message)};
    alignas(struct cmsghdr) std::array<char, CMSG_SPACE(kKeptMax * sizeof(int))> control = {};
    struct msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t size = 0;
    do {
        size = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (size < 0 && errno == EINTR);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::kNothing;
    take_descriptors(message, packet);
    const bool whole = size == static_cast<ssize_t>(sizeof(packet.message)) &&
                       packet.message.magic == kKeeperMagic &&
                       packet.message.text_size <= sizeof(packet.message.text);
    if (whole && (message.msg_flags & MSG_CTRUNC) != 0) return Received::kCut;
    return whole ? Received::kPacket : Received::kClosed;
}

}  // namespace dibs
