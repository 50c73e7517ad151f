// broker/takeover/keeper_child.cpp -- starts and watches the partner process, broker or keeper.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/keeper_child.hpp"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace dibs {

namespace {

const char* const kSelf = "/proc/self/exe";

[[noreturn]] void fail(int error, const char* what) {
    throw std::system_error(error, std::generic_category(), what);
}

shm::Descriptor pidfd_of(pid_t pid) {
    shm::Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd.valid()) fail(errno, "pidfd_open");
    return pidfd;
}

}  // namespace

std::optional<ProgramFile> OwnProgram::file(bool at_path) const {
    struct stat about = {};
    if (stat(at_path ? path.c_str() : kSelf, &about) != 0) return std::nullopt;
    return ProgramFile{about.st_dev, about.st_ino};
}

bool OwnProgram::replaced() const {
    if (access(path.c_str(), X_OK) != 0) return false;
    const auto own = file(false);
    const auto other = file(true);
    return own && other && *own != *other;
}

OwnProgram OwnProgram::called_with(std::vector<std::string> options) {
    std::array<char, PATH_MAX> path = {};
    const ssize_t size = readlink(kSelf, path.data(), path.size() - 1);
    std::string place = size > 0 ? std::string(path.data(), static_cast<size_t>(size)) : kSelf;
    // So the kernel calls what was replaced before this process began.
    constexpr std::string_view kGone = " (deleted)";
    if (place.ends_with(kGone) && access(place.c_str(), F_OK) != 0) {
        place.resize(place.size() - kGone.size());
    }
    return {std::move(place), std::move(options)};
}

// The kernel names it in a line of its own, for pidfds alone.
std::optional<pid_t> pid_of(int pidfd) {
    std::ifstream about("/proc/self/fdinfo/" + std::to_string(pidfd));
    for (std::string word; about >> word;) {
        pid_t pid = -1;
        if (word == "Pid:" && about >> pid) return pid;
    }
    return std::nullopt;
}

namespace {

// posix_spawn shares the memory until the exec: nothing is copied, however large the mappings are,
// and no other thread's lock matters. The socket loses close-on-exec in the child alone.
pid_t spawn(const std::string& path,
            const OwnProgram& program,
            const std::string& option,
            int socket) {
    std::vector<std::string> words = {"dibsd", option, std::to_string(socket)};
    words.insert(words.end(), program.options.begin(), program.options.end());
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, socket);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    pid_t pid = -1;
    const int error =
        posix_spawn(&pid, path.c_str(), &actions, &attributes, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) fail(error, ("posix_spawn of " + path).c_str());
    return pid;
}

}  // namespace

// A child's pid is its own until it is waited for. A process that cannot be watched counts as not
// started.
Process Process::started(pid_t pid) {
    try {
        return Process(pidfd_of(pid));
    } catch (const std::system_error&) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, nullptr, 0);
        throw;
    }
}

Process Process::start(const OwnProgram& program, const std::string& option, int socket) {
    return started(spawn(program.path, program, option, socket));
}

Process Process::start_own(const OwnProgram& program, const std::string& option, int socket) {
    return started(spawn(kSelf, program, option, socket));
}

shm::Descriptor Process::own_pidfd() {
    return pidfd_of(getpid());
}

bool Process::dead() const {
    return await_death(0);
}

bool Process::await_death(int ms) const {
    struct pollfd poll_fd = {pidfd_.get(), POLLIN, 0};
    return poll(&poll_fd, 1, ms) > 0;
}

void Process::signal(int number) const {
    (void)syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0);
}

// Until a child has been waited for, its number belongs to no other process.
void Process::kill_group() const {
    const pid_t pid = pid_of(pidfd_.get()).value_or(0);
    if (pid > 1) (void)kill(-pid, SIGKILL);
}

bool Process::stopped() const {
    siginfo_t about = {};
    return waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &about, WSTOPPED | WNOHANG | WNOWAIT) ==
               0 &&
           about.si_pid != 0;
}

std::optional<Process::Ending> Process::ending() const {
    siginfo_t about = {};
    if (waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &about, WEXITED | WNOHANG) != 0 ||
        about.si_pid == 0) {
        return std::nullopt;
    }
    return Ending{about.si_code != CLD_EXITED, about.si_status};
}

std::string shown(const std::optional<Process::Ending>& ending) {
    if (!ending) return "";
    return (ending->by_signal ? " of signal " : " with exit code ") +
           std::to_string(ending->number);
}

}  // namespace dibs
