// broker/takeover/stored_descriptors.cpp -- what a service manager gives back: looked at, and in
// its places.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/stored_descriptors.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "broker/takeover/keeper_child.hpp"

namespace dibs {

namespace {

using What = DescriptorName::What;

int option(int fd, int name) {
    int value = -1;
    socklen_t size = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

std::string link_of(int fd) {
    std::array<char, 128> link = {};
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t size = readlink(path.c_str(), link.data(), link.size());
    return size > 0 ? std::string(link.data(), static_cast<size_t>(size)) : "";
}

// A segment that nobody can make shorter under who maps it.
bool is_segment(int fd, std::string_view name) {
    constexpr int kSealed = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
    const int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & kSealed) == kSealed &&
           link_of(fd).starts_with("/memfd:" + std::string(name) + " ");
}

bool is_unix(int fd, int type, bool listens) {
    return option(fd, SO_DOMAIN) == AF_UNIX && option(fd, SO_TYPE) == type &&
           option(fd, SO_ACCEPTCONN) == (listens ? 1 : 0);
}

// One at whose path clients find it.
bool is_listener(int fd) {
    struct sockaddr_un address = {};
    socklen_t size = sizeof(address);
    struct stat about = {};
    return is_unix(fd, SOCK_SEQPACKET, true) &&
           getsockname(fd, reinterpret_cast<struct sockaddr*>(&address), &size) == 0 &&
           lstat(address.sun_path, &about) == 0 && S_ISSOCK(about.st_mode);
}

std::optional<SessionDescriptor> of_session(int fd) {
    if (is_segment(fd, "dibs-up")) return SessionDescriptor::kUp;
    if (is_segment(fd, "dibs-down")) return SessionDescriptor::kDown;
    if (link_of(fd) == "anon_inode:[eventfd]") return SessionDescriptor::kBell;
    if (is_unix(fd, SOCK_DGRAM, false)) return SessionDescriptor::kEvents;
    if (is_unix(fd, SOCK_SEQPACKET, false)) return SessionDescriptor::kSocket;
    if (pid_of(fd)) return SessionDescriptor::kProcess;
    return std::nullopt;
}

bool is_single(What what, int fd) {
    switch (what) {
        case What::kState:
            return is_segment(fd, "dibs-state");
        case What::kBoard:
            return is_segment(fd, "dibs-board");
        case What::kListener:
            return is_listener(fd);
        case What::kConfig:
            return is_segment(fd, "dibs-config") && (fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE) != 0;
        case What::kBroker:
            return pid_of(fd).has_value();
        case What::kSession:
            break;
    }
    return false;
}

}  // namespace

StoredDescriptors::StoredDescriptors(std::vector<PassedDescriptor> passed) {
    std::map<std::string, Group> groups;
    for (PassedDescriptor& one : passed)
        groups[one.name].push_back(std::move(one.descriptor));
    for (auto& [text, group] : groups) {
        const auto name = DescriptorName::of(text);
        if (!name || !place(*name, group)) aside.push_back(text);
    }
    // Two sessions of one row: the later one is there because the other one has ended.
    for (auto later = sessions.begin(); later != sessions.end();) {
        const auto earlier = later++;
        if (later == sessions.end() || later->first.row != earlier->first.row) continue;
        aside.push_back(earlier->first.text());
        sessions.erase(earlier);
    }
    if (!state.valid() || brokers.empty()) put_all_aside();
    ended = !state.valid() && !listener.valid() && brokers.empty() &&
            std::all_of(aside.begin(), aside.end(), [](const auto& text) {
                const auto name = DescriptorName::of(text);
                return name && name->what == What::kSession;
            });
}

bool StoredDescriptors::place(const DescriptorName& name, Group& group) {
    if (name.what == What::kSession) {
        std::array<shm::Descriptor, kStoredOfSession> placed;
        for (shm::Descriptor& descriptor : group) {
            const auto which = of_session(descriptor.get());
            if (!which || placed[static_cast<size_t>(*which)].valid()) return false;
            placed[static_cast<size_t>(*which)] = std::move(descriptor);
        }
        const bool whole =
            std::all_of(placed.begin(), placed.end(), [](const auto& one) { return one.valid(); });
        if (whole) sessions.emplace(name, std::move(placed));
        return whole;
    }
    // A keeper that followed another may have stored a broker once more, or another one of its pid.
    if (name.what == What::kBroker) {
        std::erase_if(group, [](const auto& one) { return !is_single(What::kBroker, one.get()); });
        if (group.empty()) return false;
        brokers.emplace(name, std::move(group));
        return true;
    }
    if (group.size() != 1 || !is_single(name.what, group.front().get())) return false;
    if (name.what == What::kState) state = std::move(group.front());
    if (name.what == What::kBoard) board = std::move(group.front());
    if (name.what == What::kListener) listener = std::move(group.front());
    if (name.what == What::kConfig) config = std::move(group.front());
    return true;
}

void StoredDescriptors::put_all_aside() {
    const auto put = [&](What what, shm::Descriptor& descriptor) {
        if (descriptor.valid()) aside.push_back(DescriptorName{what}.text());
        descriptor.reset();
    };
    put(What::kState, state);
    put(What::kBoard, board);
    put(What::kConfig, config);
    for (const auto& [name, descriptors] : sessions)
        aside.push_back(name.text());
    sessions.clear();
}

}  // namespace dibs
