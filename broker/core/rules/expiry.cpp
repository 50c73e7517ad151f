// broker/core/rules/expiry.cpp -- ends, kills or keeps a lease at its expiry, as its mode says.
//
//   cooperative  its holder is notified and has a grace, then it ends
//   strict       its holder's process is to be killed; its slots are recovering, still under it,
//                until that session has died. The core only says whom to kill, and learns of a
//                failure; nothing but the session's death, or its own release, ends the lease
//   lazy         it stays, expired and uncollected, until its room is wanted; a keepalive revives
//                it until then (S3.7-9)
//
// A lease whose holder is dead while processes of its tree are not has no end by time any more:
// nobody could keep it alive. It is a strict one from there on: a release from outside and
// preemption have those processes killed, and its session's death is the proof that none is left.
//
// A worker's collected slot becomes idle only when its worker says ready. Until then it counts as
// room that comes (SlotFlag::kCollected), so that one claim does not collect twice.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::ExpiryMode;
using shm::LeaseState;
namespace SlotFlag = shm::SlotFlag;

std::span<const uint32_t> Core::lapsing() const {
    Parts& parts = *parts_;
    parts.lapsing_list.clear();
    parts.timers.each_due(parts.now_ns, [&](const Timer& timer) {
        if (timer.kind != TimerKind::kLease) return;
        if ((lease(timer.row).flags & shm::LeaseFlag::kByWord) == 0) return;
        parts.lapsing_list.push_back(timer.row);
    });
    return parts.lapsing_list;
}

void Leases::lease_expired(uint32_t row) {
    const shm::LeaseRow& lease = state.leases[row];
    assert(lease.state == LeaseState::kLive || lease.state == LeaseState::kGrace ||
           lease.state == LeaseState::kRevoking);
    assert(lease.mode == state.pools[lease.pool].mode || lease.state == LeaseState::kRevoking);
    assert(lease.units != 0);
    if (lease.state == LeaseState::kRevoking) return preemption().end_revoked(row);
    switch (lease.mode) {
        case ExpiryMode::kStrict:
            return kill_holder(row);
        case ExpiryMode::kLazy:
            return stay_uncollected(row);
        case ExpiryMode::kCooperative:
            break;
    }
    if (lease.state != LeaseState::kLive || several_pools().grace(lease) == 0) {
        return end_lease(row, Reason::kExpiredLease, Tell::kHolder, false, kNoRow);
    }
    begin_grace(row);
}

void Leases::begin_grace(uint32_t row) {
    shm::LeaseRow& lease = edit().row(state.leases[row], 1U << 1U);
    assert(lease.state == LeaseState::kLive && turn().now_ns > lease.expires_ns);
    assert(lease.mode == ExpiryMode::kCooperative && lease.expires_ns != kNever);
    put(lease.state, LeaseState::kGrace);
    put(lease.grace_until_ns, sum_or_never(turn().now_ns, several_pools().grace(lease)));
    several_pools().follow(row);
    turn().timers.set(TimerKind::kGrace, row, lease.grace_until_ns, lease.arrival);
    tell_of_lease(DecisionKind::kLeaseGrace, row).value = lease.grace_until_ns;
}

void Leases::stay_uncollected(uint32_t row) {
    shm::LeaseRow& lease = edit().row(state.leases[row], 1);
    assert(lease.state == LeaseState::kLive && turn().now_ns > lease.expires_ns);
    assert(lease.mode == ExpiryMode::kLazy && lease.expires_ns != kNever);
    put(lease.state, LeaseState::kExpired);
    turn().timers.remove(TimerKind::kLease, row);
    // Timers run in the order of their instants, so the list is in that order, too.
    expired_leases.push_back(lease.pool, row);
    tell_of_lease(DecisionKind::kLeaseGrace, row).value = kNever;
    matcher().touch(lease.pool);  // a claim may wait for its room
    vectors().expired_room_changes(lease.pool);
}

void Leases::kill_holder(uint32_t any_row) {
    const uint32_t row = several_pools().first_lease(any_row);
    const shm::LeaseRow& found = state.leases[row];
    assert(found.state != LeaseState::kFree);
    assert(found.mode == ExpiryMode::kStrict);
    shm::PoolRow& pool = edit().row(state.pools[found.pool], kPoolStates);
    put(pool.kills_total, pool.kills_total + 1);
    tell_of_lease(DecisionKind::kKill, row);
    if (found.state == LeaseState::kKilling) return;  // once more
    shm::LeaseRow& lease = edit().row(found, 1);
    // It goes on paying, but is no candidate for preemption any more.
    matcher().slot_changes(lease.first_slot, [&] { put(lease.state, LeaseState::kKilling); });
    turn().timers.remove(TimerKind::kLease, row);
    matcher().assignments_end(row);
    for (uint32_t slot = lease.first_slot; slot != kNoRow; slot = state.slots[slot].holder_next) {
        assert(state.slots[slot].holder == row && state.slots[slot].state == SlotState::kLeased);
        slots().move_slot(slot, SlotState::kRecovering);
    }
    several_pools().kill_further(row);
}

// In a pool of strict expiry what outlives its holder is killed at once: that would have been the
// holder's end, and nobody keeps the lease alive any more.
void Leases::outlive(uint32_t any_row) {
    const uint32_t row = several_pools().first_lease(any_row);
    const shm::LeaseRow& found = state.leases[row];
    assert(found.state != LeaseState::kFree);
    if (found.state == LeaseState::kKilling) return;
    if (state.pools[found.pool].mode == ExpiryMode::kStrict) return kill_holder(row);
    if (found.mode == ExpiryMode::kStrict) return;  // it is one already
    parking().lease_moves(row);                     // nobody takes it again
    if (found.state == LeaseState::kExpired) {
        expired_leases.remove(found.pool, row);
        vectors().expired_room_changes(found.pool);
    }
    shm::LeaseRow& lease = edit().row(found, 0x7U);
    put(lease.mode, ExpiryMode::kStrict);
    put(lease.flags, lease.flags & ~uint32_t{shm::LeaseFlag::kByWord});
    put(lease.interval_ns, 0);
    put(lease.expires_ns, kNever);
    if (lease.state == LeaseState::kRevoking) return;  // that is told, and goes on
    put(lease.state, LeaseState::kLive);
    several_pools().follow(row);
    turn().timers.remove(TimerKind::kLease, row);
}

void Leases::apply(const KillFailed& command) {
    if (lease_refusal(command.lease, 0) != Reason::kOk) return;
    const uint32_t row = several_pools().first_lease(row_of(command.lease));
    const shm::LeaseRow& killing = state.leases[row];
    if (killing.state != LeaseState::kKilling) return;
    assert(killing.mode == ExpiryMode::kStrict);
    shm::LeaseRow& lease = edit().row(killing, 1U << 1U);
    shm::PoolRow& pool = edit().row(state.pools[lease.pool], kPoolStates);
    put(lease.flags, lease.flags | shm::LeaseFlag::kKillFailed);
    put(pool.kills_failed_total, pool.kills_failed_total + 1);
    turn().touched.add(lease.pool);
}

// The worker of a slot is gone while its holder is being killed: the lease lives on without the
// slot, or ends with its last slot. The other slots are not granted before that death is proved.
void Leases::take_off_lease(uint32_t row) {
    const uint32_t holder = state.slots[row].holder;
    assert(being_killed_for(state.slots[row]));
    const shm::LeaseRow& killing = state.leases[holder];
    assert(killing.state == LeaseState::kKilling && killing.units != 0);
    if (several_pools().units_of(holder) == 1) {
        return end_lease(holder, Reason::kWorkerLost, Tell::kHolder, false, row);
    }
    const uint32_t next = state.slots[row].holder_next;
    matcher().lease_shrinks(holder);
    shm::LeaseRow& lease = edit().row(killing, 1);
    put(lease.units, lease.units - 1);
    uint32_t before = lease.first_slot;
    if (before == row) return put(lease.first_slot, next);
    while (state.slots[before].holder_next != row)
        before = state.slots[before].holder_next;
    put(edit().row(state.slots[before], 1).holder_next, next);
}

// Slots under the lease that would be granted again: no mark stops them.
uint32_t Leases::would_come_back(uint32_t row) const {
    uint32_t count = 0;
    for (uint32_t slot = state.leases[row].first_slot; slot != kNoRow;
         slot = state.slots[slot].holder_next) {
        if (!is_stopped(state.slots[slot])) ++count;
    }
    return count;
}

bool Leases::collect(uint32_t pool_row, uint32_t units, bool at_once) {
    const shm::PoolRow& pool = state.pools[pool_row];
    if (expired_leases.head(pool_row) == kNoRow) return true;
    assert(pool.mode == ExpiryMode::kLazy);
    const bool counted = pool.kind == shm::PoolKind::kCounted;
    if (!counted && !may_ask(pool, units)) return true;
    const bool idle_at_once = counted || (pool.flags & shm::PoolFlag::kReleaseIsReady) != 0;
    if (at_once && !idle_at_once) return true;
    uint32_t comes = pool.idle + (at_once ? 0 : collected[pool_row]);
    uint32_t reachable = comes;
    for (uint32_t lease = expired_leases.head(pool_row); lease != kNoRow && reachable < units;
         lease = expired_leases.next(lease)) {
        reachable += would_come_back(lease);
    }
    if (reachable < units) return true;
    for (uint32_t lease = expired_leases.head(pool_row); comes < units;) {
        if (turn().full()) return false;
        const uint32_t next = expired_leases.next(lease);
        const uint32_t back = would_come_back(lease);
        comes += back;
        if (back != 0) end_collected(lease);
        lease = next;
    }
    return true;
}

void Leases::end_collected(uint32_t lease) {
    assert(state.leases[lease].state == LeaseState::kExpired);
    assert(state.leases[lease].mode == ExpiryMode::kLazy);
    turn().scratch.clear();
    for (uint32_t slot = state.leases[lease].first_slot; slot != kNoRow;
         slot = state.slots[slot].holder_next) {
        if (!is_stopped(state.slots[slot])) turn().scratch.push_back(slot);
    }
    end_lease(lease, Reason::kExpiredLease, Tell::kHolder, false, kNoRow);
    for (const uint32_t slot : turn().scratch) {
        if (state.slots[slot].state != SlotState::kRecovering) continue;
        shm::SlotRow& row = edit().row(state.slots[slot], 1);
        put(row.flags, row.flags | SlotFlag::kCollected);
        ++collected[row.pool];
    }
}

void Leases::uncollect(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    if ((slot.flags & SlotFlag::kCollected) == 0) return;
    assert(collected[slot.pool] != 0);
    assert(slot.state == SlotState::kRecovering && slot.holder == kNoRow);
    shm::SlotRow& edited = edit().row(slot, 1);
    put(edited.flags, edited.flags & ~uint32_t{SlotFlag::kCollected});
    --collected[slot.pool];
    matcher().touch(slot.pool);  // unless it is idle now, another one is wanted
}

}  // namespace dibs::core
