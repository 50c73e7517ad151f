// broker/session/process_tree.cpp -- the control group that a session's processes are in.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/process_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "broker/session/control_group.hpp"
#include "broker/text/log.hpp"

namespace dibs {

namespace {

struct Folder {
    shm::Descriptor fd;
    struct stat about = {};
};

std::optional<Folder> open_folder(const std::string& path) {
    Folder folder;
    folder.fd = shm::Descriptor(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder.fd.valid() || fstat(folder.fd.get(), &folder.about) != 0) return std::nullopt;
    return folder;
}

shm::Descriptor open_in(const Folder& folder, const char* name) {
    return shm::Descriptor(openat(folder.fd.get(), name, O_RDONLY | O_CLOEXEC));
}

// Of a file that is shorter than a page.
std::string text_of(const shm::Descriptor& file) {
    std::array<char, 4096> text;
    const ssize_t size = file.valid() ? pread(file.get(), text.data(), text.size(), 0) : 0;
    return {text.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

// What keeps the group from being the client's own.
std::string obstacle(const Folder& folder, uint32_t pid, uint32_t uid) {
    if (folder.about.st_uid != uid) {
        return "user " + std::to_string(folder.about.st_uid) + " owns it, not " +
               std::to_string(uid);
    }
    if (folder.about.st_nlink > 2) return "it has other groups below it";
    if (text_of(open_in(folder, "cgroup.procs")) != std::to_string(pid) + "\n") {
        return "process " + std::to_string(pid) + " is not alone in it";
    }
    return "";
}

}  // namespace

bool ProcessTree::is_populated() const {
    return !is_empty_group(events);
}

shm::Descriptor ProcessTree::open() const {
    shm::Descriptor group = open_group(folder);
    struct stat about = {};
    if (!group.valid() || fstat(group.get(), &about) != 0 || about.st_ino != id) return {};
    return group;
}

std::optional<ProcessTree> tree_of(uint32_t pid, uint32_t uid, std::string* why) {
    ProcessTree tree;
    tree.folder = control_group_of(std::to_string(pid), why);
    if (tree.folder.empty()) {
        *why = "process " + std::to_string(pid) + " has no tree: " + *why;
        return std::nullopt;
    }
    const auto folder = open_folder(tree.folder);
    std::string wrong = "it cannot be read";
    if (folder) {
        tree.events = open_in(*folder, "cgroup.events");
        wrong = tree.events.valid() ? obstacle(*folder, pid, uid) : "it is the root of all groups";
    }
    if (wrong.empty()) {
        tree.id = folder->about.st_ino;
        return tree;
    }
    *why = "the control group " + tree.folder + " is no tree of process " + std::to_string(pid) +
           ": " + wrong;
    return std::nullopt;
}

ProcessTree inherited_tree(uint64_t id, shm::Descriptor events, const std::string& whose) {
    ProcessTree tree;
    tree.id = id;
    std::array<char, 4096> path;
    const std::string link = "/proc/self/fd/" + std::to_string(events.get());
    const ssize_t size = readlink(link.c_str(), path.data(), path.size());
    const std::string file(path.data(), size > 0 ? static_cast<size_t>(size) : 0);
    tree.folder = file.substr(0, file.rfind('/') == std::string::npos ? 0 : file.rfind('/'));
    tree.events = std::move(events);
    if (!tree.events.valid()) {
        log::error("the control group of " + whose + " was not handed on: what it holds is kept " +
                   "though all of its processes end. End them (the group's inode is " +
                   std::to_string(id) + ": find " + control_group_mount() + " -inum " +
                   std::to_string(id) + "), then stop and start the broker");
    }
    return tree;
}

}  // namespace dibs
