// broker/ctl/exec/tree_leaf.cpp -- makes the control group in which a command's processes stay.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/tree_leaf.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "broker/session/control_group.hpp"

namespace dibs::ctl::exec {

namespace {

constexpr std::string_view kPrefix = "dibs-exec-";
constexpr size_t kProcessesMost = 4096;

// False, errno set: it was not taken.
bool write_to(const std::string& file, const std::string& text) {
    const shm::Descriptor fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
    return fd.valid() &&
           write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Those whose makers are dead and which are empty: the kernel removes no other.
void remove_left_behind(const std::string& group) {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(group, gone)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with(kPrefix)) continue;
        pid_t maker = 0;
        (void)std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), maker);
        if (maker > 0 && ::kill(maker, 0) != 0 && errno == ESRCH) (void)rmdir(entry.path().c_str());
    }
}

}  // namespace

std::unique_ptr<TreeLeaf> TreeLeaf::make(pid_t process, std::string* why) {
    const std::string group = control_group_of("self", why);
    if (group.empty()) return nullptr;
    remove_left_behind(group);
    const std::string folder = group + "/" + std::string(kPrefix) + std::to_string(getpid());
    const auto failed = [&] {
        *why = "no control group can be made in " + group + ": " + std::strerror(errno);
        return nullptr;
    };
    // There already: a process that had this one's number has left some running.
    if (mkdir(folder.c_str(), 0755) != 0) return failed();
    auto leaf = std::make_unique<TreeLeaf>(folder);
    const bool taken =
        leaf->events() >= 0 && write_to(folder + "/cgroup.procs", std::to_string(process));
    if (!taken) return failed();
    return leaf;
}

TreeLeaf::TreeLeaf(std::string folder)
    : folder_(std::move(folder)),
      events_(open((folder_ + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC)) {}

TreeLeaf::~TreeLeaf() {
    (void)rmdir(folder_.c_str());
}

bool TreeLeaf::is_populated() const {
    std::array<char, 256> text;
    const ssize_t size = pread(events_.get(), text.data(), text.size(), 0);
    const std::string_view told(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
    return told.find("populated 1") != std::string_view::npos;
}

bool TreeLeaf::await_empty(int timeout_ms) const {
    while (is_populated()) {
        struct pollfd changed = {events(), POLLPRI, 0};
        if (poll(&changed, 1, timeout_ms) == 0) return false;
    }
    return true;
}

std::vector<uint32_t> TreeLeaf::processes() const {
    return processes_of_group(folder_, kProcessesMost);
}

// A number may be another process's by now, a pidfd is not.
void TreeLeaf::signal(int signal) const {
    for (const uint32_t pid : processes()) {
        const shm::Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
        if (!pidfd.valid() || !is_in_group(pid, folder_)) continue;
        (void)syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
    }
}

// Before Linux 5.14 there is no such file, and what another user runs stays.
void TreeLeaf::kill() const {
    if (!write_to(folder_ + "/cgroup.kill", "1")) signal(SIGKILL);
}

}  // namespace dibs::ctl::exec
