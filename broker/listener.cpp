// broker/listener.cpp -- the broker's place in the file system: its listening socket.
// SPDX-License-Identifier: Apache-2.0
#include "broker/listener.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace dibs {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
    throw std::runtime_error(path + ": " + what + ": " + std::strerror(errno));
}

shm::Descriptor new_socket(const std::string& path) {
    shm::Descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!made.valid()) fail(path, "no socket");
    return made;
}

void make_folder(const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) return;
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), geteuid() == 0 ? 0755 : 0700) != 0 && errno != EEXIST) {
        fail(folder, "cannot make the socket's folder");
    }
}

bool somebody_listens(const struct sockaddr_un& address, const std::string& path) {
    const shm::Descriptor probe = new_socket(path);
    return connect(probe.get(),
                   reinterpret_cast<const struct sockaddr*>(&address),
                   sizeof(address)) == 0 ||
           errno == EAGAIN;  // its queue is full
}

}  // namespace

Listener::Listener(std::string path, uint32_t mode) : path_(std::move(path)) {
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path_.empty() || path_.size() >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        fail(path_, "cannot be a socket's path");
    }
    std::memcpy(address.sun_path, path_.data(), path_.size());
    make_folder(path_);
    struct stat about = {};
    if (lstat(path_.c_str(), &about) == 0) {
        if (!S_ISSOCK(about.st_mode)) throw std::runtime_error(path_ + ": is not a socket");
        if (somebody_listens(address, path_)) {
            throw std::runtime_error(path_ + ": another broker listens there");
        }
        (void)unlink(path_.c_str());
    }
    shm::Descriptor made = new_socket(path_);
    const mode_t before = umask(0777 & ~mode);
    const int bound =
        bind(made.get(), reinterpret_cast<const struct sockaddr*>(&address), sizeof(address));
    umask(before);
    if (bound != 0) fail(path_, "cannot bind");
    socket_ = std::move(made);
    if (listen(socket_.get(), 1024) != 0) fail(path_, "cannot listen");
}

void Listener::close() {
    if (!socket_.valid()) return;
    (void)unlink(path_.c_str());
    socket_.reset();
}

}  // namespace dibs
