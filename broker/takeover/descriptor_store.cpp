// broker/takeover/descriptor_store.cpp -- stores, drops and reads back descriptors by their names.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/descriptor_store.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "broker/session/control_group.hpp"
#include "broker/takeover/keeper_child.hpp"
#include "broker/text/log.hpp"
#include "shm/layout.hpp"

namespace dibs {

namespace {

constexpr std::array<std::string_view, 4> kPlain = {"state", "board", "listener", "config"};
constexpr std::string_view kBroker = "broker.";
constexpr std::string_view kSession = "s.";

std::string written(uint32_t number, int base) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
    return {digits.data(), end};
}

// All of it is one number, written as above.
bool read_number(std::string_view text, int base, uint32_t* number) {
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), *number, base);
    return error == std::errc() && end == text.data() + text.size() &&
           written(*number, base) == text;
}

}  // namespace

std::string DescriptorName::text() const {
    if (what == What::kBroker) return std::string(kBroker) + written(row, 10);
    if (what == What::kSession) {
        return std::string(kSession) + written(row, 16) + "." + written(generation, 16);
    }
    return std::string(kPlain[static_cast<size_t>(what)]);
}

std::optional<DescriptorName> DescriptorName::of(std::string_view text) {
    for (size_t i = 0; i < kPlain.size(); ++i) {
        if (text == kPlain[i]) return DescriptorName{static_cast<What>(i)};
    }
    DescriptorName name;
    if (text.starts_with(kBroker)) {
        name.what = What::kBroker;
        if (!read_number(text.substr(kBroker.size()), 10, &name.row)) return std::nullopt;
        return name;
    }
    if (!text.starts_with(kSession)) return std::nullopt;
    name.what = What::kSession;
    text.remove_prefix(kSession.size());
    const size_t dot = text.find('.');
    if (dot == std::string_view::npos || !read_number(text.substr(0, dot), 16, &name.row) ||
        !read_number(text.substr(dot + 1), 16, &name.generation)) {
        return std::nullopt;
    }
    return name;
}

DescriptorStore::Entry DescriptorStore::entry_of(std::span<const shm::Descriptor> descriptors) {
    Entry entry;
    for (const shm::Descriptor& descriptor : descriptors)
        entry.descriptors.push_back(descriptor.get());
    struct stat about = {};
    if (!descriptors.empty() && fstat(descriptors.front().get(), &about) == 0 &&
        (S_ISREG(about.st_mode) || S_ISSOCK(about.st_mode))) {
        entry.device = about.st_dev;
        entry.inode = about.st_ino;
    }
    return entry;
}

// The name is repeated for each descriptor, with a separator.
size_t DescriptorStore::size_of(const DescriptorName& name, const Entry& entry) {
    return entry.descriptors.size() * (name.text().size() + 1);
}

// Their caller may close them before they leave, and a number that is free is soon another file's.
bool DescriptorStore::make_own(Entry& entry) {
    for (int& descriptor : entry.descriptors) {
        entry.own.emplace_back(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
        if (!entry.own.back().valid()) return false;
        descriptor = entry.own.back().get();
    }
    return true;
}

void DescriptorStore::keep(const DescriptorName& name,
                           std::span<const shm::Descriptor> descriptors,
                           uint64_t now_ns) {
    if (!notices_.connected()) return;
    Entry fresh = entry_of(descriptors);
    const auto known = entries_.find(name);
    const size_t before = known == entries_.end() ? 0 : size_of(name, known->second);
    const size_t size = names_size_ - before + size_of(name, fresh);
    if (name.what == DescriptorName::What::kSession && size > kNamesMax) {
        if (!std::exchange(said_full_, true)) {
            log::warning(
                "more sessions than a service manager can pass on: those that come now "
                "end if keeper and broker die together");
        }
        return drop(name, now_ns);
    }
    if (known != entries_.end()) {
        const Entry& entry = known->second;
        const bool same =
            fresh.inode != 0 && entry.device == fresh.device && entry.inode == fresh.inode;
        fresh.stored = entry.stored;
        fresh.stale = entry.stale || (entry.stored && !same);
    }
    const bool waits = !fresh.stored || fresh.stale;
    if (waits && name.what != DescriptorName::What::kSession && !make_own(fresh)) {
        log::warning("no descriptor is free for what the service manager is to store: " +
                     name.text());
        return drop(name, now_ns);
    }
    names_size_ = size;
    fresh.wanted = true;
    entries_[name] = std::move(fresh);
    if (waits) change(name, now_ns);
}

void DescriptorStore::found(const DescriptorName& name,
                            std::span<const shm::Descriptor> descriptors) {
    Entry& entry = entries_[name];
    entry = entry_of(descriptors);
    entry.wanted = entry.stored = true;
    names_size_ += size_of(name, entry);
}

void DescriptorStore::drop(const DescriptorName& name, uint64_t now_ns) {
    const auto known = entries_.find(name);
    if (known == entries_.end() || !known->second.wanted) return;
    Entry& entry = known->second;
    names_size_ -= size_of(name, entry);
    entry.wanted = false;
    entry.descriptors.clear();
    entry.own.clear();
    if (entry.stored) return change(name, now_ns);
    entries_.erase(known);
}

void DescriptorStore::drop_segments(uint64_t now_ns) {
    std::vector<DescriptorName> names;
    for (const auto& [name, entry] : entries_) {
        if (name.what != DescriptorName::What::kSession) names.push_back(name);
    }
    for (const DescriptorName& name : names)
        drop(name, now_ns);
}

void DescriptorStore::change(const DescriptorName& name, uint64_t now_ns) {
    if (name.what != DescriptorName::What::kSession) return urgent_.push_back(name);
    if (sessions_.empty()) paused_until_ns_ = std::max(paused_until_ns_, now_ns + kPauseNs);
    // Those that come and go leave their names: they are swept out before they are the most of it.
    if (sessions_.size() > 2 * entries_.size() + kBatch)
        std::erase_if(sessions_, [&](const DescriptorName& one) { return is_settled(one); });
    sessions_.push_back(name);
}

// The manager has of it what is wanted: a name that was queued before is worth nothing.
bool DescriptorStore::is_settled(const DescriptorName& name) const {
    const auto known = entries_.find(name);
    if (known == entries_.end()) return true;
    const Entry& entry = known->second;
    return !entry.stale && entry.stored == entry.wanted;
}

uint64_t DescriptorStore::next_due_ns() const {
    return sessions_.empty() ? shm::kNever : paused_until_ns_;
}

size_t DescriptorStore::stored_sessions() const {
    return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& one) {
        return one.first.what == DescriptorName::What::kSession && one.second.wanted &&
               one.second.stored && !one.second.stale;
    }));
}

void DescriptorStore::flush(uint64_t now_ns) {
    while (!urgent_.empty()) {
        if (!tell(urgent_.front())) return;
        urgent_.pop_front();
    }
    if (now_ns < paused_until_ns_) return;
    for (uint32_t told = 0; told < kBatch && !sessions_.empty();) {
        const bool settled = is_settled(sessions_.front());
        if (!settled && !tell(sessions_.front())) break;
        sessions_.pop_front();
        if (!settled) ++told;
    }
    paused_until_ns_ = now_ns + kPauseNs;
}

bool DescriptorStore::take_out(const DescriptorName& name) {
    return notices_.try_say("FDSTOREREMOVE=1\nFDNAME=" + name.text());
}

// Brings the manager to what is wanted of that name. False: it has no room now.
bool DescriptorStore::tell(const DescriptorName& name) {
    const auto known = entries_.find(name);
    if (known == entries_.end()) return true;
    Entry& entry = known->second;
    if (entry.stored && (entry.stale || !entry.wanted)) {
        if (!take_out(name)) return false;
        entry.stored = entry.stale = false;
    }
    if (!entry.wanted) {
        entries_.erase(known);
        return true;
    }
    if (entry.stored) return true;
    // Only this process reports its end: FDPOLL=0, or a hung-up socket would be taken out.
    entry.stored =
        notices_.try_say("FDSTORE=1\nFDPOLL=0\nFDNAME=" + name.text(), entry.descriptors);
    if (entry.stored) entry.own.clear();
    return entry.stored;
}

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

// A segment that no process can shrink while another maps it.
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
    if (is_of_groups(fd)) return SessionDescriptor::kTree;
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
        const bool whole = std::all_of(placed.begin(),
                                       placed.begin() + kKeptLeast,
                                       [](const auto& one) { return one.valid(); });
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
