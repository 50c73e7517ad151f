// broker/core/rules/claims.cpp -- carries a claim from acceptance to its end, except for its grant.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::ClaimState;
namespace ClaimFlag = shm::ClaimFlag;

namespace {

uint8_t flags_of(const Claim& command, const shm::PoolRow& pool) {
    const shm::WhenBusy busy = command.when_busy_given ? command.when_busy : pool.when_busy;
    const bool now_only = command.timeout_ns == 0 || command.offer != 0;
    uint32_t flags = now_only ? ClaimFlag::kNowOnly : 0;
    if (busy == shm::WhenBusy::kReject) flags |= ClaimFlag::kReject;
    if (busy == shm::WhenBusy::kCold) flags |= ClaimFlag::kCold;
    if (command.by_word) flags |= ClaimFlag::kByWord;
    if (!command.least.empty()) flags |= ClaimFlag::kPart;
    return static_cast<uint8_t>(flags);
}

bool has_retry_after(Reason reason) {
    return reason == Reason::kBacklogFull || reason == Reason::kArenaFull ||
           reason == Reason::kTablesFull;
}

}  // namespace

Reason Claims::claim_refusal(const Claim& command, uint64_t* other) const {
    if (command.refusal != Reason::kOk) return command.refusal;
    const std::vector<uint32_t>& own = sessions().tags[command.session];
    if (command.tag >= own.size() || own[command.tag] != kTagFree) return Reason::kLimit;
    if (!pools().pool_lives(command.pool)) return Reason::kUnknownPool;
    if (dispatch().is_dispatched(command.pool)) return Reason::kState;
    const shm::PoolRow& pool = state.pools[command.pool];
    if (pools().draining(command.pool)) return Reason::kDraining;
    const bool counted = pool.kind == shm::PoolKind::kCounted;
    const uint32_t units_max =
        std::min(pool.units_max, counted ? pool.slots_wanted : pool.unconfirmed_max);
    if (command.units == 0 || command.units > units_max) return Reason::kTooManyUnits;
    if (const Reason reason = vectors().refusal(command, other); reason != Reason::kOk) {
        return reason;
    }
    const bool brings_bytes = (command.payload.size() | command.meta.size()) != 0;
    if (brings_bytes &&
        (command.payload.size() > pool.payload_max || command.meta.size() > shm::kMetaMax)) {
        return Reason::kPayload;
    }
    if (key_given(command.key.data())) {
        const uint32_t holder = find_key(command.session, command.key);
        if (holder != kNoRow) {
            *other = (holder & kTagLease) != 0 ? state.leases[holder & ~kTagLease].arrival
                                               : state.claims[holder].arrival;
            return Reason::kDuplicate;
        }
    }
    const uint32_t pending = pool.waiting + pool.confirming + gangs().held_in[command.pool] +
                             turn().fresh_of_pool[command.pool].count;
    if (pending >= pool.backlog_max) return Reason::kBacklogFull;
    if (brings_bytes && !arena().has_blocks(Arena::blocks_for(command.payload.size()) +
                                            Arena::blocks_for(command.meta.size()))) {
        return Reason::kArenaFull;
    }
    if (state.counters->claims_free <= turn().fresh.size() || !free_rows().lease_row_left()) {
        return Reason::kTablesFull;
    }
    return Reason::kOk;
}

void Claims::reject_unaccepted(const Claim& command,
                               uint64_t number,
                               Reason reason,
                               uint64_t other) {
    const bool known = pools().pool_lives(command.pool);
    Decision& end = turn().decide_that(DecisionKind::kEnd);
    end.outcome = Outcome::kRejected;
    end.reason = reason;
    end.session = command.session;
    end.pool = command.pool;
    end.tag = command.tag;
    end.units = command.units;
    end.claim = number;
    end.user_data = command.user_data;
    end.id = other;
    end.room = command.room;
    if (!known) return;
    if (has_retry_after(reason)) end.value = state.pools[command.pool].retry_after_ns;
    shm::PoolRow& pool = edit().row(state.pools[command.pool], kPoolTotals);
    put(pool.turned_away_total, pool.turned_away_total + 1);
    turn().touched.add(command.pool);
}

void Claims::apply(const Claim& command) {
    if (turn().pledged) return early_grants().keep_pledge(command);
    if (command.member != nullptr) [[unlikely]]
        return gangs().apply_claim(command);
    if (!command.also.empty()) [[unlikely]]
        return several_pools().apply(command);
    shm::CountersRow& counters = edit().counters(1);
    const uint64_t number = counters.arrival_next;
    put(counters.arrival_next, number + 1);
    if (command.route != nullptr) [[unlikely]]
        return apply_routed(command, number);
    uint64_t other = 0;
    if (const Reason reason = claim_refusal(command, &other); reason != Reason::kOk) {
        return reject_unaccepted(command, number, reason, other);
    }
    TermRows terms;
    if (const Reason reason = matcher().claim_comes(command, &terms); reason != Reason::kOk) {
        return reject_unaccepted(command, number, reason, 0);
    }
    shm::PoolRow& pool = edit().row(state.pools[command.pool], kPoolStates);
    put(pool.accepted_total, pool.accepted_total + 1);
    if (early_grants().may_stay_fresh(command)) return early_grants().stay_fresh(command, number);
    (void)accept(command, number, terms);
}

// S0.36. Where no member takes it, the first one's reason is told.
[[gnu::noinline]] void Claims::apply_routed(const Claim& command, uint64_t number) {
    const Route& route = *command.route;
    Claim claim = command;
    claim.route = nullptr;
    claim.pool = {};
    Reason first = command.refusal == Reason::kOk ? Reason::kNotFound : command.refusal;
    uint64_t first_other = 0;
    PoolId first_pool = {};
    const Ranking found = ranking(route);
    for (const uint32_t pool : found.ranked()) {
        claim.pool = pool;
        uint64_t other = 0;
        TermRows terms;
        Reason reason = claim_refusal(claim, &other);
        if (reason == Reason::kOk) reason = matcher().claim_comes(claim, &terms);
        if (reason == Reason::kOk) {
            shm::PoolRow& row = edit().row(state.pools[pool], kPoolStates);
            put(row.accepted_total, row.accepted_total + 1);
            if (early_grants().may_stay_fresh(claim)) {
                return early_grants().stay_fresh(claim, number);
            }
            (void)accept(claim, number, terms);
            return;
        }
        if (reason == Reason::kBacklogFull) {
            shm::PoolRow& full = edit().row(state.pools[pool], 1U << 6U);
            put(full.saturated_until_ns, sum_or_never(turn().now_ns, route.cool_down_ns));
        }
        if (!first_pool.is_none()) continue;
        first = reason;
        first_other = other;
        first_pool = pool;
    }
    claim.pool = first_pool;
    reject_unaccepted(claim, number, first, first_other);
}

// An accepted claim gets its row and waits for the pass.
uint32_t Claims::accept(const Claim& command, uint64_t number, const TermRows& terms) {
    const uint32_t row = free_rows().take_claim_row();
    shm::ClaimRow& claim = edit().fresh_row(state.claims[row]);
    assert(claim.state == ClaimState::kFree);
    const shm::PoolRow& pool = state.pools[command.pool];
    shm::SessionRow& session = edit().row(state.sessions[command.session], 1);
    put(claim.pool, command.pool);
    put(claim.session, command.session);
    put(claim.arrival, number);
    put(claim.deadline_ns, kNever);
    put(claim.user_data, command.user_data);
    put(claim.first_slot, kNoRow);
    put(claim.units, command.units);
    put(claim.confirmed, 0);
    put(claim.tag, command.tag);
    put(claim.attempts, 0);
    put(claim.priority, command.priority);
    put(claim.flags, flags_of(command, pool));
    if (wants_part(claim)) vectors().bring(row, command);
    std::memcpy(claim.key, command.key.data(), sizeof(claim.key));
    stored();
    put(claim.interval_ns, command.interval_ns);
    free_rows().hold_arena(command.session, command.payload.size());
    put(claim.payload, arena().store(command.payload));
    put(claim.payload_size, command.payload.size());
    free_rows().hold_arena(command.session, command.meta.size());
    const auto* meta = reinterpret_cast<const uint8_t*>(command.meta.data());
    put(claim.meta, arena().store({meta, command.meta.size()}));
    put(claim.meta_size, command.meta.size());
    put(claim.account, kNoRow);
    put(claim.room, command.room);
    put(claim.room_lines, command.room_lines);
    put(claim.label_set, kNoRow);
    put(claim.preferred_set, kNoRow);
    put(claim.task, kNoRow);
    put(claim.group, kNoRow);
    put(claim.enqueued_ns, command.brings_its_time() ? command.terms->enqueued_ns : turn().now_ns);
    const TimeNs deadline_ns = command.deadline_at(turn().now_ns);
    if (deadline_ns != kNever) {
        put(claim.deadline_ns, deadline_ns);
        turn().timers.set(TimerKind::kDeadline, row, claim.deadline_ns + 1, number);
    }
    put(session.claims, session.claims + 1);
    sessions().tags[command.session][command.tag] = row;
    add_key(command.session, claim.key, row);
    matcher().claim_accepted(row, command, terms);
    if (command.member != nullptr) return row;  // it is held
    matcher().backlog.forget_seat(command.pool, row);
    wait_in_backlog(row);
    return row;
}

// Before which claim of its pool's backlog its number puts one that is older than the last of them.
// Claims that come back are old, so the walk from the head is short; and where several do, in their
// order, each stands right behind the one before it.
uint32_t Claims::place_in_backlog(const shm::ClaimRow& claim) const {
    const auto before = [&](uint32_t at) {
        return at != kNoRow && state.claims[at].arrival < claim.arrival;
    };
    uint32_t at = matcher().backlog.head(claim.pool);
    const shm::ClaimRow& last = state.claims[matcher().last_seated];
    const bool still_waits = last.state == ClaimState::kWaiting && last.pool == claim.pool;
    if (still_waits && before(matcher().last_seated)) at = matcher().last_seated;
    while (before(at))
        at = matcher().backlog.next(at);
    return at;
}

// Into the backlog where its number puts it: a new claim at the tail.
void Claims::wait_in_backlog(uint32_t row) {
    shm::ClaimRow& claim = edit().row(state.claims[row], 1);
    assert(claim.state != ClaimState::kWaiting && claim.first_slot == kNoRow);
    shm::PoolRow& pool = edit().row(state.pools[claim.pool], kPoolHot);
    put(claim.state, ClaimState::kWaiting);
    put(pool.waiting, pool.waiting + 1);
    const uint32_t tail = matcher().backlog.tail(claim.pool);
    const bool is_older = tail != kNoRow && state.claims[tail].arrival > claim.arrival;
    parking().waiting_units[claim.pool] += claim.units;
    matcher().backlog.insert_before(claim.pool, row, is_older ? place_in_backlog(claim) : kNoRow);
    matcher().last_seated = row;
    if ((claim.flags & kImpatient) != 0) matcher().impatient.push_back(row);
    matcher().touch(claim.pool);
    matcher().claim_waits(row);
}

uint32_t Claims::unreserve(uint32_t row) {
    return is_several(state.claims[row]) ? several_pools().unreserve(row) : leave_slots(row);
}

uint32_t Claims::leave_slots(uint32_t row) {
    shm::ClaimRow& claim = edit().row(state.claims[row], 1);
    shm::PoolRow& pool = edit().row(state.pools[claim.pool], kPoolHot);
    const uint32_t first = claim.first_slot;
    assert(claim.confirmed <= claim.units);
    assert(first != kNoRow && free_rows().confirming_total != 0 && pool.confirming != 0);
    assert(claim.state == ClaimState::kReserved);
    assert(pool.unconfirmed >= uint32_t{claim.units} - claim.confirmed);
    put(pool.confirming, pool.confirming - 1);
    put(pool.unconfirmed, pool.unconfirmed - (uint32_t{claim.units} - claim.confirmed));
    put(claim.first_slot, kNoRow);
    put(claim.confirmed, 0);
    turn().timers.remove(TimerKind::kReservation, row);
    free_rows().lease_row_comes();
    --free_rows().confirming_total;
    matcher().claim_leaves_slots(row, first);
    matcher().touch(claim.pool);
    return first;
}

// After unreserve(): its seat in the backlog was never given up.
void Claims::wait_again(uint32_t row) {
    if (is_several(state.claims[row])) return several_pools().wait_again(row);
    if (state.claims[row].task != kNoRow) return gangs().wait_again(row);
    shm::ClaimRow& claim = edit().row(state.claims[row], 1);
    assert(claim.state == ClaimState::kReserved && claim.first_slot == kNoRow);
    put(claim.attempts, claim.attempts < 255 ? claim.attempts + 1 : 255);
    if (const Reason reason = pools().waits_for_nothing(row); reason != Reason::kOk) {
        return end_claim(row, Outcome::kRejected, reason, 0, true);
    }
    wait_in_backlog(row);
}

void Claims::name_holder(Decision* decision, uint32_t pool) const {
    const uint32_t oldest = leases().pool_leases.head(pool);
    if (oldest == kNoRow) return;
    const shm::LeaseRow& lease = state.leases[oldest];
    assert(lease.state != shm::LeaseState::kFree && lease.pool == pool);
    const shm::SessionRow& holder = state.sessions[lease.session];
    decision->holder_uid = holder.uid;
    decision->holder_pid = holder.pid;
    decision->holder_claim = lease.arrival;
    decision->holder_age_ns = turn().now_ns - lease.granted_ns;
}

// Ends a claim that waits, or that unreserve() has taken off its slots.
void Claims::end_claim(
    uint32_t any_row, Outcome outcome, Reason reason, uint64_t value, bool tell) {
    const uint32_t row = several_pools().first_claim(any_row);
    uint32_t wanted = state.claims[row].pool;
    if (is_several(state.claims[row])) {
        wanted = state.claims[several_pools().lacking_row(row)].pool;
        several_pools().end_further(row, outcome);
    }
    const shm::ClaimRow& claim = state.claims[row];
    assert(claim.state != ClaimState::kFree);
    assert(outcome != Outcome::kNone && outcome != Outcome::kGranted);
    if (claim.task != kNoRow) gangs().claim_ends(row, outcome, reason);
    matcher().claim_ends(row);
    count_end(claim.pool, outcome);
    Decision& end = turn().decide_that(DecisionKind::kEnd);
    end.outcome = outcome;
    end.reason = reason;
    end.session = tell ? claim.session : kNoRow;
    end.pool = claim.pool;
    end.tag = claim.tag;
    end.units = claim.units;
    end.claim = claim.arrival;
    end.user_data = claim.user_data;
    end.value = value;
    end.room = claim.room;
    if (outcome == Outcome::kExpired || reason == Reason::kBusy || reason == Reason::kCold) {
        name_holder(&end, wanted);
    }
    turn().timers.remove(TimerKind::kDeadline, row);
    assert(sessions().tags[claim.session][claim.tag] == row);
    sessions().tags[claim.session][claim.tag] = kTagFree;
    remove_key(claim.session, claim.key, row);
    shm::SessionRow& session = edit().row(state.sessions[claim.session], 1);
    assert(session.claims != 0);
    put(session.claims, session.claims - 1);
    matcher().touch(claim.pool);
    drop_claim(row);
}

void Claims::count_end(uint32_t pool_row, Outcome outcome) {
    shm::PoolRow& pool = edit().row(state.pools[pool_row], kPoolTotals);
    uint64_t& total = outcome == Outcome::kExpired     ? pool.expired_total
                      : outcome == Outcome::kCancelled ? pool.cancelled_total
                                                       : pool.rejected_total;
    put(total, total + 1);
}

// Its row and its texts.
void Claims::drop_claim(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    assert(claim.state != ClaimState::kFree);
    if (claim.payload != kNoRow) {
        free_rows().drop_arena(claim.session, claim.payload_size);
        arena().free(claim.payload, claim.payload_size);
    }
    if (claim.meta != kNoRow) {
        free_rows().drop_arena(claim.session, claim.meta_size);
        arena().free(claim.meta, claim.meta_size);
    }
    matcher().claim_goes(row);
    free_rows().free_claim_row(row);
}

void Claims::apply(const Cancel& command) {
    early_grants().settle_fresh();
    const std::vector<uint32_t>& own = sessions().tags[command.session];
    const uint32_t holder = command.tag < own.size() ? own[command.tag] : kTagFree;
    if (holder == kTagFree) {
        return turn().result(command.session, command.user_data, Reason::kNotFound);
    }
    if ((holder & kTagLease) != 0) {
        leases().result_of_end(command.session, command.user_data, holder & ~kTagLease);
        return leases().end_lease(holder & ~kTagLease, Reason::kOk, Tell::kNobody, false, kNoRow);
    }
    assert((holder & kTagFresh) == 0 && state.claims[holder].session == command.session);
    turn().result(command.session, command.user_data, Reason::kOk);
    const bool confirming = state.claims[holder].state == ClaimState::kReserved;
    const uint32_t first = confirming ? unreserve(holder) : kNoRow;
    end_claim(holder, Outcome::kCancelled, Reason::kOk, 0, true);
    slots().give_back_chain(first, false, false, kNoRow);
}

void Claims::claim_deadline(uint32_t row) {
    assert(turn().now_ns > state.claims[row].deadline_ns);
    assert(state.claims[row].state != ClaimState::kRunning);
    const bool confirming = state.claims[row].state == ClaimState::kReserved;
    const uint32_t first = confirming ? unreserve(row) : kNoRow;
    end_claim(row, Outcome::kExpired, Reason::kOk, 0, true);
    slots().give_back_chain(first, false, false, kNoRow);
}

// The workers that have not answered in time are unknown until they speak; the claim waits again.
void Claims::reservation_over(uint32_t row) {
    assert(state.claims[row].state == ClaimState::kReserved);
    assert(turn().now_ns >= state.claims[row].reserved_until_ns);
    uint32_t slot = unreserve(row);
    wait_again(row);
    while (slot != kNoRow) {
        const uint32_t next = state.slots[slot].holder_next;
        assert(state.slots[slot].state == SlotState::kReserved);
        if ((state.slots[slot].flags & shm::SlotFlag::kConfirmed) != 0) {
            slots().give_back(slot, true, false);
        } else {
            shm::SlotRow& silent = edit().row(state.slots[slot], 1);
            put(silent.holder, kNoRow);
            put(silent.flags, silent.flags | shm::SlotFlag::kTakenBack);
            if (slots().leaves(slot)) {
                slots().remove_slot(slot);
            } else {
                slots().move_slot(slot, SlotState::kUnknown);
            }
        }
        slot = next;
    }
}

}  // namespace dibs::core
