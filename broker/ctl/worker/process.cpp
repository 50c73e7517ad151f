// broker/ctl/worker/process.cpp -- starts, signals and reaps a process of the command.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "broker/ctl/exec_strings.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/system_failure.hpp"

namespace dibs::ctl::worker {

namespace {

struct Pipe {
    shm::Descriptor reading;
    shm::Descriptor writing;
};

Pipe make_pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw system_failure("pipe");
    return {shm::Descriptor(ends[0]), shm::Descriptor(ends[1])};
}

// Between fork and exec: system calls only.
struct Becoming {
    const char* program;
    char* const* argv;
    char* const* envp;
    int input;
    int output;
    int entrance;  // of its control group; -1: none
    int failure;   // where errno goes if it cannot be executed, and -errno if it cannot enter
    pid_t parent;

    [[noreturn]] void run() const {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(kExitOwnFailure);
        if (entrance >= 0 && write(entrance, "0", 1) != 1) give_up(-errno);
        setpgid(0, 0);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        restore_lost_readers();
        dup2(input, STDIN_FILENO);
        dup2(output, STDOUT_FILENO);
        execvpe(program, argv, envp);
        give_up(errno);
    }
    [[noreturn]] void give_up(int error) const {
        (void)!write(failure, &error, sizeof error);
        _exit(kExitNoCommand);
    }
};

void unblock(int fd) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

Process::Process(const ProcessStart& start) {
    const std::vector<std::string> environment = environment_with(start.variables);
    const std::vector<char*> argv = pointers_to(start.command);
    const std::vector<char*> envp = pointers_to(environment);
    Pipe in;
    Pipe out;
    Pipe failure = make_pipe();
    if (start.fed) {
        in = make_pipe();
    } else {
        in.reading = shm::Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    if (start.piped) out = make_pipe();
    const int unpiped = start.quiet ? STDERR_FILENO : STDOUT_FILENO;
    const Becoming becoming = {start.program.c_str(),
                               argv.data(),
                               envp.data(),
                               in.reading.get(),
                               start.piped ? out.writing.get() : unpiped,
                               start.entrance.get(),
                               failure.writing.get(),
                               getpid()};
    pid_ = fork();
    if (pid_ == 0) becoming.run();
    if (pid_ < 0) throw system_failure("fork");
    setpgid(pid_, pid_);
    guard_ = start.guard;
    if (guard_ != nullptr) guard_->add(pid_);
    failure.writing.reset();
    int error = 0;
    const bool failed = read(failure.reading.get(), &error, sizeof error) == sizeof error;
    pidfd_ = shm::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (failed || !pidfd_.valid()) {
        if (!failed) error = errno;
        kill(pid_, SIGKILL);
        reap();
        pid_ = -1;
        if (error < 0) {
            throw Failure(
                kExitOwnFailure,
                std::string("a process cannot enter its control group: ") + std::strerror(-error));
        }
        throw Failure(error == ENOENT ? kExitNoCommand : kExitCannotExecute,
                      "cannot execute " + start.program + ": " + std::strerror(error));
    }
    input_ = std::move(in.writing);
    output_ = std::move(out.reading);
    if (input_.valid()) unblock(input_.get());
    if (output_.valid()) unblock(output_.get());
}

Process::~Process() {
    if (pid_ <= 0 || status_) return;
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    reap();
}

// Its number is its own until then.
void Process::reap() {
    int status = 0;
    if (waitpid(pid_, &status, 0) == pid_) status_ = status;
    if (guard_ != nullptr) guard_->remove(pid_);
}

void Process::signal(int number) const {
    if (!status_) kill(-pid_, number);
}

std::optional<int> Process::ended() {
    if (status_) return status_;
    siginfo_t peek = {};
    const int looked = waitid(P_PID, static_cast<id_t>(pid_), &peek, WEXITED | WNOHANG | WNOWAIT);
    if (looked != 0 || peek.si_pid == 0) return std::nullopt;
    kill(-pid_, SIGKILL);  // while the dead one still holds the number
    reap();
    return status_;
}

std::string shown_end(int status) {
    if (WIFSIGNALED(status)) {
        return "was killed by signal " + std::to_string(WTERMSIG(status));
    }
    return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace dibs::ctl::worker
