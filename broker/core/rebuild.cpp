// broker/core/rebuild.cpp -- everything that is derived, from one scan over the rows.
//
// A broker that takes over does not know what its predecessor's last turn left half decided, so
// every pool is looked at again, and deaths, drains and growth go on where their rows stand.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;
using shm::SessionState;

namespace {

// Rows and what orders them, side by side: a sort that went to the rows for each comparison would
// miss the cache in most of them. Often they stand in their order already.
template <class Number>
struct Ordered {
    using Place = std::pair<Number, uint32_t>;

    void sort() {
        if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
    }

    std::vector<Place> places = {};
};

using Twice = std::pair<uint64_t, uint64_t>;

// Behind so many rows in use all others are free. check_all() counts them all, should that be
// wrong.
uint32_t in_use(uint32_t rows, uint64_t free) {
    return free < rows ? rows - static_cast<uint32_t>(free) : 0;
}

}  // namespace

void Core::Parts::rebuild() {
    now_ns = state.counters->time_ns;
    first_number = state.counters->arrival_next;
    for (uint32_t row = 0; row < state.sessions.size(); ++row) {
        const shm::SessionRow& session = state.sessions[row];
        if (session.state == SessionState::kFree) continue;
        tags[row].assign(session.tags_max, kTagFree);
        if (session.state == SessionState::kDying) dying.push_back(row);
    }
    for (uint32_t row = 0; row < state.counters->pools; ++row) {
        backlog.reserve(row, std::min(state.pools[row].backlog_max, state.claims.size()));
    }
    const std::vector<uint32_t> claims = rebuild_claims();
    rebuild_leases();
    rebuild_slots();
    rebuild_accounts(claims);
    for (uint32_t row = 0; row < state.counters->pools; ++row) {
        dirty.add(row);
        touched.add(row);
        if (state.pools[row].slots < state.pools[row].slots_wanted) growing.push_back(row);
        if (state.pools[row].state == shm::PoolState::kGoing) going.push_back(row);
    }
    drain_work = true;
}

// Returns those in use, by number.
std::vector<uint32_t> Core::Parts::rebuild_claims() {
    Ordered<uint64_t> by_arrival;
    uint32_t left = in_use(state.claims.size(), state.counters->claims_free);
    by_arrival.places.reserve(left);
    for (uint32_t row = 0; row < state.claims.size() && left != 0; ++row) {
        const shm::ClaimRow& claim = state.claims[row];
        if (claim.state == ClaimState::kFree) continue;
        by_arrival.places.emplace_back(claim.arrival, row);
        --left;
    }
    by_arrival.sort();
    std::vector<uint32_t> claims;
    claims.reserve(by_arrival.places.size());
    for (const auto& [arrival, row] : by_arrival.places)
        claims.push_back(row);
    for (const uint32_t row : claims) {
        const shm::ClaimRow& claim = state.claims[row];
        if (claim.state == ClaimState::kRunning) continue;  // its lease stands for it
        tags[claim.session][claim.tag] = row;
        add_key(claim.session, claim.key, row);
        if (claim.deadline_ns != kNever) {
            timers.set(TimerKind::kDeadline, row, claim.deadline_ns + 1, claim.arrival);
        }
        if (claim.state == ClaimState::kWaiting || claim.state == ClaimState::kPromised) {
            backlog.push_back(claim.pool, row);
            if ((claim.flags & kImpatient) != 0) impatient.push_back(row);
        } else {
            ++confirming_total;
            timers.set(TimerKind::kReservation, row, claim.reserved_until_ns, claim.arrival);
        }
    }
    return claims;
}

// Until a table has been given back in another order than it was taken, leases stand in it as they
// were granted. They are listed on the way then, and collected and sorted only if they do not.
void Core::Parts::rebuild_leases() {
    Ordered<Twice> expired;
    Twice last{0, 0};
    bool in_order = true;
    const uint32_t rows = in_use(state.leases.size(), state.counters->leases_free);
    uint32_t left = rows;
    uint32_t end = 0;  // of the rows in use
    for (uint32_t row = 0; row < state.leases.size() && left != 0; ++row) {
        const shm::LeaseRow& lease = state.leases[row];
        state.leases.fetch_behind(row);
        if (lease.state == LeaseState::kFree) continue;
        --left;
        end = row + 1;
        const Twice granted{lease.granted_ns, lease.fence};
        in_order = in_order && last <= granted;
        last = granted;
        if (in_order) pool_leases.push_back(lease.pool, row);
        tags[lease.session][lease.tag] = row | kTagLease;
        add_key(lease.session, lease.key, row | kTagLease);
        if (lease.state == LeaseState::kExpired) {
            expired.places.emplace_back(Twice{lease.expires_ns, lease.arrival}, row);
        } else if (lease.state == LeaseState::kGrace || lease.state == LeaseState::kRevoking) {
            timers.set(TimerKind::kGrace, row, lease.grace_until_ns, lease.arrival);
        } else if (lease.state == LeaseState::kLive && lease.expires_ns != kNever) {
            timers.set(TimerKind::kLease, row, lease.expires_ns + 1, lease.arrival);
        }
    }
    if (!in_order) list_leases_by_age(rows, end);
    expired.sort();
    for (const auto& [when, row] : expired.places)
        expired_leases.push_back(state.leases[row].pool, row);
}

void Core::Parts::list_leases_by_age(uint32_t rows, uint32_t end) {
    pool_leases = Chains(state.pools.size(), state.leases.size());
    // With the pool: to go back to the rows in this order would miss the cache in most of them.
    std::vector<std::tuple<uint64_t, uint64_t, uint32_t, uint32_t>> by_age;
    by_age.reserve(rows);
    for (uint32_t row = 0; row < end; ++row) {
        const shm::LeaseRow& lease = state.leases[row];
        if (lease.state == LeaseState::kFree) continue;
        by_age.emplace_back(lease.granted_ns, lease.fence, row, lease.pool);
    }
    std::sort(by_age.begin(), by_age.end());
    for (const auto& [granted_ns, fence, row, pool] : by_age)
        pool_leases.push_back(pool, row);
}

void Core::Parts::rebuild_slots() {
    uint32_t left = in_use(state.slots.size(), state.counters->slots_free);
    for (uint32_t row = 0; row < state.slots.size() && left != 0; ++row) {
        const shm::SlotRow& slot = state.slots[row];
        state.slots.fetch_behind(row);
        if (slot.state == SlotState::kFree) continue;
        --left;
        if ((slot.flags & shm::SlotFlag::kCollected) != 0) ++collected[slot.pool];
        if (slot.session != kNoRow) session_slots.push_back(slot.session, row);
        if (slot.name_size != 0) {
            names.insert(name_hash(slot.pool, {slot.name, slot.name_size}), row);
        }
        if ((slot.flags & shm::SlotFlag::kKept) != 0) {
            const uint64_t number = (uint64_t{slot.pool} << 32U) | slot.number;
            timers.set(TimerKind::kKept, row, slot.reserved_until_ns, number);
        }
    }
}

}  // namespace dibs::core
