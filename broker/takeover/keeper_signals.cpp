// broker/takeover/keeper_signals.cpp -- obeys signals to the keeper, and ends it.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "broker/takeover/keeper.hpp"
#include "broker/text/log.hpp"
#include "broker/turn/clock.hpp"

namespace dibs {

namespace {

constexpr uint32_t kLastWordsMs = 2'000;

}  // namespace

void Keeper::take_signals() {
    struct signalfd_siginfo signal = {};
    while (read(signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) {
        const auto number = static_cast<int>(signal.ssi_signo);
        const bool stop = number == SIGTERM || number == SIGINT;
        if (number == SIGUSR1) {
            leave();
            continue;
        }
        if (number == SIGUSR2) only_own_ = false;
        // The second order does not wait: a successor finds its time over.
        const bool again = stop && std::exchange(told_to_stop_, true);
        if (stop) {
            notices_.say("STOPPING=1");
            asked_to_stop(again ? kLongAgoNs : Clock::monotonic());
            standby_.cancel();
        }
        if (broker_.pidfd() >= 0) {
            // Two orders to stop are two different signals, or the broker might see one. If it is
            // dead already, its successor gets the order.
            const int order = again ? SIGINT : SIGTERM;
            broker_.signal(stop ? order : number);
        } else if (stop && socket_.fd() < 0 && (again || !state_served_)) {
            finish(1);  // there is no broker, and nothing for one to do
        }
    }
}

// The order that ends first counts (KeeperLink::stopping).
void Keeper::asked_to_stop(uint64_t asked_ns) {
    if (asked_ns_ == 0 || asked_ns < asked_ns_) asked_ns_ = asked_ns;
}

// The service is restarted: the broker makes way, as for an upgrade, and the keeper that the
// manager starts next goes on from what it has stored. Without one nothing would be left to go on
// from.
void Keeper::leave() {
    if (asked_ns_ != 0 || leaving_) return;
    if (!notices_.connected()) {
        return log::error(
            "SIGUSR1 restarts a service whose manager stores descriptors, and there is none "
            "(NOTIFY_SOCKET): the broker goes on; SIGTERM stops it, dibs upgrade replaces it");
    }
    leaving_ = true;
    notices_.say("STOPPING=1");
    standby_.cancel();
    if (broker_.pidfd() < 0) return leave_to_manager();
    broker_.signal(SIGUSR2);
    // A stopped broker does not get it, and nothing is lost with it. A start has its own time.
    if (serving_) watch_.set(HangWatch::kRingsAfterNs);
}

void Keeper::leave_to_manager() {
    if (!state_served_) return finish(0);
    finished_ = true;
    exit_code_ = 0;
    standby_.let_go();
    standby_.settle();
    const uint64_t deadline_ns = Clock::monotonic() + uint64_t{kLastWordsMs} * 1'000'000;
    do {  // sessions, too, and without the pauses between their batches
        notices_.flush();
        const uint64_t due_ns = store_.next_due_ns();
        store_.flush(due_ns == shm::kNever ? Clock::monotonic() : due_ns);
    } while ((must_tell() || store_.next_due_ns() != shm::kNever) &&
             notices_.await_room(deadline_ns));
    size_t sessions = 0;
    for (const auto& [key, held] : held_)
        sessions += held.message.what == Kept::kSession ? 1 : 0;
    const size_t stored = store_.stored_sessions();
    log::info("left to the service manager for the next start: the state and " +
              std::to_string(stored) + " sessions");
    if (stored < sessions) {
        log::warning(std::to_string(sessions - stored) +
                     " sessions were not stored by the service manager: their leases end");
    }
}

// No broker is to go on from what stays: a broker has stopped in order, or none can begin.
void Keeper::finish(int exit_code) {
    finished_ = true;
    exit_code_ = exit_code;
    standby_.let_go();
    standby_.settle();
    store_.drop_segments(Clock::monotonic());
    tell_manager(kLastWordsMs);
}

}  // namespace dibs
