// broker/ctl/exec/wrapper.cpp -- forks, waits, and passes signals on.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/wrapper.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/exec/holder.hpp"
#include "broker/ctl/exec/lease_watch.hpp"
#include "broker/ctl/exec/terminal.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/output/who.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/system_failure.hpp"
#include "broker/ctl/tree/tree_leaf.hpp"
#include "shm/descriptor.hpp"
#include "shm/layout.hpp"

namespace dibs::ctl::exec {

namespace {

constexpr int kEndingMs = 100;
constexpr int64_t kAgainNs = 100 * DIBS_MILLISECOND;
constexpr int kToldAt = 10;  // attempts to end what has lost its slot

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

class Wrapper {
  public:
    // Waits for the grant. Signals do what they do by themselves meanwhile: they end it, and the
    // holder leaves with it.
    explicit Wrapper(const Options& options) : options_(options), holder_(options) {
        make_tree();
        std::function<shm::Descriptor()> connect = [this] { return holder_.connect(); };
        if (owns_session()) connect = nullptr;
        watch_ = std::make_unique<LeaseWatch>(options, connect, tree_ != nullptr && !reaps());
        environment_ = watch_->environment(options);
        block_signals();
    }

    int run() {
        start();
        while (runs() || is_ending_tree()) {
            await();
            take_signals();
            if (watch_ && runs()) look_at_lease();
        }
        terminal_.take_back();
        const bool failed = lost_ || killed_by_broker();
        const bool gives_back = is_task() && owns_session() && watch_;
        leave_tree();
        if (failed) return kExitOwnFailure;
        const bool is_done = WIFEXITED(*status_) && WEXITSTATUS(*status_) == 0;
        if (gives_back && is_done) watch_->give_back();
        return WIFSIGNALED(*status_) ? die_of(WTERMSIG(*status_)) : WEXITSTATUS(*status_);
    }

  private:
    // The holder is in it before it connects.
    void make_tree() {
        if (options_.tree == Tree::kNone) return;
        if (is_task() && options_.tree == Tree::kIfPossible) {
            tree_ = TreeLeaf::of_descendants();
            return;
        }
        std::string why;
        tree_ = TreeLeaf::make("exec", &why);
        if (tree_ != nullptr && !tree_->take(holder_.pid(), &why)) tree_.reset();
        // What is killed with the lease becomes this process's child, and so is known.
        if (tree_ != nullptr) prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (tree_ != nullptr || options_.tree != Tree::kRequired) return;
        talk("dibs exec: --tree without a control group (" + why +
             "): this process keeps the slot until all that the command has started has ended, and "
             "gives it back if it is killed");
        tree_ = TreeLeaf::of_descendants();
    }

    [[nodiscard]] bool is_task() const { return !options_.application.empty(); }
    // Instead of the command's: whether a task has completed, its command's exit code says, which
    // only this process learns. Who asks for a tree wants what dies with it more than that.
    [[nodiscard]] bool owns_session() const {
        return reaps() || (is_task() && options_.tree != Tree::kRequired);
    }
    // It waits for what the command has left, with the lease.
    [[nodiscard]] bool reaps() const { return tree_ != nullptr && !tree_->is_group(); }
    // The command, or what it has left and is waited for.
    [[nodiscard]] bool runs() const { return !status_ || (reaps() && tree_->is_populated()); }

    void block_signals() {
        sigset_t taken;
        sigemptyset(&taken);
        for (const int signal : kPassedOn)
            sigaddset(&taken, signal);
        sigaddset(&taken, SIGCHLD);
        signals_ = shm::Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
        if (signals_.get() < 0) throw system_failure("signalfd");
        sigaddset(&taken, SIGTTOU);
        sigprocmask(SIG_BLOCK, &taken, nullptr);
    }

    // The holder has forked before signals were blocked, and waits for the last word.
    void start() {
        setpgid(holder_.pid(), holder_.pid());
        terminal_.lend(holder_.pid());
        holder_.execute(environment_, owns_session() || !options_.outlives());
    }

    void await() {
        std::array<pollfd, 3> watched = {
            {{signals_.get(), POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLPRI, 0}}};
        int timeout_ms = -1;
        if (lost_) {
            timeout_ms = kill_timeout_ms();
        } else if (watch_ && runs()) {
            watched[1].fd = watch_->fd();
            timeout_ms = watch_->poll_timeout_ms();
        }
        if (is_ending_tree() && tree_->is_group()) watched[2].fd = tree_->events();
        const int tell_ms = milliseconds_to(tell_left_at_ns_);
        if (tell_ms >= 0 && (timeout_ms < 0 || tell_ms < timeout_ms)) timeout_ms = tell_ms;
        (void)poll(watched.data(), watched.size(), timeout_ms);
        if (milliseconds_to(tell_left_at_ns_) == 0) {
            tell_left_at_ns_ = INT64_MAX;
            if (!lost_) tell_left();
        }
        if (lost_ && kill_timeout_ms() == 0) {
            if (reaps() && ++kills_ == kToldAt && told_lives_on_ == 0) tell_of_rest();
            kill_at_ns_ = next_kill_ns();
            const bool sent = end_command(SIGKILL);
            if (!sent && told_lives_on_ < 2) tell_lives_on();
        }
    }

    // Without a group a look at what there is to kill may miss something.
    [[nodiscard]] int64_t next_kill_ns() const {
        return reaps() ? after(monotonic_ns(), kAgainNs) : INT64_MAX;
    }

    [[nodiscard]] int kill_timeout_ms() const { return milliseconds_to(kill_at_ns_); }

    // Negative: never.
    static int milliseconds_to(int64_t at_ns) {
        if (at_ns == INT64_MAX) return -1;
        const int64_t left_ns = std::max<int64_t>(at_ns - monotonic_ns(), 0);
        return static_cast<int>(
            std::min<int64_t>((left_ns + DIBS_MILLISECOND - 1) / DIBS_MILLISECOND, INT32_MAX));
    }

    void take_signals() {
        signalfd_siginfo taken = {};
        while (read(signals_.get(), &taken, sizeof taken) == sizeof taken) {
            const int signal = static_cast<int>(taken.ssi_signo);
            if (signal == SIGCHLD) {
                look_at_child();
            } else if (status_ && runs()) {
                (void)end_command(signal);
            } else if (!status_ && !signal_command(signal) && told_lives_on_ == 0) {
                ++told_lives_on_;
                talk("dibs exec: signal " + std::to_string(signal) + " cannot be passed on to " +
                     command_shown() + " as it runs as another user");
            }
        }
    }

    // To the command's group. False: the command itself may not be signalled, as it has changed its
    // user (sudo, su).
    [[nodiscard]] bool signal_command(int signal) const {
        (void)kill(-holder_.pid(), signal);
        return kill(holder_.pid(), 0) == 0 || errno != EPERM;
    }

    // The same, to all that it has started where that is known; KILL reaches other users' as well.
    [[nodiscard]] bool end_command(int signal) const {
        if (tree_ == nullptr) return signal_command(signal);
        signal == SIGKILL ? tree_->kill() : tree_->signal(signal);
        if (!reaps() || status_) return true;
        const std::vector<uint32_t> found = tree_->processes();
        const auto command = static_cast<uint32_t>(holder_.pid());
        const bool missed = std::find(found.begin(), found.end(), command) == found.end();
        return signal_command(missed ? signal : 0);
    }

    // The command is over, and what it has started is not, and has no slot any more.
    [[nodiscard]] bool is_ending_tree() const {
        return tree_ != nullptr && status_ && (lost_ || killed_) && tree_->is_populated();
    }

    // What ends in this very moment is nothing to talk about.
    void leave_tree() {
        if (tree_ == nullptr) return;
        if (watch_ != nullptr && tree_->is_group() && watch_->is_of_tree()) {
            const bool runs_on = !await_rest();
            std::string left = runs_on ? shown_running(tree_->processes()) : "";
            if (killed_count_ != 0) left = shown_running(killed_count_, first_killed_);
            if (!left.empty() && !killed_ && broker_kills()) {
                talk("dibs exec: the command has ended and left " + left +
                     ": killed with its lease, as pool \"" + options_.pool.name +
                     "\" has strict expiry");
            } else if (runs_on) {
                tell_left();
            }
            // Closing the session would give it back now.
            [[maybe_unused]] static const LeaseWatch* const left_open =
                runs_on ? watch_.release() : nullptr;
        }
        tree_.reset();
    }

    // For a moment. True: nothing is left of what the command has started, and this process knows
    // how that ended.
    bool await_rest() {
        const int64_t until_ns = after(monotonic_ns(), kEndingMs * DIBS_MILLISECOND);
        for (;;) {
            take_signals();
            siginfo_t unused = {};
            const bool populated = tree_->is_populated();
            const bool has_children = waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) == 0;
            if (!populated && !has_children) return true;
            const int64_t left_ns = until_ns - monotonic_ns();
            if (left_ns <= 0) return !populated;
            pollfd watched[] = {{signals_.get(), POLLIN, 0}, {tree_->events(), POLLPRI, 0}};
            (void)poll(watched, 2, static_cast<int>(left_ns / DIBS_MILLISECOND + 1));
        }
    }

    // In a pool of strict expiry the broker kills what outlives the holder of a lease.
    [[nodiscard]] bool broker_kills() const {
        try {
            AdminClient client(options_.socket, answer_timeout_ns(options_));
            admin::RequestT request;
            request.ask = admin::Ask::inspect;
            request.id = watch_->granted().lease.id;
            const admin::AnswerT answer = client.ask(request);
            if (answer.leases.size() != 1 || !answer.leases.front()->killed) return false;
            return static_cast<shm::Reason>(answer.leases.front()->reason) != shm::Reason::kRevoked;
        } catch (const Failure&) {
            return false;
        }
    }

    void tell_left() const {
        const std::string left = shown_running(tree_->processes());
        if (left.empty()) return;
        talk("dibs exec: the command has ended and left " + left + ": the slot of pool \"" +
             options_.pool.name + "\" is given back when the last one has ended");
    }

    // It was killed, and lives on.
    void tell_of_rest() const {
        const std::string left = shown_running(tree_->processes());
        if (left.empty()) return;
        talk("dibs exec: the command has lost its slot and left " + left +
             ": KILL has not ended that yet; end it as its user, or as root");
    }

    [[nodiscard]] std::string command_shown() const {
        return "the command, " + process_text(static_cast<uint32_t>(holder_.pid())) + ",";
    }

    // It has lost its lease, and nothing here can end it.
    void tell_lives_on() {
        ++told_lives_on_;
        talk(
            "dibs exec: " + command_shown() +
            " runs on without its lease: it runs as another user, whose processes this one may not "
            "end. Its slot may be given to another claim: end it as that user");
    }

    // A command that was killed had no time to end what it started, and has no slot for it any
    // more.
    void end_group_of_killed() {
        siginfo_t end = {};
        const int options = WEXITED | WNOHANG | WNOWAIT;
        if (waitid(P_PID, static_cast<id_t>(holder_.pid()), &end, options) == 0 &&
            end.si_pid == holder_.pid() && end.si_code == CLD_KILLED && end.si_status == SIGKILL) {
            kill(-holder_.pid(), SIGKILL);
            killed_ = true;
            if (tree_ != nullptr) tree_->kill();
        }
    }

    void look_at_child() {
        end_group_of_killed();  // while the dead one still holds the number
        int status = 0;
        while (!status_ &&
               waitpid(holder_.pid(), &status, WUNTRACED | WCONTINUED | WNOHANG) == holder_.pid()) {
            if (WIFCONTINUED(status)) {
                stopped_ = false;
            } else if (WIFSTOPPED(status)) {
                stopped_ = true;
                stop_too(WSTOPSIG(status));
            } else {
                status_ = status;
                if (reaps()) tell_left_at_ns_ = after(monotonic_ns(), kEndingMs * DIBS_MILLISECOND);
                terminal_.take_back();
            }
        }
        reap_others();
    }

    // What was left to this process, also while the command runs, whose own end is taken above.
    void reap_others() {
        siginfo_t end = {};
        const auto is_other = [&] {
            return end.si_pid != 0 && (status_ || end.si_pid != holder_.pid());
        };
        while (tree_ != nullptr && waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               is_other()) {
            const bool is_killed = end.si_code == CLD_KILLED && end.si_status == SIGKILL;
            if (status_ && is_killed && killed_count_++ == 0)
                first_killed_ = process_text(static_cast<uint32_t>(end.si_pid));
            (void)waitpid(end.si_pid, nullptr, WNOHANG);
            end = {};
        }
    }

    // Ctrl-Z: the shell must see its job stop, and continues it by continuing this process.
    void stop_too(int signal) {
        if (signal == SIGSTOP) return;
        terminal_.take_back();
        stop_of(signal);
        terminal_.lend(holder_.pid());
        kill(-holder_.pid(), SIGCONT);
    }

    void look_at_lease() {
        if (!watch_->look(!stopped_)) return take_loss();
        const auto left_ns = watch_->newly_taken();
        if (!left_ns) return;
        told_ = true;
        (void)end_command(SIGTERM);
        (void)end_command(SIGCONT);
        talk("dibs exec: a better claim takes the slot of pool \"" + options_.pool.name +
             "\": the command has " + duration_text(static_cast<uint64_t>(*left_ns)) + " to end");
    }

    // The broker learns of the command's death as soon as its parent does, and ends the lease: that
    // is no loss. A command that has had its grace gets no other one.
    void take_loss() {
        look_at_child();
        if (!runs()) return;
        bool sent = true;
        if (!options_.run_on) {
            lost_ = true;
            kill_at_ns_ = told_ ? next_kill_ns() : after(monotonic_ns(), options_.grace_ns);
            sent = end_command(told_ ? SIGKILL : SIGTERM);
            (void)end_command(SIGCONT);
        }
        const std::string what = !sent             ? "the command cannot be ended"
                                 : options_.run_on ? "the command runs on without it (--run-on)"
                                                   : "ending the command";
        talk("dibs exec: the lease of pool \"" + options_.pool.name + "\" is lost (" +
             watch_->why_lost() + "): " + what);
        watch_.reset();
        if (!sent) tell_lives_on();
    }

    [[nodiscard]] bool killed_by_broker() const {
        if (!watch_ || !WIFSIGNALED(*status_) || WTERMSIG(*status_) != SIGKILL) return false;
        const std::string why = watch_->why_killed();
        if (why.empty()) return false;
        talk("dibs exec: the lease of pool \"" + options_.pool.name + "\" is lost (" + why +
             "): the command was killed");
        return true;
    }

    // The signal's own effect on this process, whose parent sees by it what became of the command.
    static void suffer(int signal) {
        ::signal(signal, SIG_DFL);
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, signal);
        raise(signal);
        sigprocmask(SIG_UNBLOCK, &one, nullptr);
    }

    // As the command was stopped, so that a shell reports the same signal. The kernel drops it
    // where no shell is there to continue this process's group (an orphaned one): then no SIGCONT
    // has come.
    static void stop_of(int signal) {
        suffer(signal);
        sigset_t pending;
        sigpending(&pending);
        if (sigismember(&pending, SIGCONT) == 0) raise(SIGSTOP);
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, signal);
        sigprocmask(SIG_BLOCK, &one, nullptr);
    }

    static int die_of(int signal) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);  // the command has dumped its own
        suffer(signal);
        return 128 + signal;
    }

    const Options& options_;
    Terminal terminal_;               // whose foreground this is as it begins
    std::unique_ptr<TreeLeaf> tree_;  // null: there is none. Empty once the holder has left
    Holder holder_;
    std::unique_ptr<LeaseWatch> watch_;  // null once the lease has ended
    std::vector<std::string> environment_;
    shm::Descriptor signals_;
    bool stopped_ = false;
    bool lost_ = false;
    bool killed_ = false;  // the command, by KILL
    bool told_ = false;    // that its slot is being taken
    int told_lives_on_ = 0;
    int kills_ = 0;            // since the lease is lost
    size_t killed_count_ = 0;  // of what the command has left
    std::string first_killed_;
    int64_t tell_left_at_ns_ = INT64_MAX;  // what is waited for
    int64_t kill_at_ns_ = INT64_MAX;
    std::optional<int> status_;
};

}  // namespace

int run_wrapped(const Options& options) {
    ::signal(SIGCHLD,
             SIG_DFL);  // the parent may have set it to ignore: then no child could be waited for
    return Wrapper(options).run();
}

}  // namespace dibs::ctl::exec
