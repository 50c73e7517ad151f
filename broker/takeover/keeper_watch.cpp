// broker/takeover/keeper_watch.cpp -- detects a broker that hangs, and kills it.
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "broker/takeover/keeper.hpp"
#include "broker/text/log.hpp"
#include "broker/turn/clock.hpp"

namespace dibs {

namespace {

constexpr uint64_t kLookEveryNs = 50'000'000;
constexpr uint32_t kLooks = 5;

}  // namespace

// The timer also rings where the whole machine stood still. Then the broker runs again when this
// process does, and silences it before it has been looked at often enough.
void Keeper::suspect() {
    looks_left_ = kLooks;
    look_due_ns_ = Clock::monotonic() + kLookEveryNs;
}

void Keeper::look_again() {
    struct pollfd ringing = {watch_.fd(), POLLIN, 0};
    if (poll(&ringing, 1, 0) <= 0) {
        looks_left_ = 0;
        return;
    }
    look_due_ns_ = Clock::monotonic() + kLookEveryNs;
    if (--looks_left_ == 0) broker_hangs();
}

void Keeper::broker_hangs() {
    uint64_t rings = 0;
    if (read(watch_.fd(), &rings, sizeof(rings)) != sizeof(rings)) return;  // armed again since
    kill_hanging();
}

void Keeper::kill_hanging() {
    hung_ = true;
    broker_.signal(SIGKILL);
    log::error("the broker hangs: it has been killed");
}

// The listening socket that clients find, for a broker that answers; without a broker none is
// asked.
void Keeper::watch_calls() {
    KeeperMessage listener;
    listener.what = Kept::kListener;
    const auto held = held_.find(key_of(listener));
    const bool there = serving_ && answers_ && held != held_.end();
    calls_ = there ? CallWatch(held->second.descriptors[0].get()) : CallWatch();
}

void Keeper::hear_calls(uint64_t now) {
    if (!calls_.arrived()) return;
    KeeperMessage called;
    called.word = KeeperWord::kCalled;
    socket_.send(called);
    calls_.ask(now);
    call_looks_ = kLooks;
}

// As with the timer: a machine that was suspended is no reason to kill. Nor is a message that has
// not left.
void Keeper::look_for_answer(uint64_t now) {
    if (!calls_.overdue(now)) return;
    if (socket_.waiting() || call_looks_ != 0) {
        if (!socket_.waiting()) --call_looks_;
        return calls_.put_off(now + kLookEveryNs);
    }
    calls_.end();
    kill_hanging();
}

// It waited, stopped by something invisible here: a debugger, a frozen control group. What it was
// given it has not touched. Where both were stopped, it runs again when this process does; and
// *begin* may not have left yet (ETOOMANYREFS).
void Keeper::look_whether_it_begins(uint64_t now) {
    if (socket_.waits_for_time() || begin_looks_ != 0) {
        if (!socket_.waits_for_time()) --begin_looks_;
        begins_by_ns_ = now + kLookEveryNs;
        return;
    }
    begins_by_ns_ = shm::kNever;
    broker_.signal(SIGKILL);
    log::error("the broker that was started ahead does not begin: it has been killed");
}

}  // namespace dibs
