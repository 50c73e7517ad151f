// broker/ctl/worker/notify_socket.cpp -- receives datagrams of lines, of which one matters.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/notify_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/system_failure.hpp"

namespace dibs::ctl::worker {

NotifyFolder::NotifyFolder() {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    const bool usable = runtime != nullptr && access(runtime, W_OK) == 0;
    path_ = std::string(usable ? runtime : "/tmp") + "/dibs-worker-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr)
        throw system_failure("folder for notify sockets " + path_);
}

NotifyFolder::~NotifyFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

NotifySocket::NotifySocket(const std::string& path, uid_t user)
    : path_(path), user_(user), fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        throw system_failure("notify socket " + path);
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    if (!fd_.valid() ||
        bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        (user != geteuid() && lchown(path.c_str(), user, static_cast<gid_t>(-1)) != 0)) {
        throw system_failure("notify socket " + path);
    }
}

bool NotifySocket::ready() {
    bool said = false;
    std::array<char, 4096> block{};
    for (;;) {
        const ssize_t size = recv(fd_.get(), block.data(), block.size(), 0);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return said;
        std::istringstream lines(std::string(block.data(), static_cast<size_t>(size)));
        for (std::string line; std::getline(lines, line);)
            said = said || line == "READY=1";
    }
}

}  // namespace dibs::ctl::worker
