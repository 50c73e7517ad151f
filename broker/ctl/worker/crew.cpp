// broker/ctl/worker/crew.cpp -- runs the loop: sleep until an event or a due time, look, repeat.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/crew.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/stop_signals.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/tree/tree_leaf.hpp"
#include "broker/ctl/worker/hand.hpp"
#include "broker/ctl/worker/notify_socket.hpp"
#include "broker/ctl/worker/orders.hpp"
#include "broker/text/line_wrap.hpp"

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

shm::Descriptor take_signals() {
    const sigset_t taken = stop_signals();
    sigprocmask(SIG_BLOCK, &taken, nullptr);
    return shm::Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::unique_ptr<TreeLeaf> make_tree(const Options& options) {
    std::string why;
    std::unique_ptr<TreeLeaf> tree = TreeLeaf::make("worker", &why);
    if (tree && tree->lets_in(&why)) return tree;
    if (options.leftovers == Leftovers::kEnd) {
        throw Failure(kExitOwnFailure,
                      "--leftovers end needs a control group for each process: " + why);
    }
    return nullptr;
}

class Crew {
  public:
    explicit Crew(const Options& options)
        : options_(options),
          tree_(make_tree(options)),
          guard_(tree_ ? tree_->folder() : ""),
          signals_(take_signals()) {
        if (options.notify) folder_ = std::make_unique<NotifyFolder>();
        for (uint32_t i = 0; i < options.pool.count; ++i) {
            const std::string path = folder_ ? folder_->path() + "/" + std::to_string(i) : "";
            hands_.push_back(std::make_unique<Hand>(options, guard_, tree_.get(), i, path));
        }
        spans_.resize(hands_.size());
        if (options.type.empty()) return;
        orders_ = std::make_unique<Orders>(options);
        talk("dibs worker: provisioner of type \"" + options.type + "\" of pool \"" +
             options.pool.name + "\": as many processes as are needed, " +
             std::to_string(hands_.size()) + " at most");
        told_ready_ = true;
    }

    // What is left at once, not one after the other as its leaf is waited for.
    ~Crew() {
        if (tree_) tree_->kill();
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    int run() {
        while (!gone()) {
            const int64_t now = monotonic_ns();
            sleep(now);
            look(monotonic_ns());
            if (gave_up()) return kExitFailed;
        }
        return kExitOk;
    }

  private:
    struct Span {
        size_t begin;
        size_t end;
    };

    void sleep(int64_t now_ns) {
        watched_.assign(1, {signals_.get(), POLLIN, 0});
        int64_t due_ns = drain_due_ns_;
        if (orders_) {
            due_ns = orders_->arm() ? std::min(due_ns, orders_->due_ns()) : 0;
            watched_.push_back({orders_->fd(), POLLIN, 0});
        }
        for (size_t i = 0; i < hands_.size(); ++i) {
            spans_[i].begin = watched_.size();
            hands_[i]->watch(&watched_);
            spans_[i].end = watched_.size();
            due_ns = std::min(due_ns, hands_[i]->due_ns());
        }
        if (now_ns - last_event_ns_ < kQuietAfter) due_ns = std::min(due_ns, now_ns + kNet);
        const int64_t left_ns = std::max<int64_t>(due_ns - now_ns, 0);
        const int64_t left_ms = left_ns / DIBS_MILLISECOND + (left_ns % DIBS_MILLISECOND != 0);
        const int timeout =
            due_ns == INT64_MAX ? -1 : static_cast<int>(std::min<int64_t>(left_ms, INT_MAX));
        happened_ = poll(watched_.data(), watched_.size(), timeout) > 0;
    }

    void look(int64_t now_ns) {
        if (happened_) last_event_ns_ = now_ns;
        for (size_t i = 0; i < hands_.size(); ++i) {
            bool due = now_ns >= hands_[i]->due_ns();
            for (size_t k = spans_[i].begin; happened_ && k < spans_[i].end; ++k)
                due = due || watched_[k].revents != 0;
            if (due) hands_[i]->look(now_ns);
        }
        if (orders_) take_orders(now_ns);
        tell_when_ready();
        take_stops(now_ns);
        if (now_ns >= drain_due_ns_) stop_now(now_ns);
    }

    // Each is answered at once: a process that cannot be started has failed, and one that is not
    // announced fails later. Where all are there and one is ending, the order waits for that.
    void take_orders(int64_t now_ns) {
        dibs_assignment order = {};
        while (orders_->next(&order, now_ns)) {
            if (order.kind == DIBS_STOP) {
                for (const auto& hand : hands_)
                    (void)hand->stop_order(order.slot, now_ns);
            } else {
                waiting_.push_back(order_of(order));
            }
        }
        while (!waiting_.empty() && take_order(now_ns))
            waiting_.pop_front();
        for (const auto& hand : hands_) {
            if (const auto failed = hand->failed_order()) {
                orders_->answer(*failed, DIBS_NOT_STARTED);
            }
        }
    }

    // The one that has waited longest. False: it waits on.
    bool take_order(int64_t now_ns) {
        const Order& waiting = waiting_.front();
        const uint64_t order = waiting.slot;
        const auto hand = std::find_if(
            hands_.begin(), hands_.end(), [](const auto& it) { return it->is_free(); });
        if (is_failing(now_ns)) {
            orders_->answer(order, DIBS_NOT_STARTED);
        } else if (hand != hands_.end()) {
            (*hand)->take_order(waiting, now_ns);
            if (!(*hand)->is_free()) orders_->answer(order, DIBS_CREATED);
        } else {
            const bool waits = std::any_of(
                hands_.begin(), hands_.end(), [](const auto& it) { return it->is_ending(); });
            if (waits) return false;
            orders_->answer(order, DIBS_AT_CAPACITY);
        }
        return true;
    }

    // Orders whose processes will not come: as failed, so that none is made anew for this one.
    void give_up_orders() {
        for (const Order& waiting : waiting_)
            orders_->answer(waiting.slot, DIBS_NOT_STARTED);
        waiting_.clear();
        for (const auto& hand : hands_) {
            if (const auto order = hand->unannounced()) orders_->answer(*order, DIBS_NOT_STARTED);
        }
        orders_->leave();
    }

    // A process has ended that should not have: another one would, too.
    [[nodiscard]] bool is_failing(int64_t now_ns) const {
        return std::any_of(hands_.begin(), hands_.end(), [&](const auto& hand) {
            return hand->rests_until_ns() > now_ns;
        });
    }

    void tell_when_ready() {
        if (told_ready_) return;
        for (const auto& hand : hands_) {
            const Hand::State state = hand->state();
            if (state != Hand::State::kIdle && state != Hand::State::kBusy) return;
        }
        told_ready_ = true;
        talk("dibs worker: " + counted(hands_.size(), "slot") + " of pool \"" + options_.pool.name +
             "\" ready");
    }

    void take_stops(int64_t now_ns) {
        signalfd_siginfo taken = {};
        while (read(signals_.get(), &taken, sizeof taken) == sizeof taken) {
            if (draining_) {
                stop_now(now_ns);
                continue;
            }
            draining_ = true;
            if (orders_) give_up_orders();
            drain_due_ns_ = after(now_ns, options_.drain_ns);
            for (const auto& hand : hands_)
                hand->drain(now_ns);
        }
    }

    void stop_now(int64_t now_ns) {
        drain_due_ns_ = INT64_MAX;
        for (const auto& hand : hands_)
            hand->stop_now(now_ns);
    }

    [[nodiscard]] bool gone() const {
        return std::all_of(hands_.begin(), hands_.end(), [](const auto& hand) {
            return hand->state() == Hand::State::kGone;
        });
    }

    [[nodiscard]] bool gave_up() const {
        if (options_.tries_max == 0) return false;
        const auto has_failed = [&](const auto& hand) {
            return hand->failures() >= options_.tries_max;
        };
        // Orders go to the first that is free.
        const bool all = options_.type.empty()
                             ? std::all_of(hands_.begin(), hands_.end(), has_failed)
                             : std::any_of(hands_.begin(), hands_.end(), has_failed);
        if (all) talk("dibs worker: every process fails: giving up");
        return all;
    }

    const Options& options_;
    std::unique_ptr<TreeLeaf> tree_;  // holds the leaves of all processes; null: there are none
    Guard guard_;
    shm::Descriptor signals_;
    std::unique_ptr<NotifyFolder> folder_;
    std::vector<std::unique_ptr<Hand>> hands_;
    std::unique_ptr<Orders> orders_;  // null: processes run all the time
    std::deque<Order> waiting_;
    std::vector<Span> spans_;
    std::vector<pollfd> watched_;
    bool happened_ = false;
    bool told_ready_ = false;
    bool draining_ = false;
    int64_t last_event_ns_ = 0;
    int64_t drain_due_ns_ = INT64_MAX;
};

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

}  // namespace

int run_crew(const Options& options) {
    check_pool(options);
    raise_descriptor_limit();
    return Crew(options).run();
}

}  // namespace dibs::ctl::worker
