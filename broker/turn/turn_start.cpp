// broker/turn/turn_start.cpp -- prepares the first turn: adopts an earlier broker's sessions.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <system_error>

#include "broker/takeover/adoption.hpp"
#include "broker/takeover/inheritance.hpp"
#include "broker/turn/turn.hpp"

namespace dibs {

void Turn::prepare(Config& config, Inheritance& inheritance) {
    drain_timeout_ns_ = config.drain_timeout_ns;
    desk_.set_ended_leases_for(config.ended_leases_for_ns);
    transient_.set_idle(config.created_pool_idle_ns);
    sleep_.set_spin(config.spin_ns);
    throttle_pause_.set_pause(config.throttle_ns);
    quotas_.set_policy(config.policy, {});
    uid_accounts_.configure(config, false);
    // Broker time is stopped from the broker's death on, or from before the first due instant that
    // it had not decided: then it was stopped, or hung.
    now_ = inheritance.takeover() ? clock_stop_.latest(death_of(inheritance), core_.next_turn())
                                  : clock_.now();
    adopt(inheritance);
    end_the_lost();
    bool resumed = false;
    while (!resumed) {
        begin_unheard();
        resumed = words_.resume();
        finish_unheard();
    }
    const bool anew = !inheritance.takeover() || inheritance.restarted;
    if (inheritance.asked_ns != 0) {
        // Continues or begins the drain: the order may have come when no broker could follow it any
        // more.
        begin_unheard();
        drain(shm::kNever);
        finish_unheard();
    } else if (core_.draining() && anew) {  // a STATE that was to stop is to serve again
        begin_unheard();
        core_.apply(core::Drain{.on = false});
        finish_unheard();
    }
    set_pools(config, inheritance.takeover());
    if (!inheritance.goes_on()) set_accounts(config);
    do {
        begin_unheard();
        finish_unheard();
    } while (core_.work_left());
    transient_.find();
    operations_.serve_sets(sets_);
    operations_.set_manager_timeout(config.manager_timeout_ns);
    sets_.set_cluster(config.cluster);
    publisher_.publish_all();
    sets_.publish();
    clock_stop_.begin(now_);  // until the entries of that time have been read
    if (!draining_) return;
    const uint64_t left = drain_left(inheritance.asked_ns);
    drain(left);
    stopped_ = drained() || left == 0;
}

// The time that is left of a drain that an earlier broker began.
uint64_t Turn::drain_left(uint64_t asked_ns) const {
    if (asked_ns == kLongAgoNs) return 0;
    if (asked_ns >= shm::kNever - drain_timeout_ns_) return shm::kNever;
    const uint64_t end_ns = asked_ns + drain_timeout_ns_;
    return end_ns - std::min(end_ns, Clock::monotonic());
}

// In broker time. If it is not known: the last instant that STATE saw. The death is the last one of
// a broker that served, and the offset may be a later one's, which died before it did: then the sum
// may lie before all time.
core::TimeNs Turn::death_of(const Inheritance& inheritance) const {
    if (inheritance.restarted) return core_.now();
    const uint64_t told = core_.head().clock_offset;
    const uint64_t death = inheritance.death_ns + (told != 0 ? told : inheritance.clock_offset);
    return death >> 63U != 0 ? core_.now() : death;
}

// Sends what was committed and perhaps not sent; wakes all clients once.
void Turn::adopt(Inheritance& inheritance) {
    Adoption adoption(core_, sessions_, operations_);
    adoption.map(inheritance.sessions);
    for (size_t place = 0; place < inheritance.sessions.size(); ++place) {
        Session* session = adoption.adopt(place);
        if (session == nullptr) continue;
        adoption.take_hand(*session);
        if (session->careful_until != 0) careful_.push_back(session);
        session->last_active_ns = now_;
        quotas_.add(*session);
        // As where its memory cannot be mapped: the next broker may find what this one lacks.
        if (!sleep_.add(*session)) {
            throw std::system_error(errno, std::generic_category(), "a session's bell");
        }
        const bool outlived = core_.session(session->row).state == shm::SessionState::kOutlived;
        if (outlived && !session->ending) sessions_.outlive(session, true, now_);
    }
    if (sessions_.all().empty()) return;
    adoption.restore_rooms();
    answers_.repeat();
    for (Session* session : sessions_.all()) {
        sessions_.poll(session);
        if (session->polled) shm::disarm_submissions(*session->down);
    }
    publisher_.set_sessions(sessions_.all().size());
}

// Sessions whose segments are not at hand: no client can use them any more. What they held goes
// back before the first client is read.
void Turn::end_the_lost() {
    uint32_t row = 0;
    do {
        begin_unheard();
        for (; row < core_.sessions_max() && !core_.turn_full(); ++row) {
            const shm::SessionState state = core_.session(row).state;
            const bool open =
                state == shm::SessionState::kOpen || state == shm::SessionState::kOutlived;
            if (!open || sessions_.at(row) != nullptr) {
                continue;
            }
            if (!words_.session_ends(row)) break;
            core_.session_died(row);
        }
        finish_unheard();
    } while (row < core_.sessions_max() || core_.work_left());
}

// A turn before any client is read; adopted sessions get answers as usual.
void Turn::begin_unheard() {
    core_.begin_turn(now_);
    operations_.begin_turn();
}

void Turn::finish_unheard() {
    words_.read_touches();
    core_.decide();
    answers_.stage();
    core_.commit();
    answers_.store();
    core_.clear();
}

}  // namespace dibs
