// broker/admission/socket_lock.cpp -- takes the lock beside a socket and names its holder.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/socket_lock.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>

#include "broker/text/log.hpp"
#include "broker/text/terminal_text.hpp"
#include "broker/turn/clock.hpp"

namespace dibs {

namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSaidAfterNs = 500 * kMs;
constexpr uint64_t kStrangersNs = 5'000 * kMs;
constexpr uint64_t kEndsNs = 500 * kMs;
constexpr int kLookMs = 5;  // a broker holds it for less
constexpr int kLookLaterMs = 50;

struct Holder {
    int pid = 0;          // 0: not known
    std::string command;  // empty: it has ended, and another has its descriptor

    [[nodiscard]] bool is_broker() const {
        return command == "dibsd" || command.starts_with("dibsd-");
    }
    [[nodiscard]] std::string text() const {
        if (pid == 0) return "a process that cannot be told from here (lslocks of root's can)";
        const std::string process = "process " + std::to_string(pid);
        if (command.empty()) return process + ", which has ended, or a child of it";
        return process + " (" + harmless(command) + ")";
    }
};

// "7: FLOCK ADVISORY WRITE 4711 fd:01:123 0 EOF"; a waiting process has an arrow before the kind.
Holder holder_of(int fd) {
    Holder holder;
    struct stat about = {};
    if (fstat(fd, &about) != 0) return holder;
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);) {
        int pid = 0;
        unsigned int major_number = 0;
        unsigned int minor_number = 0;
        unsigned long long inode = 0;
        const char* const form = "%*u: FLOCK %*s %*s %d %x:%x:%llu";
        if (std::sscanf(line.c_str(), form, &pid, &major_number, &minor_number, &inode) != 4 ||
            inode != about.st_ino || major_number != major(about.st_dev) ||
            minor_number != minor(about.st_dev) || pid <= 0) {
            continue;
        }
        holder.pid = pid;
        std::ifstream comm("/proc/" + std::to_string(pid) + "/comm");
        std::getline(comm, holder.command);
        break;
    }
    return holder;
}

// For the two signals that end a start. They are not consumed: the caller may look again.
shm::Descriptor ending_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return shm::Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

// A file system that has no locks is served without one.
bool take(int fd) {
    return flock(fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR);
}

void say_who_is_waited_for(const std::string& name, const Holder& holder) {
    log::warning(name + " is held by " + holder.text() +
                 (holder.is_broker() ? ", a broker: waiting until it lets go"
                                     : ": waiting for at most " +
                                           std::to_string(kStrangersNs / kMs / 1'000) + " s") +
                 "; SIGTERM ends the wait");
}

[[noreturn]] void give_up(const std::string& name, const Holder& holder) {
    throw std::runtime_error(
        name + ": " + holder.text() + " has held it for " +
        std::to_string(kStrangersNs / kMs / 1'000) +
        " s, and is no broker: nobody can tell who listens there; have it let go, or name "
        "another socket");
}

}  // namespace

std::string lock_of(const std::string& socket) {
    return socket + ".lock";
}

shm::Descriptor open_lock(const std::string& socket) {
    const std::string name = lock_of(socket);
    // Without waiting, whatever the file is: opening a pipe would wait for its writer.
    constexpr int kFlags = O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    shm::Descriptor made(open(name.c_str(), kFlags, 0600));
    struct stat about = {};
    if (!made.valid() || fstat(made.get(), &about) != 0) {
        throw std::system_error(errno, std::generic_category(), name + ": cannot be opened");
    }
    if (!S_ISREG(about.st_mode) || about.st_size != 0) {
        throw std::runtime_error(name + ": is another's file: a socket's lock is an empty one");
    }
    return made;
}

std::unique_ptr<SocketLock> SocketLock::to_begin(int fd, const std::string& socket) {
    const uint64_t began = Clock::monotonic();
    const shm::Descriptor signals = ending_signals();
    bool said = false;
    while (!take(fd)) {
        const uint64_t waited = Clock::monotonic() - began;
        if (waited >= kSaidAfterNs) {
            const Holder holder = holder_of(fd);
            if (!said) say_who_is_waited_for(lock_of(socket), holder);
            said = true;
            if (waited >= kStrangersNs && !holder.is_broker()) give_up(lock_of(socket), holder);
        }
        struct pollfd signal = {signals.get(), POLLIN, 0};
        if (poll(&signal, 1, said ? kLookLaterMs : kLookMs) > 0) {
            throw StartEnds("ends before it has begun, as a signal told it, while it waited for " +
                            lock_of(socket));
        }
    }
    return std::unique_ptr<SocketLock>(new SocketLock(fd));
}

std::unique_ptr<SocketLock> SocketLock::to_end(int fd, const std::string& socket) {
    const uint64_t began = Clock::monotonic();
    while (!take(fd)) {
        if (Clock::monotonic() - began >= kEndsNs) {
            log::warning(lock_of(socket) + " is held by " + holder_of(fd).text() + ": " + socket +
                         " stays, for the next broker");
            return nullptr;
        }
        (void)poll(nullptr, 0, kLookMs);
    }
    return std::unique_ptr<SocketLock>(new SocketLock(fd));
}

SocketLock::~SocketLock() {
    (void)flock(fd_, LOCK_UN);
}

bool SocketLock::lies_at(const std::string& socket) const {
    struct stat held = {};
    struct stat named = {};
    return fstat(fd_, &held) == 0 && lstat(lock_of(socket).c_str(), &named) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

}  // namespace dibs
