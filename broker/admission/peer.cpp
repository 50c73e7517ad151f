// broker/admission/peer.cpp -- identifies a connection's peer and obtains its pidfd.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/peer.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; older headers do not have it
#endif

namespace dibs {

namespace {

bool readable(int fd, short* events) {
    struct pollfd poll_fd = {fd, POLLIN | POLLRDHUP, 0};
    const int count = poll(&poll_fd, 1, 0);
    *events = poll_fd.revents;
    return count > 0;
}

// A pidfd is readable once its process has died.
bool alive(int pidfd) {
    short events = 0;
    return !readable(pidfd, &events);
}

shm::Descriptor peer_pidfd(int socket) {
    int fd = -1;
    socklen_t size = sizeof(fd);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) != 0) return {};
    return shm::Descriptor(fd);
}

shm::Descriptor open_pidfd(int socket, uint32_t pid, uint64_t start_time) {
    if (pid == 0 || start_time == 0) return {};
    shm::Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd.valid() || process_start_time(pid) != start_time || !is_connected(socket)) return {};
    return pidfd;
}

int send_signal(int pidfd, int signal) {
    return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

}  // namespace

bool is_connected(int socket) {
    short events = 0;
    (void)readable(socket, &events);
    return (events & (POLLHUP | POLLRDHUP | POLLERR)) == 0;
}

bool is_dead(int pidfd) {
    return !alive(pidfd);
}

bool may_kill(int pidfd) {
    return send_signal(pidfd, 0) == 0;
}

bool may_kill_anybody() {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {};
    if (syscall(SYS_capget, &head, data) != 0) return false;
    return (data[0].effective & (1U << CAP_KILL)) != 0;
}

// The pidfd says afterwards that the pid was no other process's when its file was read.
std::optional<std::array<uint32_t, 3>> uids_now(uint32_t pid, int pidfd) {
    const std::string path = "/proc/" + std::to_string(pid) + "/status";
    const shm::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return std::nullopt;
    std::array<char, 2048> text;
    const ssize_t size = read(file.get(), text.data(), text.size() - 1);
    if (size <= 0 || !alive(pidfd)) return std::nullopt;
    text[static_cast<size_t>(size)] = '\0';
    const char* at = std::strstr(text.data(), "\nUid:");
    if (at == nullptr) return std::nullopt;
    std::array<uint32_t, 3> uids = {};
    char* next = const_cast<char*>(at) + std::strlen("\nUid:");
    for (uint32_t& uid : uids)
        uid = static_cast<uint32_t>(std::strtoul(next, &next, 10));
    return uids;
}

bool kill_process(int pidfd) {
    return send_signal(pidfd, SIGKILL) == 0 || errno == ESRCH;
}

uint64_t process_start_time(uint32_t pid) {
    const std::string path = "/proc/" + std::to_string(pid) + "/stat";
    const shm::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return 0;
    std::array<char, 1024> text;
    const ssize_t size = read(file.get(), text.data(), text.size() - 1);
    if (size <= 0) return 0;
    text[static_cast<size_t>(size)] = '\0';
    // The second field is a name in parentheses that may hold anything; the 22nd is wanted.
    const char* at = std::strrchr(text.data(), ')');
    for (int field = 2; at != nullptr && field < 22; ++field) {
        at = std::strchr(at + 1, ' ');
    }
    return at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10);
}

namespace {

std::optional<struct ucred> kernels_credentials(int socket) {
    struct ucred kernels = {};
    socklen_t size = sizeof(kernels);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &kernels, &size) != 0) return std::nullopt;
    return kernels;
}

}  // namespace

std::optional<uint32_t> peer_uid(int socket) {
    const auto kernels = kernels_credentials(socket);
    return kernels ? std::optional<uint32_t>(kernels->uid) : std::nullopt;
}

std::optional<Credentials> peer_credentials(int socket, std::string* why) {
    const auto kernels = kernels_credentials(socket);
    if (!kernels) {
        *why = "no credentials: " + std::string(std::strerror(errno));
        return std::nullopt;
    }
    Credentials credentials;
    credentials.uid = kernels->uid;
    credentials.gid = kernels->gid;
    credentials.pid = static_cast<uint32_t>(kernels->pid);
    // For a user with too many groups the kernel returns their number; the second call has room for
    // them.
    credentials.groups.resize(64);
    for (int look = 0; look < 2; ++look) {
        auto size = static_cast<socklen_t>(credentials.groups.size() * sizeof(uint32_t));
        const int said =
            getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, credentials.groups.data(), &size);
        const bool more = said != 0 && errno == ERANGE;
        credentials.groups.resize(said == 0 || more ? size / sizeof(uint32_t) : 0);
        if (!more) return credentials;
    }
    credentials.groups.clear();
    return credentials;
}

bool gives_peer_pidfd() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
    const shm::Descriptor near(ends[0]);
    const shm::Descriptor far(ends[1]);
    return peer_pidfd(near.get()).valid();
}

// A kernel that knows the handle refuses it for a process that has been waited for. Its pid may be
// another process's by then, so that there is no second way.
std::optional<Peer> identify_peer(int socket,
                                  const Credentials& credentials,
                                  bool by_peer_pidfd,
                                  std::string* why) {
    Peer peer;
    static_cast<Credentials&>(peer) = credentials;
    peer.pidfd = by_peer_pidfd ? peer_pidfd(socket) : open_pidfd(socket, peer.pid, peer.start_time);
    if (!peer.pidfd.valid() || !alive(peer.pidfd.get())) {
        *why = "process " + std::to_string(peer.pid) +
               " cannot be watched: it is gone, or not in sight of this broker";
        return std::nullopt;
    }
    peer.killable = may_kill(peer.pidfd.get());
    return peer;
}

}  // namespace dibs
