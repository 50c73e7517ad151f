// broker/session/control_group.cpp -- finds control groups (cgroup2), and the processes in them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/control_group.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

namespace dibs {

namespace {

struct Mount {
    std::string root;  // the group that is seen at `point`
    std::string point;
};

// Fields of a line: id, parent, device, root, point, options, …, "-", type.
std::vector<Mount> read_mounts() {
    std::vector<Mount> found;
    std::ifstream file("/proc/self/mountinfo");
    std::string line;
    while (std::getline(file, line)) {
        if (line.find(" - cgroup2 ") == std::string::npos) continue;
        std::istringstream fields(line);
        std::string skipped;
        Mount mount;
        if (fields >> skipped >> skipped >> skipped >> mount.root >> mount.point) {
            found.push_back(mount);
        }
    }
    return found;
}

// As at the first look: the list may be long, and a hierarchy is mounted once.
const std::vector<Mount>& mounts() {
    static const std::vector<Mount> all = read_mounts();
    return all;
}

bool is_below(const std::string& path, const std::string& folder) {
    return path.starts_with(folder) &&
           (path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/');
}

}  // namespace

std::string control_group_mount() {
    return mounts().empty() ? "" : mounts().front().point;
}

std::string control_group_of(const std::string& process, std::string* why) {
    std::ifstream file("/proc/" + process + "/cgroup");
    std::string line;
    while (std::getline(file, line) && !line.starts_with("0::")) {
    }
    const std::string path = line.starts_with("0::") ? line.substr(3) : "";
    // A group of another namespace than this one's begins with "/..".
    for (const Mount& mount : mounts()) {
        if (path.empty() || path.starts_with("/..") || !is_below(path, mount.root)) continue;
        const std::string rest = path.substr(mount.root == "/" ? 0 : mount.root.size());
        return rest == "/" ? mount.point : mount.point + rest;
    }
    *why = path.empty() ? "it is in no control group of cgroup2"
                        : "its control group " + path + " is not in sight";
    return "";
}

shm::Descriptor open_group(const std::string& folder) {
    return shm::Descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool is_of_groups(int fd) {
    struct statfs about = {};
    return fstatfs(fd, &about) == 0 && about.f_type == CGROUP2_SUPER_MAGIC;
}

namespace {

constexpr size_t kGroupsMost = 256;  // that have processes
constexpr size_t kEmptyMost = 1024;  // that have none
constexpr size_t kDepthMost = 16;

// Removed meanwhile: then it had no processes.
bool is_gone(int error) {
    return error == ENOENT || error == ENODEV;
}

class Walk {
  public:
    explicit Walk(size_t most) : most_(most) {}

    // False: not all of it was read.
    bool read(const shm::Descriptor& group, size_t depth) {
        if (++groups_ > kGroupsMost || depth > kDepthMost) return false;
        return read_processes(group, depth) && read_below(group, depth);
    }
    [[nodiscard]] size_t groups() const { return groups_ + empty_; }
    std::vector<uint32_t> pids = {};

  private:
    bool read_processes(const shm::Descriptor& group, size_t depth) {
        const int fd = openat(group.get(), "cgroup.procs", O_RDONLY | O_CLOEXEC);
        if (fd < 0) return is_gone(errno);
        FILE* file = fdopen(fd, "r");
        unsigned pid = 0;
        errno = 0;
        while (pids.size() < most_ && fscanf(file, "%u", &pid) == 1)
            pids.push_back(pid);
        // The kernel lists the processes of a threaded group in the group above it.
        const bool is_above = errno == EOPNOTSUPP && depth > 0;
        const bool all = pids.size() < most_ && (errno == 0 || is_gone(errno) || is_above);
        (void)fclose(file);
        return all;
    }

    // Where it has no process, none below it has.
    bool read_if_populated(const shm::Descriptor& group, size_t depth) {
        const shm::Descriptor events(openat(group.get(), "cgroup.events", O_RDONLY | O_CLOEXEC));
        if (!is_empty_group(events)) return read(group, depth);
        return ++empty_ <= kEmptyMost;
    }

    bool read_below(const shm::Descriptor& group, size_t depth) {
        DIR* folder = fdopendir(openat(group.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (folder == nullptr) return is_gone(errno);
        bool all = true;
        const struct dirent* entry = nullptr;
        while (all && (errno = 0, entry = readdir(folder)) != nullptr) {
            const std::string_view name = entry->d_name;
            if (entry->d_type != DT_DIR || name == "." || name == "..") continue;
            const shm::Descriptor below(
                openat(group.get(), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            all = below.valid() ? read_if_populated(below, depth + 1) : is_gone(errno);
        }
        all = all && (errno == 0 || is_gone(errno));
        (void)closedir(folder);
        return all;
    }

    size_t most_;
    size_t groups_ = 0;
    size_t empty_ = 0;
};

}  // namespace

GroupProcesses processes_of_group(const shm::Descriptor& group, size_t most) {
    Walk walk(most);
    const bool all = walk.read(group, 0);
    return {std::move(walk.pids), all, walk.groups()};
}

bool is_in_group(uint32_t pid, const std::string& folder) {
    std::string why;
    const std::string own = control_group_of(std::to_string(pid), &why);
    return !own.empty() && is_below(own, folder);
}

bool is_empty_group(const shm::Descriptor& events) {
    if (!events.valid()) return false;
    std::array<char, 256> text;
    const ssize_t size = pread(events.get(), text.data(), text.size(), 0);
    if (size < 0) return errno == ENODEV;
    const std::string_view told(text.data(), static_cast<size_t>(size));
    return told.find("populated 0") != std::string_view::npos;
}

}  // namespace dibs
