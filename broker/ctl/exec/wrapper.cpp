// broker/ctl/exec/wrapper.cpp -- fork, wait, pass on.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/wrapper.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "broker/ctl/exec/holder.hpp"
#include "broker/ctl/exec/lease_watch.hpp"
#include "broker/ctl/exec/terminal.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/sheet.hpp"
#include "broker/ctl/subcommand.hpp"
#include "shm/descriptor.hpp"

namespace dibs::ctl::exec {

namespace {

constexpr int kPassedOn[] = {SIGHUP,
                             SIGINT,
                             SIGQUIT,
                             SIGTERM,
                             SIGUSR1,
                             SIGUSR2,
                             SIGALRM,
                             SIGCONT,
                             SIGTSTP,
                             SIGWINCH,
                             SIGPWR};
constexpr int kKillAfterMs = 5000;  // between TERM and KILL for a command that lost its lease

Failure system_failure(const char* call) {
    return {kExitOwnFailure, std::string(call) + ": " + std::strerror(errno)};
}

class Wrapper {
  public:
    explicit Wrapper(const Options& options) : options_(options) {
        if (options.keepalive_ns > 0 || options.taken_told) {
            watch_ = std::make_unique<LeaseWatch>(options);
            environment_ = watch_->environment(options);
        }
        block_signals();
    }

    int run() {
        start();
        while (!status_) {
            await();
            take_signals();
            if (watch_ && !lost_ && !status_) look_at_lease();
        }
        terminal_.take_back();
        if (lost_) return kExitOwnFailure;
        return WIFSIGNALED(*status_) ? die_of(WTERMSIG(*status_)) : WEXITSTATUS(*status_);
    }

  private:
    void block_signals() {
        sigset_t taken;
        sigemptyset(&taken);
        for (const int signal : kPassedOn)
            sigaddset(&taken, signal);
        sigaddset(&taken, SIGCHLD);
        signals_ = shm::Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
        if (signals_.get() < 0) throw system_failure("signalfd");
        sigaddset(&taken, SIGTTOU);
        sigprocmask(SIG_BLOCK, &taken, &inherited_);
    }

    void start() {
        const pid_t parent = getpid();
        std::fflush(nullptr);
        child_ = fork();
        if (child_ < 0) throw system_failure("fork");
        if (child_ == 0) become_command(parent);
        // Both sides do this, so that neither has to wait for the other.
        setpgid(child_, child_);
        terminal_.lend(child_);
    }

    [[noreturn]] void become_command(pid_t parent) {
        setpgid(0, 0);
        terminal_.lend_to_self();
        sigprocmask(SIG_SETMASK, &inherited_, nullptr);
        if (!watch_) claim_and_become(options_);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(kExitOwnFailure);
        try {
            become(options_, environment_);
        } catch (const std::exception&) {
            _exit(kExitOwnFailure);
        }
    }

    void await() {
        std::array<pollfd, 2> watched = {{{signals_.get(), POLLIN, 0}, {-1, POLLIN, 0}}};
        int timeout_ms = -1;
        if (lost_) {
            timeout_ms = kKillAfterMs;
        } else if (watch_) {
            watched[1].fd = watch_->fd();
            timeout_ms = watch_->poll_timeout_ms();
        }
        const int ready = poll(watched.data(), watched.size(), timeout_ms);
        if (ready == 0 && lost_) kill(-child_, SIGKILL);
    }

    void take_signals() {
        signalfd_siginfo taken = {};
        while (read(signals_.get(), &taken, sizeof taken) == sizeof taken) {
            const int signal = static_cast<int>(taken.ssi_signo);
            if (signal == SIGCHLD) {
                look_at_child();
            } else if (!status_) {
                kill(-child_, signal);
            }
        }
    }

    // Who was killed had no time to end what it started, and has no slot for it any more.
    void end_group_of_killed() const {
        siginfo_t end = {};
        const int options = WEXITED | WNOHANG | WNOWAIT;
        if (waitid(P_PID, static_cast<id_t>(child_), &end, options) == 0 && end.si_pid == child_ &&
            end.si_code == CLD_KILLED && end.si_status == SIGKILL) {
            kill(-child_, SIGKILL);
        }
    }

    void look_at_child() {
        end_group_of_killed();  // while the dead one still holds the number
        int status = 0;
        while (!status_ && waitpid(child_, &status, WUNTRACED | WCONTINUED | WNOHANG) == child_) {
            if (WIFCONTINUED(status)) {
                stopped_ = false;
            } else if (WIFSTOPPED(status)) {
                stopped_ = true;
                stop_too(WSTOPSIG(status));
            } else {
                status_ = status;
            }
        }
    }

    // Ctrl-Z: the shell must see its job stop, and continues it by continuing this process.
    void stop_too(int signal) {
        if (signal == SIGSTOP) return;
        terminal_.take_back();
        raise(SIGSTOP);
        terminal_.lend(child_);
        kill(-child_, SIGCONT);
    }

    void look_at_lease() {
        if (!watch_->look(!stopped_)) return end_command();
        const auto left_ns = watch_->newly_taken();
        if (!left_ns) return;
        told_ = true;
        std::fprintf(stderr,
                     "dibs exec: a better claim takes the slot of pool \"%s\": the command has "
                     "%s to end\n",
                     options_.pool.name.c_str(),
                     duration_text(static_cast<uint64_t>(*left_ns)).c_str());
        kill(-child_, SIGTERM);
        kill(-child_, SIGCONT);
    }

    // Who has had its grace gets no other one.
    void end_command() {
        lost_ = true;
        std::fprintf(stderr,
                     "dibs exec: the lease of pool \"%s\" is lost (%s): ending the command\n",
                     options_.pool.name.c_str(),
                     watch_->why().c_str());
        kill(-child_, told_ ? SIGKILL : SIGTERM);
        kill(-child_, SIGCONT);
    }

    // Whoever waits for this process shall see what became of the command.
    int die_of(int signal) const {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);  // the command has dumped its own
        ::signal(signal, SIG_DFL);
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, signal);
        raise(signal);
        sigprocmask(SIG_UNBLOCK, &one, nullptr);
        return 128 + signal;
    }

    const Options& options_;
    std::unique_ptr<LeaseWatch> watch_;
    std::vector<std::string> environment_;  // with a watch: the command's
    Terminal terminal_;
    shm::Descriptor signals_;
    sigset_t inherited_ = {};
    pid_t child_ = -1;
    bool stopped_ = false;
    bool lost_ = false;
    bool told_ = false;  // that its slot is being taken
    std::optional<int> status_;
};

}  // namespace

int run_wrapped(const Options& options) {
    return Wrapper(options).run();
}

}  // namespace dibs::ctl::exec
