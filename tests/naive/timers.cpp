// tests/naive/timers.cpp -- "Timers run in order of (due instant, kind, number)."
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

namespace {

enum TimerKind { kDeadline = 0, kReservation = 1, kKept = 2, kExpiry = 3, kGrace = 4 };

struct Timer {
    TimeNs due_ns = 0;
    TimerKind kind = kDeadline;
    uint64_t pool = 0;    // of kept slots only: their numbers count within it
    uint64_t number = 0;  // the claim's; of kept slots the slot's
    uint64_t id = 0;
    auto order() const { return std::tuple(due_ns, kind, pool, number); }
};

std::vector<Timer> timers_of(const Model& model) {
    std::vector<Timer> timers;
    for (const auto& [number, claim] : model.claims) {
        // S0.2: strictly after the deadline.
        if (claim.deadline_ns != shm::kNever) {
            timers.push_back({later(claim.deadline_ns, 1), kDeadline, 0, number, number});
        }
        // S0.17: at the expiry it is over.
        if (claim.is_confirming) {
            timers.push_back({claim.reserved_until_ns, kReservation, 0, number, number});
        }
    }
    for (const auto& [id, slot] : model.slots) {
        if (slot.is != SlotIs::kKept) continue;
        timers.push_back({slot.kept_until_ns, kKept, slot.pool, slot.number, id});
    }
    for (const auto& [number, lease] : model.leases) {
        if (lease.is_being_killed) continue;
        if (lease.is_in_grace || lease.is_revoking) {
            timers.push_back({lease.grace_until_ns, kGrace, 0, number, number});
        } else if (lease.expires_ns != shm::kNever && !lease.is_uncollected) {
            // "At its very instant a lease lives."
            timers.push_back({later(lease.expires_ns, 1), kExpiry, 0, number, number});
        }
    }
    return timers;
}

}  // namespace

TimeNs NaiveCore::next_due() const {
    TimeNs next = shm::kNever;
    for (const Timer& timer : timers_of(m_))
        next = std::min(next, timer.due_ns);
    for (const auto& [id, slot] : m_.slots)
        next = std::min(next, later(silent_too_long(slot), 1));
    return next;
}

// "What a timer makes due within the same turn runs in that turn too": so look again after each.
void NaiveCore::run_timers() {
    for (;;) {
        const Timer* next = nullptr;
        const std::vector<Timer> timers = timers_of(m_);
        for (const Timer& timer : timers) {
            if (timer.due_ns > m_.now || timer.due_ns == shm::kNever) continue;
            if (next == nullptr || timer.order() < next->order()) next = &timer;
        }
        if (next == nullptr) return;
        switch (next->kind) {
            case kDeadline:
                end_claim_and_free(next->id, shm::Outcome::kExpired, shm::Reason::kOk);
                break;
            case kReservation:
                reservation_expired(next->id);
                break;
            case kKept:
                become_idle(next->id);
                break;
            case kExpiry:
                lease_expired(next->id);
                break;
            case kGrace:
                if (m_.leases.at(next->id).is_revoking) {
                    revocation_over(next->id);
                } else {
                    lease_ended_by_time(next->id);
                }
                break;
        }
    }
}

// "reserved | time to live passes | confirmed slots: freed; the others: unknown | the claim waits
// again in its place (S0.17, S0.25)"
void NaiveCore::reservation_expired(uint64_t number) {
    const std::vector<uint64_t> slots = m_.claims.at(number).slots;
    wait_again(number);
    for (const uint64_t id : slots) {
        if (m_.slots.at(id).has_confirmed) {
            free_slot(id);
        } else {
            become_unknown(id);
        }
    }
}

}  // namespace dibs::naive
