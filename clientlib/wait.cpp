// clientlib/wait.cpp -- waits: spins, yields, sleeps, and checks the broker while it sleeps.
//
// Every wait of a session is Wait::until, and every sleep comes after the same four steps: take in
// new entries; check the condition; ask to be woken; look once more. The last look takes nothing
// in, so what it sees is left to the next round, and what an earlier step took in ends the wait
// before it sleeps.
//
// The safety net is the client's: while an entry of its own is unread it rings again every 100 ms,
// and looks whether the broker still holds the session. A bell that the broker needed and that was
// not rung counts in UP.net_rings, so that the net hides no lost wake-up. A broker that was rung,
// or says that it is awake, only has no CPU. A caller that never sleeps passes the net when it asks
// without waiting: for completions, for assignments, for the session's end, with a keepalive, and
// with a touch.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include "clientlib/pool_set.hpp"
#include "clientlib/session.hpp"
#include "shm/pause.hpp"

namespace dibs::client {

bool Wait::until(Awaited what) {
    for (bool last = timeout_ns_ == 0;; last = !step(what)) {
        if (session_.take_awaited_grant()) return has_come();
        if (what == Awaited::kCompletion) {
            session_.take_in();
        } else {
            session_.pump();
        }
        if (session_.has_come(what)) return has_come();
        if (!last) continue;
        // A caller that asks without waiting learns only here that no broker answers any more.
        session_.look_whether_ended();
        session_.net_if_due(monotonic_ns());
        return session_.has_come(what);
    }
}

bool Wait::has_come() {
    if (spins_) session_.spin_gauge.spun(true);
    return true;
}

bool Wait::may_spin() {
    if (asked_) return spins_;
    asked_ = true;
    spins_ = session_.spin_gauge.pays();
    return spins_;
}

bool Wait::step(Awaited what) {
    const bool elsewhere = session_.down->cpu.load(std::memory_order_relaxed) != shm::current_cpu();
    if (elsewhere && !spun_ && session_.spin_ns != 0 && may_spin()) {
        // What an answer usually takes: nothing else is looked at before.
        for (int i = 0; i < 16; ++i) {
            shm::pause();
            if (session_.completions.maybe()) return true;
        }
        if (++looks_ % 2 != 0) return true;
        const uint64_t spun = session_.tick.to_ns(ticks() - started_ticks_);
        spun_ = spun >= static_cast<uint64_t>(session_.spin_ns);
        return spun < static_cast<uint64_t>(timeout_ns_);
    }
    const uint64_t now = monotonic_ns();
    if (started_ns_ == 0) started_ns_ = now - session_.tick.to_ns(ticks() - started_ticks_);
    const uint64_t waited = now > started_ns_ ? now - started_ns_ : 0;
    if (waited >= static_cast<uint64_t>(timeout_ns_)) return false;
    if (!elsewhere && yields_ < kYields && session_.spin_ns != 0) {
        ++yields_;
        sched_yield();
        return true;
    }
    if (spins_) session_.spin_gauge.spun(false);
    spins_ = false;
    session_.sleep_once(static_cast<uint64_t>(timeout_ns_) - waited, what);
    return true;
}

bool Session::has_come(Awaited what) const {
    if (end_code != 0) return true;
    switch (what) {
        case Awaited::kClaim:
            return awaited_tag == kNone || stash.full();
        case Awaited::kAnswer:
            return awaited_answer == kNone || stash.full();
        case Awaited::kCompletion:
            return stash.count + events_to_reap != 0;
        case Awaited::kAssignment:
            return assignments.count != 0 || stash.full();
        case Awaited::kAppEvent:
            return app_events.count != 0 || stash.full();
        case Awaited::kSet:
            return set_wait->decided || set_wait->waiting == 0 || set_has_changed(*this) ||
                   stash.full();
    }
    return true;
}

bool Session::arm(uint32_t how, uint32_t& seen) {
    seen = shm::arm_completions(*up, *down, how);
    const shm::PublishedCompletions published = shm::published_completions(*down);
    const bool ahead = published.tail > completions.head();
    // The broker ends a session by storing its state, then adding to the futex word: if `seen` is
    // the sum, the state is visible here; else there is no sleep on it.
    const bool open = down->session_state.load(std::memory_order_acquire) ==
                      static_cast<uint32_t>(shm::SessionState::kOpen);
    const bool line = completions.maybe();
    if (open && !ahead && !line && published.events == events_seen) return true;
    shm::disarm_completions(*up);
    // A tail is stored after the lines that it announces: a line that is not there never comes.
    if (ahead && !completions.maybe()) end(DIBS_ESESSION, DIBS_EMALFORMED);
    return false;
}

void Session::sleep_once(uint64_t limit_ns, Awaited what) {
    take_in();
    look_whether_ended();
    if (has_come(what)) return;
    const uint64_t limit = limit_ns < kNetNs ? limit_ns : static_cast<uint64_t>(kNetNs);
    const uint64_t old_tail = submissions.tail();
    uint32_t seen = 0;
    if (!arm(shm::ClientSleep::kFutex, seen)) return;
    ++wakeups.sleeps;
    wakeups.claim_sleeps += what == Awaited::kClaim || what == Awaited::kSet ? 1 : 0;
    const shm::FutexWait woken = shm::sleep_on_completions(*down, seen, limit);
    shm::disarm_completions(*up);
    if (woken == shm::FutexWait::kWoken || woken == shm::FutexWait::kChanged) return;
    // A signal that comes more often than the net would, say a profiler's, must not keep it away.
    if (woken == shm::FutexWait::kTimedOut && limit == static_cast<uint64_t>(kNetNs)) {
        net(old_tail);
    } else {
        net_if_due(monotonic_ns());
    }
}

bool Session::still_open(uint64_t now_ticks) {
    const bool open = down->session_state.load(std::memory_order_acquire) ==
                      static_cast<uint32_t>(shm::SessionState::kOpen);
    if (open && now_ticks - looked_ticks < net_window) return true;
    looked_ticks = now_ticks;
    look_whether_ended();
    net_if_due(monotonic_ns());
    return end_code == 0;
}

void Session::look_whether_ended() {
    if (end_code != 0) return;
    if (down->session_state.load(std::memory_order_acquire) ==
        static_cast<uint32_t>(shm::SessionState::kOpen)) {
        return;
    }
    pump();  // what the broker said before it ended the session still counts
    if (end_code != 0) return;
    const int reason = down->end_reason.load(std::memory_order_relaxed);
    end(reason == DIBS_ESTATELOST ? DIBS_ESTATELOST : DIBS_ESESSION, reason);
}

void Session::net_if_due(uint64_t now) {
    if (end_code != 0 || now < net_due_ns) return;
    net_due_ns = now + static_cast<uint64_t>(kNetNs);
    const uint64_t old_tail = net_tail;
    net_tail = submissions.tail();
    net(old_tail);
}

// An entry that was written just now is not overdue: only an old one is rung for.
void Session::net(uint64_t old_tail) {
    settle();
    // Pairs with arm_submissions: what was committed before it is seen below.
    const bool asleep = down->need_wakeup.load(std::memory_order_acquire) != 0;
    if (shm::committed_submissions(*down) < old_tail) {
        if (asleep && rung_tail < old_tail) {
            const uint64_t rings = up->net_rings.load(std::memory_order_relaxed) + 1;
            up->net_rings.store(rings, std::memory_order_relaxed);
        }
        ring();
    }
    // Only the process that keeps this session alive holds the socket's other end.
    pollfd peer = {socket, POLLRDHUP, 0};
    if (::poll(&peer, 1, 0) > 0 && (peer.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0) {
        look_whether_ended();
        if (end_code != 0) return;
        pump();
        end(DIBS_EBROKERLOST, DIBS_EBROKERLOST);
    }
}

void Session::ring() {
    const uint64_t one = 1;
    ++wakeups.bells;
    wakeups.claim_bells += newest_op == shm::Op::kClaim ? 1 : 0;
    wakeups.release_bells += newest_op == shm::Op::kRelease ? 1 : 0;
    // A full counter is a rung bell: the broker never reads it, an edge is all it needs.
    while (write(bell, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

}  // namespace dibs::client
