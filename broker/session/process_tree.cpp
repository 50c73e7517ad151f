// broker/session/process_tree.cpp -- the control group that a session's processes are in.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/process_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "broker/session/control_group.hpp"
#include "broker/text/log.hpp"

namespace dibs {

namespace {

constexpr size_t kFoldersMost = 16384;  // that are looked through for one group

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

// A folder of another user than root has none of this user's below it.
std::string look_for(uint64_t id, uint32_t uid, bool* all) {
    const std::string mount = control_group_mount();
    std::vector<std::string> left;
    if (!mount.empty()) left.push_back(mount);
    *all = !mount.empty();
    for (size_t seen = 0; !left.empty(); ++seen) {
        if (seen == kFoldersMost) {
            *all = false;
            break;
        }
        const std::string folder = left.back();
        left.pop_back();
        std::error_code gone;
        for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
            struct stat about = {};
            std::error_code error;
            if (!entry.is_directory(error) || stat(entry.path().c_str(), &about) != 0) continue;
            if (about.st_ino == id) return entry.path();
            if (about.st_uid == 0 || about.st_uid == uid) left.push_back(entry.path());
        }
    }
    return "";
}

}  // namespace

// A group that has been removed had no processes: the kernel removes no other.
bool ProcessTree::is_populated() const {
    if (gone) return false;
    std::array<char, 256> text;
    const ssize_t size = events.valid() ? pread(events.get(), text.data(), text.size(), 0) : -1;
    if (size < 0) return !events.valid() || errno != ENODEV;
    const std::string told(text.data(), static_cast<size_t>(size));
    return told.find("populated 0") == std::string::npos;
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

ProcessTree find_tree(uint64_t id, uint32_t pid, uint32_t uid) {
    ProcessTree tree;
    tree.id = id;
    bool seen_all = false;
    std::string why;
    tree.folder = control_group_of(std::to_string(pid), &why);
    auto folder = open_folder(tree.folder);
    if (!folder || folder->about.st_ino != id) {
        tree.folder = look_for(id, uid, &seen_all);
        folder = open_folder(tree.folder);
    }
    if (folder && folder->about.st_ino == id) {
        tree.events = open_in(*folder, "cgroup.events");
    } else {
        tree.gone = seen_all;
    }
    if (!tree.gone && !tree.events.valid()) {
        log::error("the control group of process " + std::to_string(pid) +
                   " is not in sight any more: what it holds is not granted again");
    }
    return tree;
}

}  // namespace dibs
