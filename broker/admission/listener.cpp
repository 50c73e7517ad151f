// broker/admission/listener.cpp -- makes the listening socket and accepts connections.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/listener.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "broker/admission/socket_lock.hpp"
#include "broker/takeover/socket_activation.hpp"
#include "broker/text/log.hpp"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83  // Linux 6.16; older headers do not have it
#endif

namespace dibs {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
    throw std::system_error(errno, std::generic_category(), path + ": " + what);
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

// 0: another broker listens there, if only its queue is full. Else the kernel's error: ECONNREFUSED
// means that no process holds the socket any more, and no other error does.
int ask(const struct sockaddr_un& address, const std::string& path) {
    const shm::Descriptor probe = new_socket(path);
    const int said =
        connect(probe.get(), reinterpret_cast<const struct sockaddr*>(&address), sizeof(address));
    return said == 0 || errno == EAGAIN ? 0 : errno;
}

shm::Descriptor spare() {
    return shm::Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
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
    std::unique_ptr<SocketLock> locked;
    do {
        locked.reset();
        lock_ = open_lock(path_);
        locked = SocketLock::to_begin(lock_.get(), path_);
    } while (!locked->lies_at(path_));
    struct stat about = {};
    const bool there = lstat(path_.c_str(), &about) == 0;
    const int said = there && S_ISSOCK(about.st_mode) ? ask(address, path_) : ECONNREFUSED;
    if (said == 0) throw std::runtime_error(path_ + ": another broker listens there");
    try {
        if (said == EPROTOTYPE) {
            throw std::runtime_error(path_ + ": is the socket of another program, which lives");
        }
        if (said != ECONNREFUSED && said != ENOENT) {
            errno = said;
            fail(path_, "cannot be asked who listens there");
        }
        if (there && !S_ISSOCK(about.st_mode)) {
            throw std::runtime_error(path_ + ": is not a socket");
        }
        if (there) (void)unlink(path_.c_str());
        bind_to(address, mode);
    } catch (const std::exception&) {
        (void)unlink(lock_of(path_).c_str());  // no other broker's
        throw;
    }
    spare_ = spare();
}

void Listener::bind_to(const struct sockaddr_un& address, uint32_t mode) {
    shm::Descriptor made = new_socket(path_);
    const mode_t before = umask(0777 & ~mode);
    const int bound =
        bind(made.get(), reinterpret_cast<const struct sockaddr*>(&address), sizeof(address));
    umask(before);
    if (bound != 0) fail(path_, "cannot bind");
    struct stat about = {};
    if (lstat(path_.c_str(), &about) == 0) inode_ = about.st_ino;
    if (listen(made.get(), 1024) != 0) fail(path_, "cannot listen");
    socket_ = std::move(made);
}

Listener::Accepted Listener::accept() {
    if (!spare_.valid()) spare_ = spare();  // it could not be had back the last time
    Accepted accepted;
    const auto take = [&] {
        accepted.socket =
            shm::Descriptor(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        accepted.error = accepted.socket.valid() ? 0 : errno;
    };
    take();
    if (accepted.error == EMFILE && spare_.valid()) {
        spare_.reset();
        take();
        accepted.no_room = accepted.socket.valid();
        if (!accepted.no_room) spare_ = spare();
    }
    if (accepted.error == EAGAIN) accepted.error = 0;
    return accepted;
}

void Listener::let_descriptors_in(bool yes) {
    const int let = yes ? 1 : 0;
    (void)setsockopt(socket_.get(), SOL_SOCKET, SO_PASSRIGHTS, &let, sizeof(let));
}

void Listener::refused() {
    spare_ = spare();
}

Listener::Listener(shm::Descriptor inherited, uint64_t inode)
    : socket_(std::move(inherited)),
      inode_(inode),
      is_lent_(is_socket_activated()),
      leaves_name_(true) {
    struct sockaddr_un address = {};
    socklen_t size = sizeof(address);
    if (getsockname(socket_.get(), reinterpret_cast<struct sockaddr*>(&address), &size) != 0) {
        fail("", "no listening socket was handed over");
    }
    path_ = address.sun_path;
    try {
        lock_ = open_lock(path_);
    } catch (const std::runtime_error& error) {
        // Its folder is gone, say. What is served does not hang on the name.
        log::warning(std::string(error.what()) + ": the socket's name will not be removed");
    }
    spare_ = spare();
    struct stat about = {};
    if (inode_ == 0 && lstat(path_.c_str(), &about) == 0) inode_ = about.st_ino;
}

void Listener::close() {
    if (!socket_.valid()) return;
    if (!lock_.valid() || leaves_name_) return socket_.reset();
    const auto locked = SocketLock::to_end(lock_.get(), path_);
    if (!locked) return socket_.reset();
    struct stat about = {};
    const bool named = lstat(path_.c_str(), &about) == 0;
    // Another broker may have taken the place, where somebody has removed this one's name.
    const bool others = named && about.st_ino != inode_;
    if (!is_lent_ && named && !others) (void)unlink(path_.c_str());
    socket_.reset();
    if (!others && locked->lies_at(path_)) (void)unlink(lock_of(path_).c_str());
}

}  // namespace dibs
