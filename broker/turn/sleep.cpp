// broker/turn/sleep.cpp -- decides when the broker may sleep, and sleeps.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/sleep.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "broker/text/log.hpp"
#include "shm/cpu.hpp"
#include "shm/doorbell.hpp"
#include "shm/pause.hpp"

namespace dibs {

namespace {

constexpr uint32_t kReadsPerSpin = 4;  // of the clock; then at the peers' CPUs
constexpr uint32_t kLooksPerRead = 4;  // at the rings
constexpr uint32_t kYields = 3;
// How often bells and deaths are polled while there is always work: a system call that may delay a
// claim, so seldom that it delays fewer than one in a hundred. It is not made in a pause instead,
// because a pause ends with the next claim.
constexpr core::TimeNs kLookEvery = 250'000;
constexpr core::TimeNs kSpinWindow = 1'000'000;  // of the looks at context switches
constexpr core::TimeNs kSilent = 1'000'000;      // then a session is not polled any more

}  // namespace

Sleep::Sleep(Sessions& sessions,
             Exchange& exchange,
             Publisher& publisher,
             const Clock& clock,
             HangWatch hang_watch)
    : sessions_(sessions),
      exchange_(exchange),
      publisher_(publisher),
      clock_(clock),
      hang_watch_(std::move(hang_watch)) {
    if (!watch(exchange_.turn().fd(), EPOLLIN, Event::kRequest, 0)) {
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
}

bool Sleep::watch(int fd, uint32_t events, Event what, uint32_t row) const {
    return epoll_.add(fd, events, uint64_t{row} << 32 | static_cast<uint32_t>(what));
}

bool Sleep::add(const Session& session) {
    const int tree = session.tree.events.get();  // of one that has a tree
    return watch(session.bell.get(), EPOLLIN | EPOLLET, Event::kBell, session.row) &&
           watch(session.peer.pidfd.get(), EPOLLIN | EPOLLET, Event::kDeath, session.row) &&
           (tree < 0 || watch(tree, EPOLLPRI | EPOLLET, Event::kTree, session.row));
}

void Sleep::remove(const Session& session) {
    epoll_.remove(session.bell.get());
    epoll_.remove(session.peer.pidfd.get());
    if (session.tree.events.valid()) epoll_.remove(session.tree.events.get());
}

void Sleep::worked(core::TimeNs now) {
    worked_ns_ = now;
    yields_ = 0;
    if (spins_) spin_gauge_.spun(true);
    asked_ = spins_ = false;
    publish_cpu();
    if (now - looked_ns_ < kLookEvery) return;
    looked_ns_ = now;
    hang_watch_.keep(now);
    leave_silent(now);
    events(0, false);
}

// While other sessions keep the broker busy, silent sessions leave the polled set. Its word is set
// first, so that such a session rings, or is seen now.
void Sleep::leave_silent(core::TimeNs now) {
    const std::vector<Session*>& polled = sessions_.polled();
    for (size_t i = polled.size(); i-- > 0;) {
        Session* session = polled[i];
        if (now - session->last_active_ns <= kSilent) continue;
        shm::arm_submissions(*session->down);
        const Armed armed = session->up.look_again();
        if (armed == Armed::kViolation) {
            sessions_.end(session, shm::Reason::kMalformed);
        } else if (armed == Armed::kEntry) {
            shm::disarm_submissions(*session->down);
        } else {
            sessions_.unpoll(session);
        }
    }
}

bool Sleep::rest(core::TimeNs& now, core::TimeNs until) {
    hang_watch_.keep(now);
    if (now - worked_ns_ < spin_ns_ && peer_elsewhere() && may_spin(now)) return spin(now);
    if (spin_ns_ != 0 && yields_ < kYields && !sessions_.polled().empty()) {
        ++yields_;
        sched_yield();
        return false;
    }
    block(now, until);
    return false;
}

bool Sleep::may_spin(core::TimeNs now) {
    if (asked_) return spins_;
    asked_ = true;
    spin_gauge_.look(now, kSpinWindow);
    spins_ = spin_gauge_.pays();
    return spins_;
}

bool Sleep::peer_elsewhere() const {
    const uint32_t own = shm::current_cpu();
    for (const Session* session : sessions_.polled()) {
        if (session->up.cpu() != own) return true;
    }
    return false;
}

void Sleep::publish_cpu() {
    const uint32_t cpu = shm::current_cpu();
    if (cpu == cpu_) return;
    cpu_ = cpu;
    for (const Session* session : sessions_.polled())
        session->down->cpu.store(cpu, std::memory_order_relaxed);
}

// The clock is read before the looks, while there is nothing better to do, and not after them, when
// a client waits: code that needs a time that is not before what was found reads it again
// (Turn::take). Between two looks there is a pause, and no clock, which takes twice as long: a
// client may share this CPU's core, and does its own part of the claim meanwhile.
bool Sleep::spin(core::TimeNs& now) const {
    for (uint32_t read = 0; read < kReadsPerSpin; ++read) {
        now = clock_.now();
        for (uint32_t look = 0; look < kLooksPerRead; ++look) {
            if (sessions_.anything_new() || exchange_.asked()) return true;
            shm::pause();
        }
    }
    return false;
}

void Sleep::block(core::TimeNs now, core::TimeNs until) {
    if (spins_) spin_gauge_.spun(false);
    asked_ = spins_ = false;
    publisher_.flush();
    if (arm(now) && !exchange_.asked()) {
        const core::TimeNs current = until == shm::kNever ? 0 : clock_.now();
        const uint64_t wait_ns =
            until == shm::kNever ? shm::kNever : until - std::min(until, current);
        hang_watch_.rest(wait_ns);
        events(wait_ns, true);
        hang_watch_.arm(clock_.now());
    }
    disarm();
    worked_ns_ = looked_ns_ = clock_.now();
    yields_ = 0;
}

void Sleep::look(core::TimeNs now) {
    if (now - looked_ns_ < kLookEvery) return;
    looked_ns_ = now;
    events(0, false);
}

// Sets the wake-up words of the polled sessions, then looks once more. Sessions that have been
// silent leave the set, word set. False if there is something to do.
bool Sleep::arm(core::TimeNs now) {
    for (const Session* session : sessions_.polled())
        shm::arm_submissions(*session->down);
    bool quiet = true;
    const std::vector<Session*>& polled = sessions_.polled();
    for (size_t i = polled.size(); i-- > 0;) {
        Session* session = polled[i];
        const Armed armed = session->up.look_again();
        if (armed == Armed::kViolation) {
            sessions_.end(session, shm::Reason::kMalformed);
            quiet = false;
        } else if (armed == Armed::kEntry) {
            quiet = false;
        } else {
            // What the net rang for until now was read by a broker that was awake.
            session->net_rings_seen = session->up.net_rings();
            if (now - session->last_active_ns > kSilent) sessions_.unpoll(session);
        }
    }
    return quiet;
}

void Sleep::disarm() {
    cpu_ = shm::current_cpu();
    for (const Session* session : sessions_.polled()) {
        shm::disarm_submissions(*session->down);
        session->down->cpu.store(cpu_, std::memory_order_relaxed);
    }
}

// Events are drained in batches. Each is told once: a dead session may stay as long as its tree.
void Sleep::events(uint64_t wait_ns, bool slept) {
    bool more = take_events(wait_ns, slept);
    for (size_t seen = 0; more && seen < sessions_.all().size() * 2; seen += Epoll::kAtOnce)
        more = take_events(0, slept);
}

// False: that was all.
bool Sleep::take_events(uint64_t wait_ns, bool slept) {
    const auto taken = epoll_.wait(wait_ns);
    for (const epoll_event& happened : taken) {
        const uint64_t data = happened.data.u64;
        const auto what = static_cast<Event>(static_cast<uint32_t>(data));
        if (what == Event::kRequest) {
            exchange_.turn().answer();
            continue;
        }
        Session* session = sessions_.at(static_cast<uint32_t>(data >> 32));
        if (session == nullptr) continue;
        if (what == Event::kBell) {
            bell(*session, slept);
        } else if (what == Event::kTree) {
            sessions_.tree_changed(session);
        } else {
            sessions_.drain(session);
        }
    }
    return taken.size() == Epoll::kAtOnce;
}

// A bell that the client's safety net rang, for an entry without a bell that was there although the
// broker slept, is a lost wake-up: it is counted, so that the net never hides one. A broker that
// was rung, or that was awake, and got no CPU for long has lost none. Only the client knows that
// the net rang, and for what; the broker has seen that it slept, and which entries there were. So
// reports of other users' clients are counted apart.
void Sleep::bell(Session& session, bool slept) {
    const uint64_t net_rings = session.up.net_rings();
    if (session.sits_out) {  // its entries are read when its pause is over
        session.net_rings_seen = net_rings;
        return;
    }
    if (net_rings != session.net_rings_seen) {
        session.net_rings_seen = net_rings;
        const uid_t uid = session.peer.uid;
        if (slept && session.up.maybe()) {
            publisher_.net_found_work(uid == own_uid_ || uid == 0);
        }
    }
    if (session.polled || session.ending || session.draining) return;
    session.last_active_ns = clock_.now();
    sessions_.poll(&session);
    shm::disarm_submissions(*session.down);
    session.down->cpu.store(shm::current_cpu(), std::memory_order_relaxed);
}

}  // namespace dibs
