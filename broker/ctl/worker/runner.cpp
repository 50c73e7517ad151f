// broker/ctl/worker/runner.cpp -- runs the loop: sleep until an event or a due time, look, repeat.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/runner.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <string>
#include <utility>

#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/stop_signals.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/tree/tree_leaf.hpp"
#include "broker/ctl/worker/crew.hpp"
#include "broker/ctl/worker/ground.hpp"
#include "broker/takeover/service_notice.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl::worker {

namespace {

// Words to the broker may be under way for so long after something has happened: as dibs/dibs.h
// asks of event loops, sleep no longer than its safety net then.
constexpr int64_t kNet = 100 * DIBS_MILLISECOND;
constexpr int64_t kQuietAfter = DIBS_SECOND;

// Each process takes about a dozen descriptors. They are the crew's: none survives an exec.
void raise_descriptor_limit() {
    struct rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

// `orphans`: also of children that have ended.
shm::Descriptor take_signals(bool orphans) {
    sigset_t taken = stop_signals();
    if (orphans) sigaddset(&taken, SIGCHLD);
    sigprocmask(SIG_BLOCK, &taken, nullptr);
    return shm::Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
}

// What a service manager says to this process is not for those that it starts.
void leave_out_of_environment() {
    for (const char* name : {"NOTIFY_SOCKET",
                             "WATCHDOG_USEC",
                             "WATCHDOG_PID",
                             "LISTEN_FDS",
                             "LISTEN_PID",
                             "LISTEN_FDNAMES",
                             "MAINPID",
                             "MANAGERPID"})
        unsetenv(name);
}

// What can be known to be wrong before anything is started.
void check_pool(const Options& options) {
    const Attachment attachment(options.socket, small_session());
    const dibs_pool_limits limits = attachment.describe(attachment.pool(options.pool.name));
    if (limits.has_workers == 0) {
        throw Failure(kExitUsage,
                      "pool \"" + options.pool.name +
                          "\" is counted: its slots have no workers; dibs exec runs a command with "
                          "one of them");
    }
    check_attributes(options, options.pool.count - 1, 1, limits);  // with the shortest process id
    if (limits.answer_max == 0 && options.lines == Lines::kAnswer) {
        talk("dibs worker: pool \"" + options.pool.name +
             "\" has answer_max = 0: its holders get no answers; set answer_max in dibsd's "
             "configuration, or say --lines none");
    }
}

class Runner {
  public:
    Runner(const std::vector<Options>& all, const Reload& reload)
        : reload_(reload),
          ground_(reload != nullptr),
          signals_(take_signals(reload != nullptr && ground_.tree() == nullptr)) {
        if (reload_) {
            notices_ = std::make_unique<ServiceNotices>();
            leave_out_of_environment();
        }
        for (const Options& options : all)
            crews_.push_back(std::make_unique<Crew>(options, ground_));
    }

    int run() {
        for (bool told = notices_ == nullptr; !gone(); told = true) {
            sleep(told ? monotonic_ns() : INT64_MAX);
            look(monotonic_ns());
            if (!told) tell_manager("READY=1");
            if (std::any_of(
                    crews_.begin(), crews_.end(), [](const auto& it) { return it->gave_up(); })) {
                return kExitFailed;
            }
        }
        return kExitOk;
    }

  private:
    // Later than all that is due: not at all.
    void sleep(int64_t now_ns) {
        watched_.assign({{signals_.get(), POLLIN, 0}, {ground_.guard().fd(), 0, 0}});
        int64_t due_ns = INT64_MAX;
        for (const auto& crew : crews_) {
            crew->watch(&watched_);
            due_ns = std::min(due_ns, crew->due_ns());
        }
        if (now_ns - last_event_ns_ < kQuietAfter) due_ns = std::min(due_ns, now_ns + kNet);
        const int64_t left_ns = std::max<int64_t>(due_ns - now_ns, 0);
        const int64_t left_ms = left_ns / DIBS_MILLISECOND + (left_ns % DIBS_MILLISECOND != 0);
        const int timeout = due_ns == INT64_MAX && now_ns != INT64_MAX
                                ? -1
                                : static_cast<int>(std::min<int64_t>(left_ms, INT_MAX));
        happened_ = poll(watched_.data(), watched_.size(), timeout) > 0;
    }

    void look(int64_t now_ns) {
        if (happened_) last_event_ns_ = now_ns;
        if (happened_ && (watched_[1].revents & POLLERR) != 0) ground_.renew_guard(now_ns);
        for (const auto& crew : crews_)
            crew->look(happened_ ? &watched_ : nullptr, now_ns);
        std::erase_if(crews_, [this](const auto& crew) {
            return reload_ && crew->draining() && crew->gone() && !stopping_;
        });
        if (reload_ && ground_.tree() == nullptr) reap_orphans();
        take_signals_in(now_ns);
    }

    void take_signals_in(int64_t now_ns) {
        signalfd_siginfo taken = {};
        while (read(signals_.get(), &taken, sizeof taken) == sizeof taken) {
            if (taken.ssi_signo == SIGCHLD) continue;  // reap_orphans()
            if (taken.ssi_signo == SIGHUP && reload_) {
                if (!stopping_) take_reload(now_ns);
            } else {
                stop(now_ns);
            }
        }
    }

    void stop(int64_t now_ns) {
        if (!stopping_ && notices_) tell_manager("STOPPING=1");
        for (const auto& crew : crews_) {
            if (stopping_) {
                crew->stop_now(now_ns);
            } else {
                crew->drain(now_ns);
            }
        }
        stopping_ = true;
    }

    void take_reload(int64_t now_ns) {
        const auto wanted = reload_();
        if (!wanted) return;
        for (const auto& crew : crews_) {
            if (std::none_of(wanted->begin(), wanted->end(), [&](const Options& options) {
                    return is_of(*crew, options);
                })) {
                crew->drain(now_ns);
            }
        }
        for (const Options& options : *wanted) {
            const auto crew = std::find_if(
                crews_.begin(), crews_.end(), [&](const auto& it) { return is_of(*it, options); });
            try {
                if (crew != crews_.end()) {
                    (*crew)->take_options(options);
                } else {
                    crews_.push_back(std::make_unique<Crew>(options, ground_));
                }
            } catch (const std::exception& failure) {
                talk("dibs-runner: type \"" + options.type + "\" of pool \"" + options.pool.name +
                     "\": " + harmless(failure.what()) + "; it stays as it is");
            }
        }
        talk("dibs-runner: has read its file again");
    }

    static bool is_of(const Crew& crew, const Options& options) {
        return !crew.draining() && crew.options().type == options.type &&
               crew.options().pool.name == options.pool.name;
    }

    // Whose parent has ended is this process's child, where it is the subreaper.
    void reap_orphans() {
        for (;;) {
            siginfo_t ended = {};
            const int looked = waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT);
            if (looked != 0 || ended.si_pid == 0 || is_ours(ended.si_pid)) return;
            if (ended.si_pid == ground_.guard().pid()) {
                ground_.reap_guard();
            } else {
                waitpid(ended.si_pid, nullptr, 0);
            }
        }
    }
    [[nodiscard]] bool is_ours(pid_t pid) const {
        return std::any_of(
            crews_.begin(), crews_.end(), [&](const auto& crew) { return crew->has_process(pid); });
    }

    void tell_manager(const std::string& text) {
        constexpr uint32_t kMs = 1'000;
        notices_->say(text);
        notices_->settle(kMs);
    }

    // A service runs without types, too, until it is told some.
    [[nodiscard]] bool gone() const {
        if (reload_ && !stopping_) return false;
        return std::all_of(
            crews_.begin(), crews_.end(), [](const auto& crew) { return crew->gone(); });
    }

    const Reload& reload_;
    Ground ground_;
    shm::Descriptor signals_;
    std::unique_ptr<ServiceNotices> notices_;
    std::vector<std::unique_ptr<Crew>> crews_;
    std::vector<pollfd> watched_;
    bool happened_ = false;
    bool stopping_ = false;
    int64_t last_event_ns_ = 0;
};

}  // namespace

int run_crews(const std::vector<Options>& all, const Reload& reload) {
    if (!reload) check_pool(all.front());
    raise_descriptor_limit();
    return Runner(all, reload).run();
}

}  // namespace dibs::ctl::worker
