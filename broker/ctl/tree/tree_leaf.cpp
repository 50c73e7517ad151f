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

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "broker/ctl/output/who.hpp"
#include "broker/session/control_group.hpp"

namespace dibs::ctl {

namespace {

constexpr std::string_view kPrefixes[] = {"dibs-exec-", "dibs-worker-", "dibs-runner-"};
constexpr size_t kProcessesMost = 4096;
constexpr int kNamesMost = 100;
constexpr int kGoingMs = 100;
constexpr int kRounds = 4;  // what is killed may have started others meanwhile

// False, errno set: it was not taken.
bool write_to(const shm::Descriptor& fd, const std::string& text) {
    return fd.valid() &&
           write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

shm::Descriptor open_in(const shm::Descriptor& group, const char* file, int flags) {
    return shm::Descriptor(openat(group.get(), file, flags | O_CLOEXEC));
}

// With those below it, of whatever name: no process is in any of them.
bool remove_group(const std::filesystem::path& group) {
    std::error_code gone;
    for (const auto& below : std::filesystem::directory_iterator(group, gone)) {
        if (below.is_directory(gone)) (void)remove_group(below.path());
    }
    return rmdir(group.c_str()) == 0;
}

// 0: a group of that name is no leaf.
pid_t maker_of(const std::string& name) {
    pid_t maker = 0;
    for (const std::string_view prefix : kPrefixes) {
        if (!name.starts_with(prefix)) continue;
        (void)std::from_chars(name.data() + prefix.size(), name.data() + name.size(), maker);
    }
    return maker;
}

// Those whose makers are dead, or had this process's number.
void remove_left_behind(const std::string& group) {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(group, gone)) {
        const pid_t maker = maker_of(entry.path().filename());
        const bool dead = maker == getpid() || (::kill(maker, 0) != 0 && errno == ESRCH);
        if (maker <= 0 || !dead) continue;
        const shm::Descriptor folder = open_group(entry.path());
        if (is_empty_group(open_in(folder, "cgroup.events", O_RDONLY)))
            (void)remove_group(entry.path());
    }
}

std::unique_ptr<TreeLeaf> make_at(const std::string& path, std::string* why) {
    std::string folder = path;
    int made = mkdir(folder.c_str(), 0755);
    // There yet: a process that had this one's number has left some running.
    for (int next = 2; made != 0 && errno == EEXIST && next < kNamesMost; ++next) {
        folder = path + "-" + std::to_string(next);
        made = mkdir(folder.c_str(), 0755);
    }
    if (made == 0) {
        auto leaf = std::make_unique<TreeLeaf>(folder);
        if (leaf->events() >= 0) return leaf;
    }
    *why = "no control group can be made in " + path.substr(0, path.rfind('/')) + ": " +
           std::strerror(errno);
    return nullptr;
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

std::unique_ptr<TreeLeaf> TreeLeaf::make(const std::string& kind,
                                         std::string* why,
                                         const std::string& more) {
    const std::string group = control_group_of("self", why);
    if (group.empty()) return nullptr;
    remove_left_behind(group);
    return make_at(group + "/dibs-" + kind + "-" + std::to_string(getpid()) + more, why);
}

std::unique_ptr<TreeLeaf> TreeLeaf::make_below(const std::string& name, std::string* why) const {
    return make_at(folder_ + "/" + name, why);
}

std::unique_ptr<TreeLeaf> TreeLeaf::of_descendants() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return std::make_unique<TreeLeaf>("");
}

TreeLeaf::TreeLeaf(std::string folder) : folder_(std::move(folder)) {
    if (folder_.empty()) return;
    group_ = open_group(folder_);
    listing_ = open_in(group_, "cgroup.procs", O_RDONLY);
    events_ = open_in(group_, "cgroup.events", O_RDONLY);
}

TreeLeaf::~TreeLeaf() {
    if (is_group() && await_empty(kGoingMs)) (void)remove_group(folder_);
}

bool TreeLeaf::take(pid_t process, std::string* why) const {
    if (write_to(entrance(), std::to_string(process))) return true;
    *why = "no process can be put into " + folder_ + ": " + std::strerror(errno);
    return false;
}

shm::Descriptor TreeLeaf::entrance() const {
    return open_in(group_, "cgroup.procs", O_WRONLY);
}

bool TreeLeaf::set(const char* file, const std::string& text) const {
    return write_to(open_in(group_, file, O_WRONLY), text);
}

bool TreeLeaf::lets_in(std::string* why) const {
    const pid_t child = fork();
    if (child == 0) {
        std::string unused;
        errno = 0;
        (void)take(0, &unused);
        _exit(errno);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0) return true;
    *why = "no process can be put into " + folder_ + ": " +
           std::strerror(child < 0 ? errno : WEXITSTATUS(status));
    return false;
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
    if (is_group()) return processes_of_leaf();
    std::vector<uint32_t> found;
    add_children(std::to_string(getpid()), &found);
    return found;
}

// Where no group is below it (its folder has the links of none) and the list is short, in two
// calls: dibs worker asks at each use.
std::vector<uint32_t> TreeLeaf::processes_of_leaf() const {
    struct stat folder = {};
    std::array<char, 2048> text;
    const ssize_t size = pread(listing_.get(), text.data(), text.size(), 0);
    if (size < 0 || static_cast<size_t>(size) == text.size() || fstat(group_.get(), &folder) != 0 ||
        folder.st_nlink > 2) {
        return processes_of_group(group_, kProcessesMost).pids;
    }
    std::vector<uint32_t> found;
    const char* const end = text.data() + size;
    for (const char* at = text.data(); at < end; ++at) {  // behind each number is a newline
        uint32_t pid = 0;
        at = std::from_chars(at, end, pid).ptr;
        found.push_back(pid);
    }
    return found;
}

// A number may be another process's by now, a pidfd is not.
void TreeLeaf::signal_all(int signal, const std::vector<uint32_t>& pids) const {
    for (const uint32_t pid : pids) {
        const shm::Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
        if (!pidfd.valid() || (is_group() && !is_in_group(pid, folder_))) continue;
        (void)syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
    }
}

// Before Linux 5.14 there is no such file, and what another user runs stays.
void TreeLeaf::kill() const {
    if (is_group() && write_to(open_in(group_, "cgroup.kill", O_WRONLY), "1")) return;
    for (int round = 0; round < kRounds; ++round)
        signal(SIGKILL);
}

std::string shown_running(size_t count, const std::string& first) {
    return std::to_string(count) + (count == 1 ? " process running, " : " processes running, ") +
           first + (count == 1 ? "" : " and others");
}

std::string shown_running(const std::vector<uint32_t>& pids) {
    return pids.empty() ? "" : shown_running(pids.size(), process_text(pids.front()));
}

}  // namespace dibs::ctl
