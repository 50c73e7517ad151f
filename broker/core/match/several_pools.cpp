// broker/core/match/several_pools.cpp -- lets claims over several pools wait, and serves them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/several_pools.hpp"

#include <algorithm>
#include <utility>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::ClaimState;

namespace {

// Makes a plain claim of it, of one of its pools, the first being 0.
void make_plain(Claim* claim, const Claim& command, size_t part) {
    claim->also = {};
    claim->pool = part == 0 ? command.pool : command.also[part - 1].pool;
    claim->units = part == 0 ? command.units : command.also[part - 1].units;
}

bool names_one_twice(const Claim& command) {
    for (size_t at = 0; at < command.also.size(); ++at) {
        const PoolId pool = command.also[at].pool;
        if (pool == command.pool) return true;
        const auto before = command.also.first(at);
        if (std::any_of(before.begin(), before.end(), [&](const PoolUnits& other) {
                return other.pool == pool;
            }))
            return true;
    }
    return false;
}

bool takes_several(const shm::PoolRow& pool) {
    return pool.order == shm::PoolOrder::kArrival && !has_resources(pool) &&
           pool.mode == shm::ExpiryMode::kCooperative;
}

}  // namespace

bool SeveralPools::lease_rows_left(uint32_t rows) const {
    return state.counters->leases_free >= free_rows().confirming_total + rows;
}

Reason SeveralPools::refusal(const Claim& command, uint64_t* other) const {
    if (command.refusal != Reason::kOk) return command.refusal;
    if (command.also.size() >= kPoolsMax || names_one_twice(command) || command.route != nullptr) {
        return Reason::kMalformed;
    }
    const bool wants_part = !command.least.empty() || !command.most.empty() || command.offer != 0;
    uint32_t units = 0;
    Claim one = command;
    for (size_t part = 0; part <= command.also.size(); ++part) {
        make_plain(&one, command, part);
        const bool lives = pools().pool_lives(one.pool);
        if (lives && (wants_part || !takes_several(state.pools[one.pool]))) return Reason::kState;
        const Reason reason = claims().claim_refusal(one, other);
        if (reason != Reason::kOk) return reason;
        units += one.units;
    }
    if (units > shm::kUnitsMax) return Reason::kTooManyUnits;
    const auto rows = static_cast<uint32_t>(command.also.size()) + 1;
    const bool fits = state.counters->claims_free >= rows && lease_rows_left(rows);
    return fits ? Reason::kOk : Reason::kTablesFull;
}

void SeveralPools::apply(const Claim& command) {
    early_grants().settle_fresh();
    shm::CountersRow& counters = edit().counters(1);
    const uint64_t number = counters.arrival_next;
    put(counters.arrival_next, number + 1);
    uint64_t other = 0;
    if (const Reason reason = refusal(command, &other); reason != Reason::kOk) {
        return claims().reject_unaccepted(command, number, reason, other);
    }
    accept(command, number);
}

// The last pool's row first, so that the tag is the first one's in the end. What the claim brings
// once is the first one's alone, and what it does when it cannot be served is as that pool says.
void SeveralPools::accept(const Claim& command, uint64_t number) {
    uint32_t next = kNoRow;
    Claim one = command;
    if (!one.when_busy_given) one.when_busy = state.pools[command.pool].when_busy;
    one.when_busy_given = true;
    one.key = {};
    one.payload = {};
    one.meta = {};
    one.by_word = false;
    one.deadline_ns = kNever;
    if (one.timeout_ns != 0) one.timeout_ns = kNever;
    for (size_t part = command.also.size() + 1; part-- != 0;) {
        make_plain(&one, command, part);
        shm::PoolRow& pool = edit().row(state.pools[one.pool], kPoolStates);
        put(pool.accepted_total, pool.accepted_total + 1);
        const uint32_t row = claims().accept(part == 0 ? command : one, number, {});
        shm::ClaimRow& claim = edit().row(state.claims[row], 1U | 1U << 2U);
        put(claim.flags, claim.flags | uint32_t{shm::ClaimFlag::kSeveral});
        put(claim.several_next, next);
        next = row;
        ++waiting;
        ++came;
    }
    for (uint32_t row = next; row != kNoRow; row = state.claims[row].several_next)
        put(edit().row(state.claims[row], 1U << 2U).several_first, next);
}

bool SeveralPools::can_serve(uint32_t claim) const {
    bool servable = true;
    uint32_t rows = 0;
    each(state.claims, claim, [&](uint32_t row) {
        const shm::ClaimRow& part = state.claims[row];
        servable = servable && matcher().backlog.head(part.pool) == row &&
                   matcher().servable(part.pool, part.units);
        ++rows;
    });
    return servable && lease_rows_left(rows);
}

// Counted pools alone grant at once. Else all slots are reserved, those without a worker as
// confirmed; the reservations end together, with the shortest.
void SeveralPools::serve(uint32_t claim) {
    const uint32_t first = first_claim(claim);
    goes_back = true;
    bool at_once = true;
    TimeNs ttl_ns = kNever;
    each(state.claims, first, [&](uint32_t row) {
        const shm::PoolRow& pool = state.pools[state.claims[row].pool];
        at_once = at_once && pool.kind == shm::PoolKind::kCounted;
        ttl_ns = std::min(ttl_ns, pool.reservation_ttl_ns);
        matcher().claim_stops_waiting(row);
        --waiting;
        const uint32_t of = state.claims[row].pool;
        turn().touched.add(of);
        // Where nothing stands behind it there is nothing to look at.
        const bool is_last = matcher().backlog.head(of) == kNoRow;
        is_last ? turn().dirty.remove(of) : turn().dirty.add(of);
    });
    Heads slots{};
    uint32_t part = 0;
    each(state.claims, first, [&](uint32_t row) {
        const shm::ClaimRow& of = state.claims[row];
        slots[part] = matcher().take_idle(
            of.pool, of.units, at_once ? SlotState::kLeased : SlotState::kReserved);
        if (!at_once) matcher().give(row, slots[part], SlotState::kReserved);
        ++part;
    });
    if (at_once) return grant(first, slots);
    const TimeNs now_ns = turn().now_ns;
    const TimeNs until_ns = ttl_ns < kNever - now_ns ? now_ns + ttl_ns : kNever;
    each(state.claims, first, [&](uint32_t row) {
        put(edit().row(state.claims[row], 1U << 1U).reserved_until_ns, until_ns);
        turn().timers.remove(TimerKind::kReservation, row);
    });
    turn().timers.set(TimerKind::kReservation, first, until_ns, state.claims[first].arrival);
}

// Where a claim over several pools was served or has ended, pools in order of arrival are looked at
// again, from the first one on.
bool SeveralPools::pass_over_all() {
    goes_back = true;
    uint32_t behind = 0;  // pools before it have been passed over
    while (std::exchange(goes_back, false)) {
        if (waiting != std::exchange(came, 0)) wake();
        for (uint32_t pool = turn().dirty.first(0); pool != kNoRow && !goes_back;
             pool = turn().dirty.first(pool + 1)) {
            if (pool < behind && !by_arrival(pool)) continue;
            behind = std::max(behind, pool + 1);
            matcher().looked_again = false;
            if (!matcher().pass_over(pool) && !goes_back) return false;
            if (!matcher().looked_again && !goes_back) turn().dirty.remove(pool);
        }
        if (!goes_back && !end_late()) return false;
    }
    return true;
}

// What stands first in a pool that is looked at is looked at in all its pools, so that it does not
// depend on which of them has changed in whose turn it is served.
void SeveralPools::wake() {
    std::vector<uint32_t>& first = turn().scratch;
    first.clear();
    for (uint32_t pool = turn().dirty.first(0); pool != kNoRow;
         pool = turn().dirty.first(pool + 1)) {
        const uint32_t head = matcher().backlog.head(pool);
        if (head == kNoRow || !is_several(state.claims[head])) continue;
        // Seen in its first pool, too, if it stands first there.
        const uint32_t of = state.claims[first_row_of(state.claims[head])].pool;
        if (of == pool || turn().dirty.first(of) != of) first.push_back(head);
    }
    for (const uint32_t claim : first)
        each(state.claims, claim, [&](uint32_t row) { turn().dirty.add(state.claims[row].pool); });
}

// Behind the pass those that do not wait end, until one was over several pools.
bool SeveralPools::end_late() {
    std::vector<uint32_t>& late = turn().scratch;
    late.clear();
    for (const uint32_t row : matcher().impatient) {
        const shm::ClaimRow& claim = state.claims[row];
        if (claim.state != ClaimState::kWaiting || (claim.flags & kImpatient) == 0) continue;
        if (!by_arrival(claim.pool)) continue;
        if (!is_further(claim, row)) late.push_back(row);
    }
    std::sort(late.begin(), late.end(), [&](uint32_t left, uint32_t right) {
        return state.claims[left].arrival < state.claims[right].arrival;
    });
    late.erase(std::unique(late.begin(), late.end()), late.end());
    for (const uint32_t row : late) {
        if (turn().full()) return false;
        goes_back = is_several(state.claims[row]);
        matcher().end_impatient(row);
        if (goes_back) break;
    }
    return true;
}

// Each grant stands behind the one before it. What it may be kept for is the least of the pools'.
void SeveralPools::grant(uint32_t first, const Heads& slots) {
    TimeNs interval_ns = state.claims[first].interval_ns;
    uint8_t pools = 0;
    each(state.claims, first, [&](uint32_t row) {
        interval_ns = std::min(interval_ns, state.pools[state.claims[row].pool].interval_max_ns);
        ++pools;
    });
    std::vector<uint32_t>& tags = sessions().tags[state.claims[first].session];
    const uint16_t tag = state.claims[first].tag;
    Heads rows{};
    uint8_t part = 0;
    each(state.claims, first, [&](uint32_t row) {
        if (state.claims[row].interval_ns != interval_ns) {
            put(edit().row(state.claims[row], 1U << 1U).interval_ns, interval_ns);
        }
        rows[part] = leases().grant(row, slots[part]);
        Decision& granted = turn().decisions.back();
        assert(granted.kind == DecisionKind::kGrant);
        granted.round = pools;
        granted.part = part++;
    });
    for (part = 0; part < pools; ++part) {
        shm::LeaseRow& lease = edit().row(state.leases[rows[part]], 1U << 1U | 1U << 2U);
        const uint64_t next = part + 1U < pools ? rows[part + 1U] : kNoRow;
        put(lease.several, pools);
        put(lease.takes, uint64_t{rows[0]} << 32U | next);
        if (part != 0 && interval_ns != 0) turn().timers.remove(TimerKind::kLease, rows[part]);
    }
    tags[tag] = rows[0] | kTagLease;
}

void SeveralPools::grant_confirmed(uint32_t claim) {
    const uint32_t first = first_claim(claim);
    bool all = true;
    each(state.claims, first, [&](uint32_t row) {
        all = all && state.claims[row].confirmed == state.claims[row].units;
    });
    if (!all) return;
    Heads slots{};
    uint32_t part = 0;
    each(state.claims, first, [&](uint32_t row) { slots[part++] = claims().leave_slots(row); });
    grant(first, slots);
}

// The one chain behind the other.
uint32_t SeveralPools::join(uint32_t first, uint32_t others) {
    if (first == kNoRow) return others;
    uint32_t last = first;
    while (state.slots[last].holder_next != kNoRow)
        last = state.slots[last].holder_next;
    put(edit().row(state.slots[last], 1).holder_next, others);
    return first;
}

uint32_t SeveralPools::unreserve(uint32_t claim) {
    uint32_t all = kNoRow;
    each(state.claims, claim, [&](uint32_t row) { all = join(all, claims().leave_slots(row)); });
    return all;
}

// Fresh claims are younger, and would be served before all that waits.
void SeveralPools::wait_again(uint32_t claim) {
    early_grants().settle_fresh();
    const uint32_t first = first_claim(claim);
    Reason reason = Reason::kOk;
    each(state.claims, first, [&](uint32_t row) {
        shm::ClaimRow& part = edit().row(state.claims[row], 1);
        put(part.attempts, part.attempts < 255 ? part.attempts + 1 : 255);
        if (reason == Reason::kOk) reason = pools().waits_for_nothing(row);
    });
    if (reason != Reason::kOk) {
        return claims().end_claim(first, Outcome::kRejected, reason, 0, true);
    }
    each(state.claims, first, [&](uint32_t row) {
        claims().wait_in_backlog(row);
        ++waiting;
    });
}

void SeveralPools::end_further(uint32_t claim, Outcome outcome) {
    const uint32_t first = first_claim(claim);
    came = 0;  // it may be one of them
    each(state.claims, first, [&](uint32_t row) {
        const shm::ClaimRow& part = state.claims[row];
        if (part.state == ClaimState::kWaiting) --waiting;
        if (row == first) return;
        matcher().claim_ends(row);
        claims().count_end(part.pool, outcome);
        shm::SessionRow& session = edit().row(state.sessions[part.session], 1);
        put(session.claims, session.claims - 1);
        matcher().touch(part.pool);
        claims().drop_claim(row);
    });
}

uint32_t SeveralPools::lacking_row(uint32_t claim) const {
    uint32_t found = kNoRow;
    each(state.claims, claim, [&](uint32_t row) {
        const shm::ClaimRow& part = state.claims[row];
        if (found == kNoRow && state.pools[part.pool].idle < part.units) found = row;
    });
    return found == kNoRow ? first_claim(claim) : found;
}

uint32_t SeveralPools::stopped_row(uint32_t claim) const {
    uint32_t found = kNoRow;
    each(state.claims, claim, [&](uint32_t row) {
        const shm::ClaimRow& part = state.claims[row];
        const bool goes = part.state == ClaimState::kReserved
                              ? part.confirmed == part.units
                              : matcher().backlog.head(part.pool) == row &&
                                    matcher().servable(part.pool, part.units);
        if (found == kNoRow && !goes) found = row;
    });
    return found == kNoRow ? first_claim(claim) : found;
}

uint32_t SeveralPools::held_back(uint32_t claim) const {
    uint32_t idle = 0;
    each(state.claims, claim, [&](uint32_t row) {
        const uint32_t pool = state.claims[row].pool;
        if (matcher().backlog.head(pool) == row) idle += state.pools[pool].idle;
    });
    return idle;
}

}  // namespace dibs::core
