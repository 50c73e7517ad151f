// tests/naive/timers.cpp -- what time alone brings about.
//
// S0.13: nothing is polled; what is due is done at its own instant, and a turn that comes late does
// in order of these instants what it has missed. S0.12: at one instant first the claims that are
// over, then the reservations. S0.18: and all of it before the pass looks for slots. Slots that are
// reserved without a claim are swept by themselves, as the turn opens. What leases do of themselves
// is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "tests/naive/gangs.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

namespace {

// In the order in which they are done at one instant.
enum TimerKind { kDeadline, kReservation, kExpiry, kGrace };

struct Timer {
    TimeNs due_ns = 0;
    TimerKind kind = kDeadline;
    uint64_t claim = 0;  // its number, which its lease's is too
    bool operator<(const Timer& other) const {
        return std::tuple(due_ns, kind, claim) < std::tuple(other.due_ns, other.kind, other.claim);
    }
};

// S0.2: the first instant at which the claim is expired: one strictly after its deadline. Without a
// deadline there is none. S0.22: while its workers confirm, its deadline goes on.
TimeNs expired_from(const Claim& claim) {
    return claim.deadline_ns == shm::kNever ? shm::kNever : later(claim.deadline_ns, 1);
}

// S0.17: the first instant at which what is reserved for the claim is reserved no more: its expiry.
TimeNs unreserved_from(const Claim& claim) {
    return claim.is_confirming ? claim.reserved_until_ns : shm::kNever;
}

// S0.24, S0.25: what was reserved for a claim that has been sent back stays so to the same instant.
TimeNs unreserved_from(const Slot& slot) {
    return slot.is == SlotIs::kKept ? slot.kept_until_ns : shm::kNever;
}

// All that is to come, the first first.
std::vector<Timer> timers_of(const Model& model) {
    std::vector<Timer> timers;
    for (const auto& [number, claim] : model.claims) {
        timers.push_back({expired_from(claim), kDeadline, number});
        timers.push_back({unreserved_from(claim), kReservation, number});
    }
    for (const auto& [number, lease] : model.leases) {
        if (lease.is_being_killed) continue;
        if (lease.is_in_grace || lease.is_revoking) {
            timers.push_back({lease.grace_until_ns, kGrace, number});
        } else if (lease.expires_ns != shm::kNever && !lease.is_uncollected) {
            // "At its very instant a lease lives."
            timers.push_back({later(lease.expires_ns, 1), kExpiry, number});
        }
    }
    std::erase_if(timers, [](const Timer& timer) { return timer.due_ns == shm::kNever; });
    std::sort(timers.begin(), timers.end());
    return timers;
}

}  // namespace

// S0.13: whoever waits until then misses nothing, and has something to do.
TimeNs NaiveCore::next_due() const {
    TimeNs next = shm::kNever;
    const std::vector<Timer> timers = timers_of(m_);
    if (!timers.empty()) next = timers.front().due_ns;
    next = std::min(next, next_of_applications(m_));
    for (const auto& [id, slot] : m_.slots)
        next = std::min({next, unreserved_from(slot), later(silent_too_long(slot), 1)});
    for (const TimeNs at : provision_instants()) {
        if (at >= next) break;
        if (time_changes(at)) return at;
    }
    return next;
}

// S0.17: at the very instant it is reserved no more. S0.18: and idle, if nothing else has happened
// to it. In order of instant, then of place.
void NaiveCore::sweep_reservations() {
    std::map<std::tuple<TimeNs, uint32_t, uint32_t>, uint64_t> over;
    for (const auto& [id, slot] : m_.slots) {
        if (unreserved_from(slot) <= m_.now) {
            over[{unreserved_from(slot), slot.pool, slot.number}] = id;
        }
    }
    for (const auto& [order, id] : over)
        become_idle(id);
}

// One at a time, as each may bring others about or do away with them.
void NaiveCore::run_timers() {
    for (;;) {
        const std::vector<Timer> timers = timers_of(m_);
        if (timers.empty() || timers.front().due_ns > m_.now) return;
        const Timer& timer = timers.front();
        switch (timer.kind) {
            case kDeadline:  // S0.12, S0.22; S0.32: as expired, and as nothing else
                end_claim_and_free(timer.claim, shm::Outcome::kExpired, shm::Reason::kOk);
                break;
            case kReservation:
                reservation_expired(timer.claim);
                break;
            case kExpiry:
                lease_expired(timer.claim);
                break;
            case kGrace:
                if (m_.leases.at(timer.claim).is_revoking) {
                    revocation_over(timer.claim);
                } else {
                    lease_ended_by_time(timer.claim);
                }
                break;
        }
    }
}

// S0.25: the claim is sent back to its place. S0.17, S0.19: what has been confirmed is let go; what
// has not is still in transition and stays held, until its worker says what has become of it.
void NaiveCore::reservation_expired(uint64_t number) {
    const std::vector<uint64_t> slots = m_.claims.at(number).slots;
    wait_again(number);
    for (const uint64_t id : slots) {
        const bool is_in_transition = !m_.slots.at(id).has_confirmed;
        if (is_in_transition) {
            become_unknown(id);
        } else {
            free_slot(id);
        }
    }
}

}  // namespace dibs::naive
