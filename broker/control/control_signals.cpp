// broker/control/control_signals.cpp -- obeys signals: stop, reload, yield to the next broker.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/control/control.hpp"
#include "broker/text/log.hpp"
#include "broker/turn/clock.hpp"

namespace dibs {

namespace {

constexpr size_t kWaitingMost = 256;

}  // namespace

void Control::take_signal() {
    struct signalfd_siginfo signal = {};
    while (read(signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) {
        if (signal.ssi_signo == SIGHUP) {
            std::vector<std::string> said;
            (void)reload(&said);
        } else if (signal.ssi_signo == SIGUSR2) {
            yield();
        } else if (signal.ssi_signo == SIGUSR1) {
            if (keeper_ == nullptr)
                log::warning("there is no keeper: SIGUSR1 leaves nothing to it");
        } else {
            drain(asker_of(signal.ssi_pid));
        }
    }
}

Control::Asker Control::asker_of(uint32_t pid) const {
    if (keeper_ == nullptr) return Asker::kOther;
    const std::optional<pid_t> keeper = pid_of(keeper_->keeper_pidfd());
    return keeper && static_cast<uint32_t>(*keeper) == pid ? Asker::kKeeper : Asker::kOther;
}

// A signal waits for leases the first time, the second time it does not. Of two orders that wait
// the one that ends first counts.
void Control::drain(Asker asker, uint64_t within_ns) {
    const bool again = std::exchange(asked_to_end_[static_cast<size_t>(asker)], true);
    if (draining_ && again && asker != Asker::kAdministrator) {
        Request request;
        request.kind = Request::Kind::kStop;
        (void)exchange_.ask(request);
        return;
    }
    if (!draining_) log::info("draining: no more sessions, waiting claims are rejected");
    draining_ = true;
    begin_to_stop(within_ns);
    drain_within_ns_ = within_ns;
    ask_to_drain();
}

// Again and again, if the turn has so much to read that there was no room.
void Control::ask_to_drain() {
    Request request;
    request.kind = Request::Kind::kDrain;
    request.within_ns = drain_within_ns_;
    drain_asked_ = exchange_.ask(request);
}

// The socket stays until the end, or another broker would begin there and hand out the same things.
// Successors count drain_timeout from when the order came: an order with a longer wait is passed on
// as one that came later.
void Control::begin_to_stop(uint64_t within_ns) {
    if (keeper_ == nullptr) return;
    const uint64_t now = Clock::monotonic();
    const uint64_t more = within_ns - std::min(within_ns, config_.drain_timeout_ns);
    keeper_->stopping(more < shm::kNever - now ? now + more : shm::kNever);
}

// A session would end with this broker. At a socket that a manager has lent the next one will be: a
// client that gets no answer until this process ends connects again (the library does), and is not
// refused.
void Control::see_off(Caller caller) {
    if (listener_->is_lent() && waiting_.size() < kWaitingMost) {
        waiting_.push_back(std::move(caller.socket));
        return;
    }
    send_farewell(caller.socket.get(),
                  {shm::FarewellCode::kDraining,
                   0,
                   "the broker is about to stop, once its leases have ended (dibs ls leases)"});
}

// To a successor, which the keeper starts once this process has ended: an upgrade, say.
void Control::yield() {
    if (keeper_ == nullptr) return log::warning("there is no keeper: nobody could take over");
    log::info("leaving everything to the next broker");
    Request request;
    request.kind = Request::Kind::kYield;
    (void)exchange_.ask(request);
}

// Of an administrator. A stop is answered by the broker's end.
admin::AnswerT Control::obey(const admin::Request& order) {
    admin::AnswerT answer;
    if (order.ask() == admin::Ask::stop) {
        drain(Asker::kAdministrator, order.interval_ns());
    } else if (order.ask() == admin::Ask::reload) {
        if (!reload(&answer.names)) answer.code = admin::Code::refused;
    } else if (keeper_ == nullptr || draining_) {
        answer.code = admin::Code::refused;
        answer.names.emplace_back(draining_ ? "the broker is about to stop"
                                            : "this broker has no keeper to start its successor");
    } else {
        yield();
    }
    return answer;
}

// As the turn has published them. What the file has named until now it has to name again.
PoolsThere Control::pools_there() const {
    PoolsThere there;
    const uint32_t pools = board_.head().pools.load(std::memory_order_acquire);  // pairs: the turn
    for (uint32_t pool = 0; pool < pools; ++pool) {
        shm::PoolNamePicture picture;
        if (!shm::board_read(board_.names()[pool], picture)) continue;
        const auto state = static_cast<shm::PoolState>(picture.state);
        if (state == shm::PoolState::kFree) continue;
        const std::string name(picture.name, picture.name_size);
        if (state == shm::PoolState::kOpen && named_pools_.count(name) == 0) {
            there.created.insert(name);
        }
        there.all.insert(name);
    }
    return there;
}

bool Control::reload(std::vector<std::string>* said) {
    const auto refuse = [&](const std::string& why) {
        log::error(why);
        said->push_back(why);
        log::error("the configuration stays as it was");
        return false;
    };
    if (file_.empty()) {
        said->emplace_back("dibsd was started without a configuration file: nothing to read");
        log::warning(said->back());
        return false;
    }
    // A user's name may be asked for over a network, a file come from one.
    ConfigResult read = [this] {
        const KeeperLink::Busy busy(keeper_);
        return read_config(file_, pools_there());
    }();
    if (!read.mistakes.empty()) {
        for (const std::string& mistake : read.mistakes)
            log::error(mistake);
        *said = std::move(read.mistakes);
        log::error("the configuration stays as it was");
        return false;
    }
    // As an editor or a full disk leaves it: an administrator who wants an empty configuration can
    // write so.
    if (read.config.text.value_or("").find_first_not_of(" \t\r\n") == std::string::npos) {
        return refuse(file_ + ": is empty");
    }
    *said = fixed_differences(config_, read.config);
    std::set<std::string> named;
    for (const PoolSettings& pool : read.config.pools)
        named.insert(pool.name);
    for (const std::string& name : named_pools_) {
        if (named.count(name) != 0) continue;
        read.config.struck.push_back(name);
        said->push_back("pool \"" + name +
                        "\" is no longer named: it takes no claims, and goes when its leases have "
                        "ended and its workers have left");
    }
    for (const std::string& unchanged : *said)
        log::warning(unchanged);
    const std::string level = read.config.log_level;
    const std::string text = read.config.text.value_or("");
    const std::shared_ptr<const Policy> policy = read.config.policy;
    auto config = std::make_unique<Config>(std::move(read.config));
    Request request;
    request.kind = Request::Kind::kConfig;
    request.config = config.get();
    if (!exchange_.ask(request)) {
        return refuse("the turn has too much to hear");
    }
    (void)config.release();
    named_pools_ = std::move(named);
    log::open(level);
    admission_.set_policy(policy);
    if (keeper_ != nullptr) keeper_->keep_config(text);
    log::info("the configuration has been read again");
    return true;
}

}  // namespace dibs
