// broker/takeover/socket_activation.cpp -- reads what a service manager passes at the start.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/socket_activation.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "broker/takeover/descriptor_store.hpp"

namespace dibs {

namespace {

constexpr int kFirst = 3;
const char* const kMark = "DIBS_SOCKET_IS_LENT";

int option(int fd, int name) {
    int value = -1;
    socklen_t size = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

[[noreturn]] void bad_descriptor(int fd, const std::string& what) {
    throw std::runtime_error("descriptor " + std::to_string(fd) + " " + what);
}

int count_of(const char* text) {
    int count = 0;
    const char* end = text + std::strlen(text);
    const auto read = std::from_chars(text, end, count);
    if (read.ec != std::errc() || read.ptr != end || count < 0) {
        throw std::runtime_error("LISTEN_FDS=" + std::string(text) + ": a number is wanted");
    }
    return count;
}

// Separated by colons; fewer than there are descriptors, or none.
std::string next_name(std::string_view& names) {
    const size_t end = std::min(names.find(':'), names.size());
    std::string name(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
    return name;
}

// Whatever process stored it: a socket without a name of ours is a lent one.
bool is_lent(const PassedDescriptor& passed) {
    return !DescriptorName::of(passed.name) && option(passed.descriptor.get(), SO_TYPE) >= 0;
}

shm::Descriptor listening(shm::Descriptor socket) {
    const int fd = socket.get();
    if (option(fd, SO_DOMAIN) != AF_UNIX || option(fd, SO_TYPE) != SOCK_SEQPACKET ||
        option(fd, SO_ACCEPTCONN) != 1) {
        bad_descriptor(fd, "is no listening SOCK_SEQPACKET UNIX socket (ListenSequentialPacket=)");
    }
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        bad_descriptor(fd, "cannot be used");
    return socket;
}

}  // namespace

PassedDescriptors passed_descriptors() {
    const char* pid = std::getenv("LISTEN_PID");
    const char* count = std::getenv("LISTEN_FDS");
    if (pid == nullptr || count == nullptr || std::to_string(getpid()) != pid) return {};
    const char* named = std::getenv("LISTEN_FDNAMES");
    std::string_view names = named == nullptr ? "" : named;
    PassedDescriptors passed;
    const int end = kFirst + count_of(count);
    int lent = 0;
    for (int fd = kFirst; fd < end; ++fd) {
        PassedDescriptor one{next_name(names), shm::Descriptor(fd)};
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) bad_descriptor(fd, "is not open");
        if (!is_lent(one)) {
            passed.stored.push_back(std::move(one));
        } else if (++lent == 1) {
            passed.listener = std::move(one.descriptor);
        }
    }
    if (lent > 1) {
        throw std::runtime_error("LISTEN_FDS=" + std::string(count) + ": one socket is wanted");
    }
    if (lent == 1) {
        passed.listener = listening(std::move(passed.listener));
        (void)setenv(kMark, "1", 1);
    }
    for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"})
        (void)unsetenv(name);
    return passed;
}

bool is_socket_activated() {
    return std::getenv(kMark) != nullptr;
}

}  // namespace dibs
