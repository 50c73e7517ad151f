// broker/session/control_group.cpp -- finds control groups (cgroup2), and the processes in them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/control_group.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

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

std::vector<uint32_t> processes_of_group(const std::string& folder, size_t most) {
    std::vector<uint32_t> found;
    const auto read = [&](const std::filesystem::path& group) {
        std::ifstream file(group / "cgroup.procs");
        uint32_t pid = 0;
        while (found.size() < most && file >> pid)
            found.push_back(pid);
    };
    read(folder);
    std::error_code gone;
    std::filesystem::recursive_directory_iterator below(folder, gone);
    const std::filesystem::recursive_directory_iterator end;
    for (; !gone && below != end && found.size() < most; below.increment(gone)) {
        std::error_code error;
        if (below->is_directory(error)) read(below->path());
    }
    return found;
}

bool is_in_group(uint32_t pid, const std::string& folder) {
    std::string why;
    const std::string own = control_group_of(std::to_string(pid), &why);
    return !own.empty() && is_below(own, folder);
}

}  // namespace dibs
