// demo/child.cpp -- starts, signals and reaps a child process.
// SPDX-License-Identifier: Apache-2.0
#include "demo/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "broker/ctl/exec_strings.hpp"

namespace dibs::ctl::demo {

namespace {

constexpr int kExecFailed = 127;

// Between fork and exec: system calls only.
[[noreturn]] void become(char* const* argv,
                         char* const* envp,
                         const ChildConfig& config,
                         pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kExecFailed);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    // A group of its own: Ctrl-C reaches the parent alone, which then ends its children in order.
    setpgid(0, 0);
    if (config.output >= 0) {
        dup2(config.output, STDOUT_FILENO);
        dup2(config.output, STDERR_FILENO);
    }
    if (config.kept >= 0) fcntl(config.kept, F_SETFD, 0);
    execve(argv[0], argv, envp);
    _exit(kExecFailed);
}

}  // namespace

Child::Child(std::string name, const ChildConfig& config) : name_(std::move(name)) {
    const std::vector<std::string> environment = environment_with(config.environment);
    const std::vector<char*> argv = pointers_to(config.command);
    const std::vector<char*> envp = pointers_to(environment);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) become(argv.data(), envp.data(), config, parent);
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    if (pidfd_ < 0) {
        const int error = errno;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        throw std::system_error(error, std::generic_category(), "pidfd_open");
    }
}

Child::Child(Child&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      status_(other.status_) {}

Child::~Child() {
    if (running()) {
        signal(SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    if (pidfd_ >= 0) close(pidfd_);
}

void Child::signal(int number) const {
    if (running()) kill(pid_, number);
}

std::optional<int> Child::wait(int timeout_ms) {
    if (!running()) return status_;
    pollfd ended = {pidfd_, POLLIN, 0};
    int ready = 0;
    do {
        ready = poll(&ended, 1, timeout_ms);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) return std::nullopt;
    int status = 0;
    if (waitpid(pid_, &status, 0) == pid_) status_ = status;
    return status_;
}

std::string shown_status(int status) {
    if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
    if (WEXITSTATUS(status) == kExecFailed) return "exit code 127 (it could not be started)";
    return "exit code " + std::to_string(WEXITSTATUS(status));
}

void adopt_orphans() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

size_t children_left() {
    size_t dead = 0;
    for (;;) {
        const pid_t pid = waitpid(-1, nullptr, WNOHANG);
        if (pid == 0) return dead + 1;
        if (pid < 0 && errno == EINTR) continue;
        if (pid < 0) return dead;
        ++dead;
    }
}

}  // namespace dibs::ctl::demo
