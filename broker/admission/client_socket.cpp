// broker/admission/client_socket.cpp -- reads and closes a client's socket without waiting for it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/client_socket.hpp"

#include <linux/close_range.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "broker/text/log.hpp"

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

// In a thread: from here on it has a descriptor table of its own, with these and nothing else.
// False: it has not, and closing a descriptor would close it for the whole process.
bool keep_only(const std::vector<int>& sorted) {
    unsigned int next = 0;
    if (close_range(static_cast<unsigned int>(sorted.back()) + 1, ~0U, CLOSE_RANGE_UNSHARE) != 0)
        return false;
    for (const int socket : sorted) {
        const auto kept = static_cast<unsigned int>(socket);
        if (next < kept) (void)close_range(next, kept - 1, 0);
        next = kept + 1;
    }
    return true;
}

// What is to end together. Its thread takes a table of its own, then the sockets leave the one of
// the process, then the thread ends and is the last to have had them.
class Batch {
  public:
    explicit Batch(std::vector<int> sockets) : sockets_(std::move(sockets)) {}

    void end_with_this_thread() {
        reach(keep_only(sockets_) ? Step::kTaken : Step::kShared);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return step_ == Step::kGo; });
    }
    // Where tables cannot be had (before Linux 5.9) the last close is here.
    void leave() {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return step_ != Step::kBegun; });
        }
        for (const int socket : sockets_)
            (void)::close(socket);
        reach(Step::kGo);
    }

  private:
    enum class Step : uint8_t { kBegun, kTaken, kShared, kGo };

    void reach(Step next) {
        {
            const std::lock_guard lock(mutex_);
            step_ = next;
        }
        changed_.notify_all();
    }

    const std::vector<int> sockets_;
    std::mutex mutex_;
    std::condition_variable changed_;
    Step step_ = Step::kBegun;
};

// Closes what it is given, all that has come at once, one batch after the other: of two tables that
// were taken at the same time each would have the other's sockets, and the thread that only drops
// them might be the last to have them.
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
            std::vector<int> sockets = std::exchange(sockets_, {});
            lock.unlock();
            std::sort(sockets.begin(), sockets.end());
            const bool ended = end(sockets);
            lock.lock();
            if (ended) continue;
            sockets_.insert(sockets_.end(), sockets.begin(), sockets.end());
            there_.wait_for(lock, std::chrono::seconds(1));
        }
    }
    // False: there was no thread to be had, or no memory.
    static bool end(const std::vector<int>& sockets) {
        try {
            const auto batch = std::make_shared<Batch>(sockets);
            std::thread([batch] { batch->end_with_this_thread(); }).detach();
            batch->leave();
            return true;
        } catch (const std::exception&) {
            return false;
        }
    }

    std::mutex mutex_;
    std::condition_variable there_;
    std::vector<int> sockets_;
};

// It exists only once a client passes descriptors. Where there is no memory for it, or no thread,
// the socket stays open, because it must not be closed here.
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
        // The client must learn of the end at once, and later packets must not reach this process.
        (void)shutdown(socket_.get(), SHUT_RDWR);
        if (epoll_ >= 0) (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, socket_.get(), nullptr);
        close_elsewhere(std::move(socket_));
    }
}

}  // namespace dibs
