// broker/ctl/worker/process.cpp -- starts, signals and reaps a process of the command.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/process.hpp"

#include <fcntl.h>
#include <grp.h>
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

// What did not succeed between fork and exec.
struct Trouble {
    enum Step : int { kEntrance, kUser, kFolder, kProgram } step = kProgram;
    int error = 0;
};

Failure shown_trouble(const Trouble& trouble, const ProcessStart& start) {
    const std::string why = std::string(": ") + std::strerror(trouble.error);
    switch (trouble.step) {
        case Trouble::kEntrance:
            return {kExitOwnFailure, "a process cannot enter its control group" + why};
        case Trouble::kUser:
            return {kExitOwnFailure, "a process cannot become user " + start.user->name + why};
        case Trouble::kFolder:
            return {kExitCannotExecute, "cannot start in folder " + start.folder + why};
        case Trouble::kProgram:
            break;
    }
    return {trouble.error == ENOENT ? kExitNoCommand : kExitCannotExecute,
            "cannot execute " + start.program + why};
}

// Another user's command is not linked with what this one's environment names.
std::vector<std::string> environment_for(const ProcessStart& start) {
    std::vector<std::string> all = environment_with(start.variables);
    if (start.user != nullptr)
        std::erase_if(all, [](const std::string& one) { return one.starts_with("LD_"); });
    return all;
}

// Between fork and exec: system calls only.
struct Becoming {
    const char* program;
    char* const* argv;
    char* const* envp;
    int input;
    int output;
    int error;
    int entrance;        // of its control group; -1: none
    const char* folder;  // null: here
    const OtherUser* user;
    int failure;  // where a Trouble goes if it cannot be executed
    pid_t parent;

    [[noreturn]] void run() const {
        end_with_parent();
        if (entrance >= 0 && write(entrance, "0", 1) != 1) give_up(Trouble::kEntrance);
        setpgid(0, 0);
        if (user != nullptr) become_user();
        if (folder != nullptr && chdir(folder) != 0) give_up(Trouble::kFolder);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        restore_lost_readers();
        dup2(input, STDIN_FILENO);
        dup2(output, STDOUT_FILENO);
        if (error >= 0) dup2(error, STDERR_FILENO);
        execvpe(program, argv, envp);
        give_up(Trouble::kProgram);
    }
    void end_with_parent() const {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(kExitOwnFailure);
    }
    // Whose change of user takes the signal at its parent's death away.
    void become_user() const {
        if (setgroups(user->groups.size(), user->groups.data()) != 0 ||
            setresgid(user->gid, user->gid, user->gid) != 0 ||
            setresuid(user->uid, user->uid, user->uid) != 0) {
            give_up(Trouble::kUser);
        }
        end_with_parent();
    }
    [[noreturn]] void give_up(Trouble::Step step) const {
        const Trouble trouble = {step, errno};
        (void)!write(failure, &trouble, sizeof trouble);
        _exit(kExitNoCommand);
    }
};

// So that the command can open its /dev/stderr and the like: a pipe is its maker's, mode 0600.
void give_to(const OtherUser* user, int pipe) {
    if (user != nullptr && pipe >= 0) (void)!fchown(pipe, user->uid, user->gid);
}

void unblock(int fd) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

Process::Process(const ProcessStart& start) {
    const std::vector<std::string> environment = environment_for(start);
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
    if (start.fed) give_to(start.user, in.reading.get());
    give_to(start.user, out.writing.get());
    give_to(start.user, start.log);
    const int unpiped = start.log >= 0 ? start.log : start.quiet ? STDERR_FILENO : STDOUT_FILENO;
    const Becoming becoming = {start.program.c_str(),
                               argv.data(),
                               envp.data(),
                               in.reading.get(),
                               start.piped ? out.writing.get() : unpiped,
                               start.log,
                               start.entrance.get(),
                               start.folder.empty() ? nullptr : start.folder.c_str(),
                               start.user,
                               failure.writing.get(),
                               getpid()};
    pid_ = fork();
    if (pid_ == 0) becoming.run();
    if (pid_ < 0) throw system_failure("fork");
    setpgid(pid_, pid_);
    guard_ = start.guard;
    if (guard_ != nullptr) guard_->add(pid_);
    failure.writing.reset();
    Trouble trouble;
    const bool failed = read(failure.reading.get(), &trouble, sizeof trouble) == sizeof trouble;
    pidfd_ = shm::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (failed || !pidfd_.valid()) {
        if (!failed) trouble.error = errno;
        kill(pid_, SIGKILL);
        reap();
        pid_ = -1;
        throw shown_trouble(trouble, start);
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
