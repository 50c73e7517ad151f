// broker/ctl/tree/tree_leaf.cpp -- makes the control group in which a command's processes stay.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/tree/tree_leaf.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "broker/session/control_group.hpp"

namespace dibs::ctl {

namespace {

constexpr std::string_view kPrefix = "dibs-exec-";
constexpr size_t kProcessesMost = 4096;
constexpr int kNamesMost = 100;
constexpr int kGoingMs = 100;
constexpr int kRounds = 4;  // what is killed may have started others meanwhile

// False, errno set: it was not taken.
bool write_to(const std::string& file, const std::string& text) {
    const shm::Descriptor fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
    return fd.valid() &&
           write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// With those below it. The kernel removes none that has processes.
bool remove_leaf(const std::filesystem::path& leaf) {
    std::error_code gone;
    for (const auto& below : std::filesystem::directory_iterator(leaf, gone)) {
        if (below.path().filename().string().starts_with(kPrefix)) (void)remove_leaf(below.path());
    }
    return rmdir(leaf.c_str()) == 0;
}

// Those whose makers are dead, or had this process's number.
void remove_left_behind(const std::string& group) {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(group, gone)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with(kPrefix)) continue;
        pid_t maker = 0;
        (void)std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), maker);
        const bool dead = maker == getpid() || (::kill(maker, 0) != 0 && errno == ESRCH);
        if (maker > 0 && dead) (void)remove_leaf(entry.path());
    }
}

void add_children(const std::string& process, std::vector<uint32_t>* found) {
    std::error_code gone;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + process + "/task", gone)) {
        std::ifstream file(task.path() / "children");
        uint32_t pid = 0;
        while (found->size() < kProcessesMost && file >> pid) {
            found->push_back(pid);
            add_children(std::to_string(pid), found);
        }
    }
}

}  // namespace

std::unique_ptr<TreeLeaf> TreeLeaf::make(pid_t process, std::string* why) {
    const std::string group = control_group_of("self", why);
    if (group.empty()) return nullptr;
    remove_left_behind(group);
    std::string folder = group + "/" + std::string(kPrefix) + std::to_string(getpid());
    int made = mkdir(folder.c_str(), 0755);
    // There yet: a process that had this one's number has left some running.
    for (int next = 2; made != 0 && errno == EEXIST && next < kNamesMost; ++next) {
        folder = group + "/" + std::string(kPrefix) + std::to_string(getpid()) + "-" +
                 std::to_string(next);
        made = mkdir(folder.c_str(), 0755);
    }
    std::unique_ptr<TreeLeaf> leaf;
    if (made == 0) leaf = std::make_unique<TreeLeaf>(folder);
    if (leaf != nullptr && leaf->events() >= 0 && leaf->group_.valid() &&
        write_to(folder + "/cgroup.procs", std::to_string(process))) {
        return leaf;
    }
    *why = "no control group can be made in " + group + ": " + std::strerror(errno);
    return nullptr;
}

std::unique_ptr<TreeLeaf> TreeLeaf::of_descendants() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return std::make_unique<TreeLeaf>("");
}

TreeLeaf::TreeLeaf(std::string folder) : folder_(std::move(folder)) {
    if (folder_.empty()) return;
    group_ = open_group(folder_);
    events_ = shm::Descriptor(open((folder_ + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
}

TreeLeaf::~TreeLeaf() {
    if (is_group() && !remove_leaf(folder_) && await_empty(kGoingMs)) (void)remove_leaf(folder_);
}

bool TreeLeaf::is_populated() const {
    if (is_group()) return !is_empty_group(events_);
    siginfo_t unused = {};
    return waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool TreeLeaf::await_empty(int timeout_ms) const {
    while (is_populated()) {
        struct pollfd changed = {events(), POLLPRI, 0};
        if (poll(&changed, 1, timeout_ms) == 0) return false;
    }
    return true;
}

std::vector<uint32_t> TreeLeaf::processes() const {
    if (is_group()) return processes_of_group(group_, kProcessesMost).pids;
    std::vector<uint32_t> found;
    add_children(std::to_string(getpid()), &found);
    return found;
}

// A number may be another process's by now, a pidfd is not.
void TreeLeaf::signal(int signal) const {
    for (const uint32_t pid : processes()) {
        const shm::Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
        if (!pidfd.valid() || (is_group() && !is_in_group(pid, folder_))) continue;
        (void)syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
    }
}

// Before Linux 5.14 there is no such file, and what another user runs stays.
void TreeLeaf::kill() const {
    if (is_group() && write_to(folder_ + "/cgroup.kill", "1")) return;
    for (int round = 0; round < kRounds; ++round)
        signal(SIGKILL);
}

}  // namespace dibs::ctl
