// broker/multi_user.cpp -- what a broker must be sure of before it serves several users.
// SPDX-License-Identifier: Apache-2.0
#include "broker/multi_user.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace dibs {

namespace {

std::string number(uint32_t value) {
    return std::to_string(value);
}

// Somebody other than root and the broker can change what is there.
bool others_change(const std::string& path) {
    struct stat about = {};
    if (stat(path.c_str(), &about) != 0) return false;  // the broker will make it
    const bool ours = about.st_uid == 0 || about.st_uid == geteuid();
    const bool sticky = S_ISDIR(about.st_mode) && (about.st_mode & S_ISVTX) != 0;
    return !ours || ((about.st_mode & 022) != 0 && !sticky);
}

std::string folder_of(const std::string& path) {
    const auto folder = std::filesystem::path(path).parent_path();
    return folder.empty() ? "." : folder.string();
}

// Shells that let nobody in.
bool lets_in(const std::string& shell) {
    const std::string name = std::filesystem::path(shell).filename();
    return name != "nologin" && name != "false" && name != "sync";
}

// Of a process: has it this real or effective uid?
bool runs_as(const std::filesystem::path& process, uint32_t uid) {
    std::ifstream status(process / "status");
    std::string line;
    while (std::getline(status, line)) {
        if (line.rfind("Uid:", 0) != 0) continue;
        std::istringstream fields(line.substr(4));
        uint32_t real = 0;
        uint32_t effective = 0;
        fields >> real >> effective;
        return real == uid || effective == uid;
    }
    return false;
}

// The first process that runs as `uid` and is no broker or keeper; empty if there is none.
std::string other_program_of(uint32_t uid) {
    std::error_code error;
    const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
        const std::string name = entry.path().filename();
        if (std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
        if (!runs_as(entry.path(), uid)) continue;
        std::error_code unseen;
        const auto program = std::filesystem::read_symlink(entry.path() / "exe", unseen);
        // A program that cannot be seen (a hardened broker is not dumpable) is told by its name.
        std::string short_name;
        if (unseen) std::getline(std::ifstream(entry.path() / "comm"), short_name);
        if (program == own || (unseen && short_name == own.filename())) continue;
        return "process " + name + (unseen ? " (" + short_name + ")" : ", " + program.string());
    }
    return "";
}

void check_uid(std::vector<std::string>& obstacles) {
    uint32_t real = 0;
    uint32_t effective = 0;
    uint32_t saved = 0;
    (void)getresuid(&real, &effective, &saved);
    if (real != effective || real != saved) {
        obstacles.push_back("it runs as users " + number(real) + ", " + number(effective) +
                            " and " + number(saved) + " at once; they must be one");
    }
    if (effective == 0) return;
    if (effective == overflow_uid()) {
        obstacles.push_back("user " + number(effective) +
                            " is what users of other namespaces appear as");
    }
    const struct passwd* entry = getpwuid(effective);
    if (entry != nullptr && lets_in(entry->pw_shell)) {
        obstacles.push_back("people can log in as user " + number(effective) + " (" +
                            entry->pw_name + ", " + entry->pw_shell +
                            "); the broker needs one of its own");
    }
    const std::string other = other_program_of(effective);
    if (!other.empty()) {
        obstacles.push_back("another program runs as user " + number(effective) + ": " + other);
    }
}

}  // namespace

std::vector<std::string> multi_user_obstacles(const Config& config, const std::string& socket) {
    std::vector<std::string> obstacles;
    if ((config.socket_mode & 0066) == 0) {
        obstacles.push_back("socket_mode lets in nobody but user " + number(geteuid()) +
                            " itself; write \"0666\", or \"0660\" with a group of its own");
    }
    if (others_change(folder_of(socket))) {
        obstacles.push_back("others can change the socket's folder " + folder_of(socket));
    }
    if (!config.file.empty() && others_change(config.file)) {
        obstacles.push_back("others can change the configuration " + config.file);
    }
    check_uid(obstacles);
    return obstacles;
}

uint32_t overflow_uid() {
    uint32_t uid = 65534;
    std::ifstream("/proc/sys/kernel/overflowuid") >> uid;
    return uid;
}

}  // namespace dibs
