// broker/client_socket.cpp -- a connection's socket, while its client can still send on it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/client_socket.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "broker/log.hpp"

namespace dibs {

namespace {

// Room for the sender's credentials alone: they tell a packet of no bytes from the end, and
// descriptors no longer fit.
Packet look(int socket, int flags) {
    char first = 0;
    struct iovec part = {&first, sizeof(first)};
    alignas(struct cmsghdr) std::array<char, CMSG_SPACE(sizeof(struct ucred))> control = {};
    struct msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t size = recvmsg(socket, &message, MSG_DONTWAIT | flags);
    // Said once, of a client that has gone and left something of ours unread: what it has sent is
    // still there.
    if (size < 0 && errno == ECONNRESET) size = recvmsg(socket, &message, MSG_DONTWAIT | flags);
    if (size < 0) {
        const bool none = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        return none ? Packet::kNone : Packet::kGone;
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0) return Packet::kDescriptors;
    return size > 0 || message.msg_controllen != 0 ? Packet::kPlain : Packet::kGone;
}

void ask_for_credentials(int socket, int yes) {
    (void)setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
}

// Whatever lies in it: a socket that is closed with packets unread resets its peer, which then
// reads an error in place of the last word.
void drop_unread(int socket) {
    ask_for_credentials(socket, 1);
    for (Packet dropped = Packet::kPlain; dropped != Packet::kNone && dropped != Packet::kGone;)
        dropped = look(socket, 0);
}

// Empties and closes what it is given, one after the other. It may hang for ever in one of them: it
// is never waited for, and what it works with is never freed.
class ClosingThread {
  public:
    ClosingThread() {
        std::thread([this] { run(); }).detach();
    }
    void close(int socket) {
        {
            const std::lock_guard lock(mutex_);
            sockets_.push_back(socket);
        }
        there_.notify_one();
    }

  private:
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            there_.wait(lock, [this] { return !sockets_.empty(); });
            const int next = sockets_.front();
            sockets_.pop_front();
            lock.unlock();
            drop_unread(next);
            (void)::close(next);
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable there_;
    std::deque<int> sockets_;
};

// There is none before somebody passes descriptors. Where there is no memory for it, or no thread,
// the socket stays open: closing it here is what must not be.
void close_elsewhere(shm::Descriptor socket) {
    const int fd = socket.release();
    try {
        static auto* const thread = new ClosingThread;
        thread->close(fd);
    } catch (const std::exception& error) {
        log::warning("a connection stays open: " + std::string(error.what()));
    }
}

}  // namespace

Packet next_packet(int socket) {
    ask_for_credentials(socket, 1);
    const Packet next = look(socket, MSG_PEEK);
    ask_for_credentials(socket, 0);
    return next;
}

bool end_reading(int socket) {
    (void)shutdown(socket, SHUT_RD);
    ask_for_credentials(socket, 1);
    Packet next = look(socket, MSG_PEEK);
    for (; next == Packet::kPlain; next = look(socket, MSG_PEEK))
        (void)look(socket, 0);
    ask_for_credentials(socket, 0);
    return next != Packet::kDescriptors;
}

void ClientSocket::reset() {
    if (!socket_.valid()) return;
    if (end_reading(socket_.get())) {
        socket_.reset();
    } else {
        // Its client is to hear of the end at once, and nobody of it here any more.
        (void)shutdown(socket_.get(), SHUT_RDWR);
        if (epoll_ >= 0) (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, socket_.get(), nullptr);
        close_elsewhere(std::move(socket_));
    }
}

}  // namespace dibs
