// broker/sandbox/multi_user.cpp -- checks that a broker may safely serve several users.
// SPDX-License-Identifier: Apache-2.0
#include "broker/sandbox/multi_user.hpp"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "broker/admission/socket_path.hpp"

namespace dibs {

namespace {

std::string number(uint32_t value) {
    return std::to_string(value);
}

bool is_ours(const struct stat& about) {
    return about.st_uid == 0 || about.st_uid == geteuid();
}

bool others_write(const struct stat& about) {
    return (about.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

std::string folder_of(const std::string& path) {
    const auto folder = std::filesystem::path(path).parent_path();
    return folder.empty() ? "." : folder.string();
}

// From the root to what a path names, through links, as the kernel goes: a user who can write one
// of the folders on the way can put something else in its place.
class Way {
  public:
    explicit Way(const std::string& path) { take(path); }

    // Why a user other than root and the broker can change what lies at its end; empty: none can. A
    // missing file may belong to any user by the time that it exists.
    [[nodiscard]] std::string weakness() {
        std::string why = look("/");
        while (why.empty() && !left_.empty()) {
            const std::string name = left_.front();
            left_.pop_front();
            if (name == "..") {
                at_ = at_.parent_path();
            } else {
                why = step(at_ / name);
            }
        }
        return why;
    }
    // Behind that, for a folder in which names are taken: in a sticky one every user may take them.
    [[nodiscard]] std::string openness() const {
        struct stat about = {};
        if (lstat(at_.c_str(), &about) != 0) return at_.string() + ": " + std::strerror(errno);
        return others_write(about) ? writable(at_, about) : "";
    }

  private:
    static constexpr int kLinksMax = 40;  // as the kernel

    void take(const std::filesystem::path& path) {
        std::deque<std::string> names;
        for (const auto& name : path.is_absolute() ? path : std::filesystem::absolute(path)) {
            if (name != "/" && name != "." && !name.empty()) names.push_back(name);
        }
        left_.insert(left_.begin(), names.begin(), names.end());
    }
    std::string step(const std::filesystem::path& entry) {
        struct stat about = {};
        if (lstat(entry.c_str(), &about) != 0) return entry.string() + ": " + std::strerror(errno);
        if (!S_ISLNK(about.st_mode)) {
            at_ = entry;
            return look(entry);
        }
        if (!is_ours(about)) return owned(entry, about);
        if (++links_ > kLinksMax) return entry.string() + ": too many links";
        std::error_code error;
        const auto target = std::filesystem::read_symlink(entry, error);
        if (error) return entry.string() + ": " + error.message();
        take(target.is_absolute() ? target : at_ / target);
        at_ = "/";
        return "";
    }
    // What is in a sticky folder only its owner can put something else in the place of.
    static std::string look(const std::filesystem::path& entry) {
        struct stat about = {};
        if (lstat(entry.c_str(), &about) != 0) return entry.string() + ": " + std::strerror(errno);
        if (!is_ours(about)) return owned(entry, about);
        const bool sticky = S_ISDIR(about.st_mode) && (about.st_mode & S_ISVTX) != 0;
        return others_write(about) && !sticky ? writable(entry, about) : "";
    }
    static std::string writable(const std::filesystem::path& entry, const struct stat& about) {
        std::ostringstream mode;
        mode << std::oct << (about.st_mode & 07777U);
        return entry.string() + " can be written by its group or everybody (mode 0" + mode.str() +
               ")";
    }
    static std::string owned(const std::filesystem::path& entry, const struct stat& about) {
        return entry.string() + " belongs to user " + number(about.st_uid);
    }

    std::deque<std::string> left_;    // names to go
    std::filesystem::path at_ = "/";  // no link on the way to it
    int links_ = 0;
};

// Shells that refuse every login.
bool lets_in(const std::string& shell) {
    const std::string name = std::filesystem::path(shell).filename();
    return name != "nologin" && name != "false" && name != "sync";
}

// For a thread: is this uid its real, effective, saved or file system's? It can go back to each. A
// dead thread that its parent has not waited for yet does not count.
bool thread_runs_as(const std::filesystem::path& thread, uint32_t uid) {
    std::ifstream status(thread / "status");
    std::string line;
    while (std::getline(status, line)) {
        if (line.rfind("State:\tZ", 0) == 0 || line.rfind("State:\tX", 0) == 0) return false;
        if (line.rfind("Uid:", 0) != 0) continue;
        std::istringstream fields(line.substr(4));
        uint32_t one = 0;
        while (fields >> one) {
            if (one == uid) return true;
        }
        return false;
    }
    return false;
}

// Each thread of a process has uids of its own.
bool runs_as(const std::filesystem::path& process, uint32_t uid) {
    std::error_code gone;
    for (const auto& thread : std::filesystem::directory_iterator(process / "task", gone)) {
        if (thread_runs_as(thread.path(), uid)) return true;
    }
    return false;
}

// The first process that runs as `uid` and is not a broker or keeper, or an empty string.
std::string other_program_of(uint32_t uid) {
    std::error_code error;
    const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
        const std::string name = entry.path().filename();
        if (std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
        if (!runs_as(entry.path(), uid)) continue;
        std::error_code unseen;
        const auto program = std::filesystem::read_symlink(entry.path() / "exe", unseen);
        // A program that cannot be seen (a hardened broker is not dumpable) is recognised by its
        // name.
        std::string short_name;
        if (unseen) std::getline(std::ifstream(entry.path() / "comm"), short_name);
        if (unseen && !runs_as(entry.path(), uid)) continue;  // it has ended meanwhile
        const std::string name_here = own.filename();
        const bool named = short_name == name_here || short_name == name_here + "-broker" ||
                           short_name == name_here + "-standby";
        const bool replaced = program == own.string() + " (deleted)";
        if (program == own || replaced || (unseen && named)) continue;
        return "process " + name + (unseen ? " (" + short_name + ")" : ", " + program.string());
    }
    return "";
}

void check_login(const struct passwd& entry, std::vector<std::string>& obstacles) {
    if (!lets_in(entry.pw_shell)) return;
    std::string why = "people can log in as user " + number(entry.pw_uid) + " (" + entry.pw_name +
                      ", " + entry.pw_shell + "); the broker needs one of its own";
    if (std::find(obstacles.begin(), obstacles.end(), why) == obstacles.end()) {
        obstacles.push_back(std::move(why));
    }
}

// Several names may have one uid. Not every database can be listed: a user that is looked up is
// found there.
void check_logins(uint32_t uid, std::vector<std::string>& obstacles) {
    if (const struct passwd* entry = getpwuid(uid)) check_login(*entry, obstacles);
    setpwent();
    while (const struct passwd* entry = getpwent()) {
        if (entry->pw_uid == uid) check_login(*entry, obstacles);
    }
    endpwent();
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
    check_logins(effective, obstacles);
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
    if (!socket.empty()) {
        Way way(folder_of(socket));
        std::string why = way.weakness();
        if (why.empty()) why = way.openness();
        if (!why.empty()) {
            obstacles.push_back("others can put a socket of theirs at " + socket + ": " + why);
        }
    }
    if (!config.file.empty()) {
        const std::string why = Way(config.file).weakness();
        if (!why.empty()) {
            obstacles.push_back("others can change the configuration " + config.file + ": " + why);
        }
    }
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    const std::string why = error ? error.message() : Way(program).weakness();
    if (!why.empty()) {
        obstacles.push_back("others can change the program that the next broker is, " +
                            program.string() + ": " + why);
    }
    check_uid(obstacles);
    return obstacles;
}

std::string make_place(const Config& config, int lent) {
    if (lent >= 0) {
        struct sockaddr_un address = {};
        socklen_t size = sizeof(address);
        (void)getsockname(lent, reinterpret_cast<struct sockaddr*>(&address), &size);
        return {address.sun_path, strnlen(address.sun_path, sizeof(address.sun_path))};
    }
    const std::string path = config.socket.empty() ? default_socket() : config.socket;
    (void)mkdir(folder_of(path).c_str(), 0755);  // where it cannot be, listening will say so
    return path;
}

uint32_t overflow_uid() {
    uint32_t uid = 65534;
    std::ifstream("/proc/sys/kernel/overflowuid") >> uid;
    return uid;
}

}  // namespace dibs
