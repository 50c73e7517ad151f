// broker/core/recovery/rebuild.cpp -- rebuilds all derived data in one scan over the rows.
//
// A successor does not know what its predecessor's last turn left half decided, so every pool is
// looked at again, and deaths, drains and growth continue where their rows stand.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/rebuild.hpp"

#include <boost/sort/spreadsort/integer_sort.hpp>
#include <cassert>
#include <utility>

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;
using shm::SessionState;

namespace {

// Behind so many rows in use the rest are free. check_all() counts them all, in case that is wrong.
uint32_t in_use(uint32_t rows, uint64_t free) {
    return free < rows ? rows - static_cast<uint32_t>(free) : 0;
}

}  // namespace

Rebuild::Rebuild(Core::Parts& parts)
    : parts_(parts),
      state_(parts.state),
      slots_left_(in_use(state_.slots.size(), state_.counters->slots_free)),
      leases_left_(in_use(state_.leases.size(), state_.counters->leases_free)),
      last_fence_(state_.pools.size()) {
    parts.held_rooms.reserve(leases_left_ + 1);  // a pledge may be owed
}

void Rebuild::sessions() {
    for (uint32_t row = 0; row < state_.sessions.size(); ++row) {
        const shm::SessionRow& session = state_.sessions[row];
        if (session.state == SessionState::kFree) continue;
        parts_.tags[row].assign(session.tags_max, kTagFree);
        if (session.state != SessionState::kOpen) parts_.dying.push_back(row);
    }
}

void Rebuild::claims() {
    parts_.now_ns = state_.counters->time_ns;
    parts_.first_number = state_.counters->arrival_next;
    parts_.open_part_index();
    parts_.find_types();
    sessions();
    for (uint32_t row = 0; row < state_.counters->pools; ++row) {
        parts_.backlog.reserve(row, std::min(state_.pools[row].backlog_max, state_.claims.size()));
        if (state_.pools[row].order == shm::PoolOrder::kPriority) parts_.pool_opens(row);
    }
    Ordered<uint64_t> by_arrival;
    uint32_t left = in_use(state_.claims.size(), state_.counters->claims_free);
    by_arrival.places.reserve(left);
    for (uint32_t row = 0; row < state_.claims.size() && left != 0; ++row) {
        const shm::ClaimRow& claim = state_.claims[row];
        if (claim.state == ClaimState::kFree) continue;
        by_arrival.places.emplace_back(claim.arrival, row);
        --left;
    }
    by_arrival.sort();
    claims_.reserve(by_arrival.places.size());
    for (const auto& [arrival, row] : by_arrival.places)
        claims_.push_back(row);
    for (const uint32_t row : claims_)
        claim(row);
}

void Rebuild::claim(uint32_t row) {
    const shm::ClaimRow& claim = state_.claims[row];
    assert(claim.pool < state_.counters->pools && claim.units <= shm::kUnitsMax);
    parts_.hold_arena(claim.session, claim.payload_size);
    parts_.hold_arena(claim.session, claim.meta_size);
    if (claim.state == ClaimState::kRunning) {  // its lease stands for it
        parts_.backlog.keep_seat(claim.pool, row);
        return;
    }
    const bool is_first = !is_further(claim, row);
    if (claim.session != kNoRow) {  // else it is for placeholders, and nobody's
        assert(claim.tag < parts_.tags[claim.session].size());
        if (is_first) parts_.tags[claim.session][claim.tag] = row;
        parts_.add_key(claim.session, claim.key, row);
    }
    parts_.claim_is_found(row);
    if (claim.deadline_ns != kNever) {
        parts_.timers.set(TimerKind::kDeadline, row, claim.deadline_ns + 1, claim.arrival);
    }
    if (claim.state == ClaimState::kWaiting || claim.state == ClaimState::kPromised) {
        parts_.backlog.push_back(claim.pool, row);
        parts_.waiting_units[claim.pool] += claim.units;
        if (is_several(claim)) ++parts_.SeveralPools::waiting;
        if ((claim.flags & kImpatient) != 0) parts_.impatient.push_back(row);
    } else if (claim.state == ClaimState::kHeld) {
        parts_.seat_held(row);
    } else {
        parts_.backlog.keep_seat(claim.pool, row);
        ++parts_.confirming_total;
        if (!is_first) return;
        parts_.timers.set(TimerKind::kReservation, row, claim.reserved_until_ns, claim.arrival);
    }
}

// A pool's fences grow with its grants. Until rows have been freed in another order than they were
// taken, leases stand in the table as they were granted: they are listed on the way then, and
// collected and sorted only if they do not.
void Rebuild::leases(uint32_t begin, uint32_t end) {
    assert(begin <= end && end <= state_.leases.size());
    for (uint32_t row = begin; row < end && leases_left_ != 0; ++row) {
        const shm::LeaseRow& lease = state_.leases[row];
        if (lease.state == LeaseState::kFree) continue;
        --leases_left_;
        if (in_order_ && lease.fence < std::exchange(last_fence_[lease.pool], lease.fence)) {
            in_order_ = false;
            collect_leases(row);
        }
        if (in_order_) {
            parts_.pool_leases.push_back(lease.pool, row);
            parts_.lease_is_found(row);
        } else {
            by_age_.push_back({lease.fence, row, lease.pool});
        }
        assert(lease.tag < parts_.tags[lease.session].size());
        if (is_further(lease, row)) continue;  // the first row has the rest
        parts_.tags[lease.session][lease.tag] = row | kTagLease;
        parts_.add_key(lease.session, lease.key, row | kTagLease);
        parts_.keep_room(lease);
        parts_.hold_arena(lease.session, meta_of(lease).size);
        if (lease.state == LeaseState::kExpired) {
            expired_.places.emplace_back(Twice{lease.expires_ns, lease.arrival}, row);
        } else if (lease.state == LeaseState::kGrace || lease.state == LeaseState::kRevoking) {
            parts_.timers.set(TimerKind::kGrace, row, lease.grace_until_ns, lease.arrival);
        } else if (lease.state == LeaseState::kLive && lease.expires_ns != kNever) {
            parts_.timers.set(TimerKind::kLease, row, lease.expires_ns + 1, lease.arrival);
        }
    }
}

// Those before this row, which stand in their order.
void Rebuild::collect_leases(uint32_t end) {
    by_age_.reserve(in_use(state_.leases.size(), state_.counters->leases_free));
    for (uint32_t row = 0; row < end; ++row) {
        const shm::LeaseRow& lease = state_.leases[row];
        if (lease.state != LeaseState::kFree) by_age_.push_back({lease.fence, row, lease.pool});
    }
}

// Each pool's by their fences; which pool comes first does not matter.
void Rebuild::leases_by_age() {
    parts_.pool_leases = Chains(state_.pools.size(), state_.leases.size());
    boost::sort::spreadsort::integer_sort(
        by_age_.begin(),
        by_age_.end(),
        [](const Aged& lease, unsigned bits) { return lease.fence >> bits; },
        [](const Aged& one, const Aged& other) { return one.fence < other.fence; });
    parts_.Parking::forget();
    for (const Aged& lease : by_age_) {
        parts_.pool_leases.push_back(lease.pool, lease.row);
        parts_.lease_is_found(lease.row);
    }
}

void Rebuild::slots(uint32_t begin, uint32_t end) {
    assert(begin <= end && end <= state_.slots.size());
    for (uint32_t row = begin; row < end && slots_left_ != 0; ++row) {
        const shm::SlotRow& slot = state_.slots[row];
        if (slot.state == SlotState::kFree) continue;
        --slots_left_;
        if ((slot.flags & shm::SlotFlag::kCollected) != 0) ++parts_.collected[slot.pool];
        assert(slot.pool < state_.counters->pools);
        parts_.Provisioning::slot_changes(row);
        if (slot.session != kNoRow) parts_.session_slots.push_back(slot.session, row);
        if (slot.part_of != kNoRow && parts_.parts_index) parts_.parts_index->part_changes(row);
        parts_.hold_arena(slot.session, slot.attributes_size);
        if (slot.name_size != 0) {
            parts_.names.insert(parts_.name_hash(slot.pool, {slot.name, slot.name_size}), row);
        }
        if (slot.group != kNoRow && !parts_.is_dispatched(slot.pool)) {
            parts_.placeholder_is_found(row);
        }
        if (is_kept(slot)) {
            const uint64_t number = (uint64_t{slot.pool} << 32U) | slot.number;
            parts_.kept_slots.set(TimerKind::kKept, row, slot.reserved_until_ns, number);
        }
    }
}

void Rebuild::finish() {
    if (!in_order_) leases_by_age();
    expired_.sort();
    for (const auto& [when, row] : expired_.places)
        parts_.expired_leases.push_back(state_.leases[row].pool, row);
    std::erase_if(parts_.dying, [this](uint32_t row) { return parts_.waits_for_tree(row); });
    parts_.rebuild_accounts(claims_);
    parts_.find_entries();
    parts_.rebuild_gangs();
    for (uint32_t row = 0; row < state_.counters->pools; ++row) {
        const shm::PoolRow& pool = state_.pools[row];
        parts_.dirty.add(row);
        parts_.touched.add(row);
        parts_.pool_is_found(row);
        if (pool.state == shm::PoolState::kGoing) parts_.going.push_back(row);
        const bool is_counted = pool.kind == shm::PoolKind::kCounted;
        if (is_counted && pool.number_next < pool.slots_wanted) parts_.growing.push_back(row);
        if (is_counted && whole_slots(pool) > pool.slots_wanted)
            parts_.shrinking.push_back({row, 0});
    }
    parts_.drain_work = true;
}

void Leases::keep_room(const shm::LeaseRow& lease) {
    if (lease.room == kNoRow) return;
    uint16_t pool = lease.pool;
    if (is_several(lease)) [[unlikely]] {
        const auto row = static_cast<uint32_t>(&lease - &state.leases[0]);
        if (is_further(lease, row)) return;  // it is the first one's
        pool |= shm::kGrantOfSeveral;
    }
    held_rooms.push_back({lease.session, lease.room, lease.room_lines, pool, lease.tag});
}

void Core::Parts::rebuild() {
    Rebuild all(*this);
    all.claims();
    all.leases(0, state.leases.size());
    all.slots(0, state.slots.size());
    all.finish();
}

}  // namespace dibs::core
