// broker/core/rules/leases.cpp -- carries a lease from its grant to its end.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::LeaseState;

namespace {

// A lease expires strictly after its expiry, hence one nanosecond later; life-bound ones never.
uint64_t due_after(uint64_t expires_ns) {
    return expires_ns == kNever ? kNever : expires_ns + 1;
}

bool is_plain(const shm::ClaimRow& claim) {
    return claim.units == 1 && claim.interval_ns == 0 && claim.payload_size == 0 &&
           claim.meta == kNoRow && !key_given(claim.key) && !is_several(claim) &&
           claim.task == kNoRow;
}

}  // namespace

// Makes the lease and tells its holder. The slots are chained from first_slot, reserved or already
// counted as leased.
uint32_t Leases::lease_out(const Grantee& to, uint32_t first_slot) {
    const uint32_t row = free_rows().take_lease_row();
    assert(state.leases[row].state == LeaseState::kFree && first_slot != kNoRow);
    shm::LeaseRow& lease = edit().fresh_row(state.leases[row]);
    shm::PoolRow& pool = edit().row(state.pools[to.pool], kPoolStates);
    shm::SessionRow& session = edit().row(state.sessions[to.session], 1);
    const uint64_t fence = pool.fence_next + 1;
    const uint64_t interval = std::min(to.interval_ns, pool.interval_max_ns);
    put(pool.fence_next, fence);
    put(lease.state, LeaseState::kLive);
    put(lease.mode, pool.mode);
    put(lease.pool, to.pool);
    put(lease.session, to.session);
    put(lease.fence, fence);
    put(lease.expires_ns, interval == 0 ? kNever : sum_or_never(turn().now_ns, interval));
    put(lease.arrival, to.number);
    put(lease.interval_ns, interval);
    put(lease.first_slot, first_slot);
    put(lease.units, to.units);
    put(lease.tag, to.tag);
    std::memset(lease.key, 0, sizeof(lease.key));
    stored();
    put(lease.granted_ns, turn().now_ns);
    put(lease.kept_ns, turn().now_ns);
    put(lease.user_data, to.user_data);
    put(lease.grace_until_ns, 0);
    put(lease.account, kNoRow);
    put(lease.room, to.room);
    put(lease.room_lines, to.room_lines);
    const bool may_park =
        to.is_plain && (pool.flags & shm::PoolFlag::kParks) != 0 && !pools().draining(to.pool);
    const bool by_word = to.by_word && interval != 0;
    assert(!may_park || !by_word);
    put(lease.flags, may_park ? shm::LeaseFlag::kMayPark : by_word ? shm::LeaseFlag::kByWord : 0);
    // A turn that was taken back may have left something in them: they are in no line that is
    // saved.
    put(lease.several, 0);
    put(lease.of_task, 0);
    if (by_word) put(lease.touched, 0);
    put(pool.last_dispatch_ns, turn().now_ns);
    put(pool.granted_total, pool.granted_total + 1);
    if (to.number >= turn().first_number) put(pool.hit_total, pool.hit_total + 1);
    put(session.leases, session.leases + 1);

    ++turn().grants;
    Decision& granted = turn().decide_that(DecisionKind::kGrant);
    granted.outcome = Outcome::kGranted;
    granted.session = to.session;
    granted.pool = to.pool;
    granted.tag = to.tag;
    granted.units = to.units;
    granted.claim = to.number;
    granted.user_data = to.user_data;
    granted.id = row_id(lease.head.generation, row);
    granted.fence = fence;
    granted.value = interval;
    granted.room = to.room;
    granted.may_park = may_park;
    granted.slots_begin = static_cast<uint32_t>(turn().decided_slots.size());
    granted.slots_count = to.units;
    for (uint32_t slot = first_slot; slot != kNoRow; slot = state.slots[slot].holder_next) {
        shm::SlotRow& held = edit().row(state.slots[slot], 1);
        put(held.holder, row);
        put(held.fence, fence);
        put(held.flags,
            held.flags &
                static_cast<uint8_t>(shm::SlotFlag::kProtected | shm::SlotFlag::kUnqualified |
                                     shm::SlotFlag::kDraining));
        if (held.state != SlotState::kLeased) slots().move_slot(slot, SlotState::kLeased);
        turn().decided_slots.push_back({slot, held.number});
    }
    if (state.slots[first_slot].part_of != kNoRow) vectors().list_part(&granted, first_slot);
    if (interval != 0) {
        turn().timers.set(TimerKind::kLease, row, due_after(lease.expires_ns), to.number);
    }
    sessions().tags[to.session][to.tag] = row | kTagLease;
    pool_leases.push_back(to.pool, row);
    if (may_park) parking().lease_begins(row);
    return row;
}

// A claim with a row becomes its lease.
uint32_t Leases::grant(uint32_t claim_row, uint32_t first_slot) {
    const shm::ClaimRow& claim = state.claims[claim_row];
    assert(claim.state != shm::ClaimState::kFree && claim.units != 0);
    if (claim.task != kNoRow && wants_part(claim)) [[unlikely]]
        vectors().shrink_part(claim_row, first_slot);
    const uint32_t row = lease_out({.session = claim.session,
                                    .pool = claim.pool,
                                    .units = claim.units,
                                    .tag = claim.tag,
                                    .number = claim.arrival,
                                    .user_data = claim.user_data,
                                    .interval_ns = claim.interval_ns,
                                    .room = claim.room,
                                    .room_lines = claim.room_lines,
                                    .is_plain = is_plain(claim),
                                    .by_word = (claim.flags & shm::ClaimFlag::kByWord) != 0},
                                   first_slot);
    shm::SessionRow& session = edit().row(state.sessions[claim.session], 1);
    put(session.claims, session.claims - 1);
    if (claim.deadline_ns != kNever) turn().timers.remove(TimerKind::kDeadline, claim_row);
    if (key_given(claim.key)) {  // the lease has no key
        shm::LeaseRow& lease = edit().row(state.leases[row], 1U << 1U);
        std::memcpy(lease.key, claim.key, sizeof(lease.key));
        stored();
        claims().remove_key(claim.session, claim.key, claim_row);
        claims().add_key(claim.session, lease.key, row | kTagLease);
    }
    if (claim.task != kNoRow) [[unlikely]]
        gangs().is_granted(claim_row, row);
    matcher().lease_begins(claim_row, row);
    return row;
}

// In the arena it is its session's as before.
void Leases::take_meta(uint32_t claim_row, uint32_t row) {
    shm::ClaimRow& claim = edit().row(state.claims[claim_row], kClaimRunLines);
    shm::LeaseRow& lease = edit().row(state.leases[row], 1U << 1U | 1U << 2U);
    assert((lease.flags & shm::LeaseFlag::kMayPark) == 0);
    put(lease.wanted_ns, uint64_t{claim.meta_size} << 32U | claim.meta);
    put(lease.flags, lease.flags | shm::LeaseFlag::kMeta);
    put(claim.meta, kNoRow);
    put(claim.meta_size, 0);
}

Reason Leases::lease_refusal(LeaseId id, uint64_t fence) const {
    const uint32_t row = row_of(id);
    const uint32_t generation = generation_of(id);
    if (row >= state.leases.size() || generation == 0) return Reason::kNotFound;  // no id is 0
    const shm::LeaseRow& lease = state.leases[row];
    const uint32_t current = lease.head.generation;
    const bool free = lease.state == LeaseState::kFree;
    if (generation > current || (generation == current && free)) return Reason::kNotFound;
    if (generation == current) return Reason::kOk;
    const bool last = free && generation + 1 == current;
    return last && lease.fence != fence ? Reason::kStale : Reason::kAlreadyEnded;
}

uint32_t Leases::find_lease(SessionId session, LeaseId id, uint64_t fence, uint64_t user_data) {
    const uint32_t row = row_of(id);
    const auto refuse = [&](Reason reason) {
        turn().result(session, user_data, reason);
        return kNoRow;
    };
    const Reason reason = lease_refusal(id, fence);
    if (reason != Reason::kOk) return refuse(reason);
    const shm::LeaseRow& lease = state.leases[row];
    if (lease.session != session) {
        refuse(Reason::kNotHolder);
        Decision& told = turn().decisions.back();
        const shm::SessionRow& holder = state.sessions[lease.session];
        told.holder_uid = holder.uid;
        told.holder_pid = holder.pid;
        told.holder_claim = lease.arrival;
        told.holder_age_ns = turn().now_ns - lease.granted_ns;
        return kNoRow;
    }
    const uint64_t current = lease.fence + takes_of(lease);
    if (fence == current) return row;
    // An earlier take of it was released before the next one.
    const bool earlier = fence >= lease.fence && fence < current;
    return refuse(earlier ? Reason::kAlreadyEnded : Reason::kStale);
}

// The result of an operation that ends a lease says which room and tag become free.
void Leases::result_of_end(SessionId session, uint64_t user_data, uint32_t lease) {
    turn().result(session, user_data, Reason::kOk);
    turn().decisions.back().room = state.leases[lease].room;
    turn().decisions.back().tag = state.leases[lease].tag;
    turn().decisions.back().claim = state.leases[lease].arrival;
}

void Leases::apply(const Release& command) {
    const uint32_t row =
        find_lease(command.session, command.lease, command.fence, command.user_data);
    if (row == kNoRow) return;
    result_of_end(command.session, command.user_data, row);
    end_lease(row, Reason::kOk, Tell::kNobody, command.broken, kNoRow);
}

void Leases::apply(const Keepalive& command) {
    const uint32_t row =
        find_lease(command.session, command.lease, command.fence, command.user_data);
    if (row == kNoRow) return;
    if (state.leases[row].state == LeaseState::kKilling) {
        return turn().result(command.session, command.user_data, Reason::kExpiredLease);
    }
    turn().result(
        command.session, command.user_data, Reason::kOk, keep_alive(row, command.interval_ns));
}

// From the old expiry on, once, whatever the time is: so no look, however late, gives a lease more
// than two intervals from its holder's last touch.
void Leases::apply(const Touch& command) {
    if (lease_refusal(command.lease, 0) != Reason::kOk) return;
    const uint32_t row = row_of(command.lease);
    const shm::LeaseRow& found = state.leases[row];
    const bool by_word = (found.flags & shm::LeaseFlag::kByWord) != 0;
    const bool lapses = found.state == LeaseState::kLive && turn().now_ns > found.expires_ns;
    if (!by_word || !lapses || command.value == found.touched) return;
    shm::LeaseRow& lease = edit().row(found, 1U << 1U | 1U << 2U);
    put(lease.touched, command.value);
    put(lease.expires_ns, sum_or_never(lease.expires_ns, lease.interval_ns));
    put(lease.kept_ns, turn().now_ns);
    several_pools().follow(row);
    turn().timers.set(TimerKind::kLease, row, due_after(lease.expires_ns), lease.arrival);
}

TimeNs Leases::keep_alive(uint32_t any_row, TimeNs interval_ns) {
    const uint32_t row = several_pools().first_lease(any_row);
    const shm::LeaseRow& kept = state.leases[row];
    assert(kept.state != LeaseState::kFree && kept.state != LeaseState::kKilling);
    if (kept.interval_ns == 0) return 0;
    // A lease under revocation is not prolonged: the answer says how long it still has. A command
    // of the turn in which that time is over comes before its timer.
    if (kept.state == LeaseState::kRevoking) {
        return kept.grace_until_ns - std::min(kept.grace_until_ns, turn().now_ns);
    }
    if (kept.state == LeaseState::kExpired) {
        expired_leases.remove(kept.pool, row);
        vectors().expired_room_changes(kept.pool);
    }
    if (kept.state != LeaseState::kLive) {  // its holder has been notified
        turn().revivals.push_back(
            {turn().decisions.size(), kept.session, kept.head.generation, kept.tag});
    }
    const uint64_t asked = interval_ns == 0 ? kept.interval_ns : interval_ns;
    const uint64_t interval = std::min(asked, several_pools().interval_max(kept));
    shm::LeaseRow& lease = edit().row(kept, 1U << 1U);
    put(lease.state, LeaseState::kLive);
    put(lease.expires_ns, sum_or_never(turn().now_ns, interval));
    put(lease.kept_ns, turn().now_ns);
    several_pools().follow(row);
    turn().timers.set(TimerKind::kLease, row, due_after(lease.expires_ns), lease.arrival);
    return interval;
}

Decision& Leases::tell_of_lease(DecisionKind kind, uint32_t row) {
    const shm::LeaseRow& lease = state.leases[row];
    assert(lease.state != LeaseState::kFree);
    Decision& told = turn().decide_that(kind);
    told.session = lease.session;
    told.pool = lease.pool;
    told.tag = lease.tag;
    told.units = lease.units;
    told.claim = lease.arrival;
    told.user_data = lease.user_data;
    told.id = row_id(lease.head.generation, row);
    told.fence = lease.fence + takes_of(lease);
    told.room = lease.room;
    return told;
}

void Turn::list_slots(Decision* decision, uint32_t first) {
    decision->slots_begin = static_cast<uint32_t>(decided_slots.size());
    for (uint32_t slot = first; slot != kNoRow; slot = state.slots[slot].holder_next) {
        decided_slots.push_back({slot, state.slots[slot].number});
        ++decision->slots_count;
    }
}

void Leases::tell_lease_end(uint32_t row, Reason reason) {
    Decision& end = tell_of_lease(DecisionKind::kLeaseEnd, row);
    end.reason = reason;
    turn().list_slots(&end, state.leases[row].first_slot);
    assert(end.slots_count == state.leases[row].units);
}

void Leases::note_end(uint32_t row, Reason reason) {
    const shm::LeaseRow& lease = state.leases[row];
    if (!ended.wanted() || lease.first_slot == kNoRow) return;  // its workers have gone before
    const shm::SlotRow& slot = state.slots[lease.first_slot];
    EndedLease& note = ended.next();
    note.id = row_id(lease.head.generation, row);
    note.number = lease.arrival;
    note.fence = lease.fence + takes_of(lease);
    note.granted_ns = lease.granted_ns;
    note.kept_ns = lease.kept_ns;
    note.expires_ns = lease.expires_ns;
    note.interval_ns = lease.interval_ns;
    note.ended_ns = turn().now_ns;
    note.pool = lease.pool;
    note.uid = state.sessions[lease.session].uid;
    note.pid = state.sessions[lease.session].pid;
    note.slot = slot.number;
    note.units = lease.units;
    note.killed = lease.state == LeaseState::kKilling && reason == Reason::kHolderGone;
    // In a pool of another expiry, or under preemption, only a revocation kills.
    const bool revoked = state.pools[lease.pool].mode != shm::ExpiryMode::kStrict ||
                         (lease.flags & shm::LeaseFlag::kTaken) != 0;
    note.reason = note.killed && revoked ? Reason::kRevoked : reason;
    note.is_part = slot.part_of != kNoRow;
    note.meta.clear();
    if (note.is_part) {
        const auto& amounts = state.slot_vectors[lease.first_slot].amount;
        std::copy(std::begin(amounts), std::end(amounts), note.amounts.begin());
    }
    const uint32_t behind = matcher().claim_behind(row);
    const ArenaText meta = behind != kNoRow ? meta_of(state.claims[behind]) : meta_of(lease);
    if (meta.chain == kNoRow) return;
    note.meta.resize(meta.size);
    arena().copy(meta.chain, meta.size, reinterpret_cast<std::byte*>(note.meta.data()));
}

void Leases::end_lease(
    uint32_t row, Reason reason, Tell tell, bool broken, uint32_t except, bool again) {
    const shm::LeaseRow& lease = state.leases[row];
    if (is_several(lease)) [[unlikely]]
        return several_pools().end_lease(row, reason, tell, broken, except);
    const uint32_t first = lease.first_slot;
    assert(lease.state != LeaseState::kFree && (first != kNoRow || lease.units == 0));
    if (ended.wanted()) note_end(row, reason);
    if (lease.of_task != 0) [[unlikely]]
        gangs().lease_ends(row, reason);
    const uint32_t claim = matcher().lease_ends(row);
    if (tell == Tell::kHolder) {
        tell_lease_end(row, reason);
        if (again) {
            turn().decisions.back().room = kNoRow;
            turn().decisions.back().value = 1;
        }
    } else {
        shm::PoolRow& pool = edit().row(state.pools[lease.pool], kPoolStates);
        put(pool.released_total, pool.released_total + 1);
    }
    if (lease.state == LeaseState::kExpired) expired_leases.remove(lease.pool, row);
    turn().timers.remove(TimerKind::kLease, row);
    sessions().tags[lease.session][lease.tag] = kTagFree;
    claims().remove_key(lease.session, lease.key, row | kTagLease);
    pool_leases.remove(lease.pool, row);
    constexpr uint32_t kOfParking = shm::LeaseFlag::kMayPark | shm::LeaseFlag::kTakesSeen;
    if ((lease.flags & kOfParking) != 0) parking().lease_ends(row);
    if (const ArenaText meta = meta_of(lease); meta.chain != kNoRow) {
        free_rows().drop_arena(lease.session, meta.size);
        arena().free(meta.chain, meta.size);
    }
    shm::SessionRow& session = edit().row(state.sessions[lease.session], 1);
    put(session.leases, session.leases - 1);
    free_rows().free_lease_row(row);
    if (claim != kNoRow) ledger().after_run(claim, again);
    slots().give_back_chain(first, true, broken, except);
}

}  // namespace dibs::core
