// broker/keeper_signals.cpp -- what the keeper is told by signals, and its end.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

#include "broker/clock.hpp"
#include "broker/keeper.hpp"

namespace dibs {

namespace {

constexpr uint32_t kLastWordsMs = 2'000;

}  // namespace

void Keeper::take_signals() {
    struct signalfd_siginfo signal = {};
    while (read(signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) {
        const auto number = static_cast<int>(signal.ssi_signo);
        const bool stop = number == SIGTERM || number == SIGINT;
        if (number == SIGUSR2) only_own_ = false;
        // The second time does not wait: whoever follows finds its time over.
        const bool again = stop && std::exchange(told_to_stop_, true);
        if (stop) {
            notices_.say("STOPPING=1");
            if (asked_ns_ == 0) asked_ns_ = Clock::monotonic();
            if (again) asked_ns_ = kLongAgoNs;
            standby_.cancel();
        }
        if (broker_.pidfd() >= 0) {
            // Two orders to stop are two signals, or the broker might find one. If it is dead
            // already, its successor is told.
            const int order = again ? SIGINT : SIGTERM;
            broker_.signal(stop ? order : number);
        } else if (stop && socket_.fd() < 0 && (again || !state_served_)) {
            finish(1);  // there is none, and nothing that one would have to see to
        }
    }
}

// Nobody is to go on from what stays: a broker has stopped in order, or none can begin.
void Keeper::finish(int exit_code) {
    finished_ = true;
    exit_code_ = exit_code;
    standby_.let_go();
    standby_.settle();
    store_.drop_segments(Clock::monotonic());
    tell_manager(kLastWordsMs);
}

}  // namespace dibs
