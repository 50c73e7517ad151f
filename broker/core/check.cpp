// broker/core/check.cpp -- check_all(): the invariants, over rows and over what is derived.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/check.hpp"

#include <algorithm>

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;
using shm::SessionState;
namespace SlotFlag = shm::SlotFlag;

namespace {

template <class Row>
void check_free_list(
    Wrongs* wrongs, const char* table, const Rows<Row>& rows, uint32_t head, uint32_t count) {
    uint32_t found = 0;
    uint32_t row = head;
    for (; row != kNoRow && found < rows.size(); row = rows[row].head.free_next) {
        if (row >= rows.size()) break;
        rows.fetch(row + kCheckAhead);  // what was never in use stands in its order
        expect(wrongs, static_cast<int>(rows[row].state) == 0, [&] {
            return std::string{table} + " row " + std::to_string(row) + " is free and in use";
        });
        ++found;
    }
    expect(
        wrongs, row == kNoRow, [&] { return std::string{table} + ": the free list does not end"; });
    expect_count(
        wrongs, [&] { return std::string{table} + " free rows"; }, found, count);
}

}  // namespace

void Check::free_lists(bool but_claims) {
    const shm::CountersRow& counters = *state_.counters;
    check_free_list(&wrongs_, "slot", state_.slots, counters.slots_free_head, counters.slots_free);
    if (!but_claims) {
        check_free_list(
            &wrongs_, "claim", state_.claims, counters.claims_free_head, counters.claims_free);
    }
    check_free_list(
        &wrongs_, "lease", state_.leases, counters.leases_free_head, counters.leases_free);
    check_free_list(
        &wrongs_, "session", state_.sessions, counters.sessions_free_head, counters.sessions_free);
}

// A free list that ends after as many rows as are counted has named so many rows, each of them
// free: once all others have been met, what follows in the table has been looked at already.
uint64_t Check::rows_in_use(uint64_t rows, uint64_t free) const {
    return wrongs_.empty() && free <= rows ? rows - free : rows;
}

// Whatever is not free was met on the way through its table.
void Check::live_rows() {
    const shm::CountersRow& counters = *state_.counters;
    const auto expect_rows = [&](const char* table, uint64_t live, uint64_t free, uint64_t rows) {
        expect_count(
            &wrongs_, [&] { return std::string{table} + " rows"; }, live + free, rows);
    };
    expect_rows("slot", live_slots_, counters.slots_free, state_.slots.size());
    expect_rows("claim", live_claims_.size(), counters.claims_free, state_.claims.size());
    expect_rows("lease", live_leases_, counters.leases_free, state_.leases.size());
    uint64_t sessions = 0;
    for (uint32_t row = 0; row < state_.sessions.size(); ++row)
        sessions += state_.sessions[row].state != SessionState::kFree ? 1 : 0;
    expect_rows("session", sessions, counters.sessions_free, state_.sessions.size());
}

void Check::begin(Seen seen) {
    seen_ = seen;
    free_lists(seen.free_claims);
    census_.resize(state_.counters->pools);
    held_by_.resize(state_.sessions.size());
    leased_.resize(census_.size());
    slots_used_ = rows_in_use(state_.slots.size(), state_.counters->slots_free);
    leases_used_ = rows_in_use(state_.leases.size(), state_.counters->leases_free);
}

void Check::slots_and_leases(uint32_t begin, uint32_t end) {
    if (live_slots_ < slots_used_) slots(begin, std::min(end, state_.slots.size()));
    if (live_leases_ < leases_used_) leases(begin, std::min(end, state_.leases.size()));
}

void Check::slots(uint32_t begin, uint32_t end) {
    for (uint32_t row = begin; row < end; ++row) {
        const shm::SlotRow& slot = state_.slots[row];
        if (end - row > kCheckAhead) state_.leases.fetch(state_.slots[row + kCheckAhead].holder);
        state_.slots.fetch_line<3>(row + (end - begin));
        if (slot.state == SlotState::kFree) continue;
        ++live_slots_;
        const auto who = [&] { return slot_text(row); };
        if (slot.session < held_by_.size()) ++held_by_[slot.session].slots;
        if (slot.attributes != kNoRow) slots_with_text_.push_back(row);
        if (slot.pool >= census_.size()) {
            wrongs_.push_back(who() + " names a pool that is not there");
            continue;
        }
        ++census_[slot.pool].by_state[static_cast<size_t>(slot.state)];
        if (slot.name_size != 0) ++names_wanted_;
        const shm::PoolRow& pool = state_.pools[slot.pool];
        expect(&wrongs_, slot.fence <= pool.fence_next, [&] {
            return who() + " has a fence that its pool has not given out";
        });
        const bool attached =
            pool.kind == shm::PoolKind::kWorker && pool.order != shm::PoolOrder::kAccount;
        expect(&wrongs_, !attached || slot.session != kNoRow, [&] {
            return who() + " is nobody's, in a pool that takes no reports";
        });
        const bool counted = pool.kind == shm::PoolKind::kCounted;
        expect(&wrongs_, !counted || (slot.session == kNoRow && slot.name_size == 0), [&] {
            return who() + " is a worker's, in a pool that has none";
        });
        if (slot.flags != 0) marked_slot(row);
        held_slot(row);
    }
}

// What a slot's marks say of it.
void Check::marked_slot(uint32_t row) {
    const shm::SlotRow& slot = state_.slots[row];
    const auto who = [&] { return slot_text(row); };
    if ((slot.flags & SlotFlag::kCollected) != 0) {
        ++census_[slot.pool].collected;
        expect(&wrongs_, slot.state == SlotState::kRecovering && slot.holder == kNoRow, [&] {
            return who() + " is marked as collected and not recovering";
        });
    }
    if (is_kept(slot)) ++kept_wanted_;
    const bool marked = (slot.flags & (SlotFlag::kKept | SlotFlag::kTakenBack)) != 0;
    expect(&wrongs_, !marked || is_kept(slot) || is_taken_back(slot), [&] {
        return who() + " is kept or was taken back, and is in no state for that";
    });
    expect(&wrongs_, !is_taken_back(slot) || slot.session != kNoRow, [&] {
        return who() + " was taken back from a worker that nobody had asked";
    });
    const bool said_ready = (slot.flags & SlotFlag::kSaidReady) != 0;
    expect(&wrongs_, !said_ready || slot.state == SlotState::kRecovering, [&] {
        return who() + " waits for admission, not recovering";
    });
    // In a pool ordered by account it may be held over for a claim: the book's check knows.
    const bool stopped = (slot.flags & (SlotFlag::kProtected | SlotFlag::kUnqualified)) != 0;
    expect(&wrongs_, !said_ready || stopped || parts_.by_account(slot.pool), [&] {
        return who() + " has said ready, is not idle, and nothing stops it";
    });
    // A mark of an earlier use would be taken for one of the next.
    expect(&wrongs_, slot.state != SlotState::kIdle, [&] {
        return who() + " is idle and marked (flags " + std::to_string(slot.flags) + ")";
    });
}

namespace {

// A pool gives each fence out once.
bool is_of(const shm::SlotRow& slot, const shm::LeaseRow& lease) {
    return lease.pool == slot.pool && lease.fence == slot.fence;
}

}  // namespace

// By whom, and does its holder say so.
void Check::held_slot(uint32_t row) {
    const shm::SlotRow& slot = state_.slots[row];
    const auto who = [&] { return slot_text(row); };
    const bool reserved = slot.state == SlotState::kReserved && !is_kept(slot);
    const bool leased = slot.state == SlotState::kLeased;
    expect(&wrongs_,
           (leased || reserved) == (slot.holder != kNoRow) || being_killed_for(slot),
           [&] { return who() + " and its holder disagree"; });
    if (leased && slot.holder < state_.leases.size()) {
        const shm::LeaseRow& lease = state_.leases[slot.holder];
        expect(&wrongs_, lease.state != LeaseState::kFree && is_of(slot, lease), [&] {
            return who() + " is leased under a lease that is not its own";
        });
    } else if (reserved && slot.holder < state_.claims.size()) {
        expect(&wrongs_, state_.claims[slot.holder].state == ClaimState::kReserved, [&] {
            return who() + " is reserved for a claim that is not confirming";
        });
    } else if (being_killed_for(slot) && slot.holder < state_.leases.size()) {
        ++census_[slot.pool].killed;
        const shm::LeaseRow& lease = state_.leases[slot.holder];
        expect(&wrongs_, lease.state == LeaseState::kKilling, [&] {
            return who() + " is recovering under a lease whose holder is not being killed";
        });
        expect(&wrongs_, is_of(slot, lease), [&] {
            return who() + " is recovering under a lease that is not its own";
        });
    }
}

uint32_t Check::chain_length(uint32_t first,
                             uint32_t holder,
                             SlotState state,
                             uint32_t* confirmed) {
    uint32_t length = 0;
    for (uint32_t row = first; row != kNoRow && length <= shm::kUnitsMax;
         row = state_.slots[row].holder_next) {
        if (row >= state_.slots.size()) return 0;
        const shm::SlotRow& slot = state_.slots[row];
        if (slot.holder != holder || slot.state != state) return 0;
        if ((slot.flags & SlotFlag::kConfirmed) != 0) ++*confirmed;
        ++length;
    }
    return length;
}

void Check::claims() {
    const uint64_t rows = rows_in_use(state_.claims.size(), state_.counters->claims_free);
    for (uint32_t row = 0; row < state_.claims.size() && live_claims_.size() < rows; ++row) {
        const shm::ClaimRow& claim = state_.claims[row];
        if (claim.state == ClaimState::kFree) continue;
        live_claims_.push_back(row);
        const auto who = [&] { return "claim " + std::to_string(claim.arrival); };
        if (claim.pool >= census_.size() || claim.session >= state_.sessions.size()) {
            wrongs_.push_back(who() + " names a pool or session that is not there");
            continue;
        }
        expect(&wrongs_, claim.arrival < state_.counters->arrival_next, [&] {
            return who() + " is from the future";
        });
        if (claim.state == ClaimState::kRunning) {  // its lease stands for it
            expect(&wrongs_, parts_.by_account(claim.pool), [&] {
                return who() + " runs in a pool without accounts";
            });
            expect(&wrongs_, claim.deadline_ns == kNever, [&] {
                return who() + " runs and has a deadline";
            });
            expect(&wrongs_, claim.first_slot == kNoRow, [&] {
                return who() + " runs and holds slots beside its lease";
            });
            continue;
        }
        ++held_by_[claim.session].claims;
        expect(&wrongs_,
               parts_.tags[claim.session].size() > claim.tag &&
                   parts_.tags[claim.session][claim.tag] == row,
               [&] { return who() + " is not under its tag"; });
        if (claim.deadline_ns != kNever) ++timers_wanted_;
        if (key_given(claim.key)) ++keys_wanted_;
        Census& census = census_[claim.pool];
        if (claim.state == ClaimState::kPromised) {
            ++census.waiting;
            ++promised_;
            continue;
        }
        if (claim.state == ClaimState::kWaiting) {
            ++census.waiting;
            expect(&wrongs_, claim.first_slot == kNoRow, [&] {
                return who() + " waits and holds slots";
            });
            continue;
        }
        ++census.confirming;
        ++timers_wanted_;
        uint32_t confirmed = 0;
        const uint32_t length =
            chain_length(claim.first_slot, row, SlotState::kReserved, &confirmed);
        expect_count(
            &wrongs_, [&] { return who() + " reserved slots"; }, length, claim.units);
        expect_count(
            &wrongs_, [&] { return who() + " confirmed slots"; }, confirmed, claim.confirmed);
        const bool is_over = parts_.now_ns > claim.deadline_ns;  // its timer is on its way
        expect(&wrongs_, confirmed < claim.units || is_over, [&] {
            return who() + " is confirmed by all and not granted";
        });
        census.unconfirmed += uint32_t{claim.units} - claim.confirmed;
    }
}

namespace {

// Where a lease of this pool comes to when its time is over, or somebody else's has come.
bool can_be(LeaseState state, const shm::PoolRow& pool) {
    switch (state) {
        case LeaseState::kGrace:
            return pool.mode == shm::ExpiryMode::kCooperative;
        case LeaseState::kExpired:
            return pool.mode == shm::ExpiryMode::kLazy;
        case LeaseState::kKilling:
            return pool.mode == shm::ExpiryMode::kStrict;
        case LeaseState::kRevoking:
            return pool.order == shm::PoolOrder::kAccount;
        default:
            return true;
    }
}

}  // namespace

void Check::leases(uint32_t begin, uint32_t end) {
    for (uint32_t row = begin; row < end; ++row) {
        const shm::LeaseRow& lease = state_.leases[row];
        if (!seen_.lease_chains && end - row > kCheckAhead)
            state_.slots.fetch(state_.leases[row + kCheckAhead].first_slot);
        if (lease.state == LeaseState::kFree) continue;
        ++live_leases_;
        const auto who = [&] { return "lease of claim " + std::to_string(lease.arrival); };
        if (lease.pool >= census_.size() || lease.session >= state_.sessions.size()) {
            wrongs_.push_back(who() + " names a pool or session that is not there");
            continue;
        }
        ++held_by_[lease.session].leases;
        expect(&wrongs_,
               parts_.tags[lease.session].size() > lease.tag &&
                   parts_.tags[lease.session][lease.tag] == (row | Core::Parts::kTagLease),
               [&] { return who() + " is not under its tag"; });
        expect(&wrongs_, lease.granted_ns <= parts_.now_ns, [&] {
            return who() + " was granted at a time to come";
        });
        const shm::PoolRow& pool = state_.pools[lease.pool];
        expect(&wrongs_, lease.fence <= pool.fence_next, [&] {
            return who() + " has a fence that its pool has not given out";
        });
        expect(&wrongs_, lease.mode == pool.mode && can_be(lease.state, pool), [&] {
            return who() + " ends in another way than its pool's do";
        });
        const bool killing = lease.state == LeaseState::kKilling;
        const SlotState held = killing ? SlotState::kRecovering : SlotState::kLeased;
        uint32_t confirmed = 0;
        if (!seen_.lease_chains) {
            expect_count(
                &wrongs_,
                [&] { return who() + " slots"; },
                chain_length(lease.first_slot, row, held, &confirmed),
                lease.units);
        }
        leased_[lease.pool] += lease.units;
        if (lease.state == LeaseState::kExpired) ++census_[lease.pool].expired;
        const bool timed = lease.state == LeaseState::kLive || lease.state == LeaseState::kGrace;
        const bool revoking = lease.state == LeaseState::kRevoking;
        if (revoking || (timed && lease.expires_ns != kNever)) ++timers_wanted_;
        if (key_given(lease.key)) ++keys_wanted_;
    }
}

void Check::leased_slots() {
    for (uint32_t pool = 0; pool < leased_.size(); ++pool) {
        expect_count(
            &wrongs_,
            [&] { return name_of(state_.pools[pool]) + " slots under leases"; },
            leased_[pool],
            census_[pool].by_state[static_cast<size_t>(SlotState::kLeased)] + census_[pool].killed);
    }
}

void Check::sessions() {
    for (uint32_t row = 0; row < held_by_.size(); ++row) {
        const Held& held = held_by_[row];
        const shm::SessionRow& session = state_.sessions[row];
        const auto who = [&] { return "session row " + std::to_string(row); };
        if (session.state == SessionState::kFree) {
            expect(&wrongs_, held.claims + held.leases + held.slots == 0, [&] {
                return who() + " is free and holds something";
            });
            continue;
        }
        expect_count(
            &wrongs_, [&] { return who() + " claims"; }, held.claims, session.claims);
        expect_count(
            &wrongs_, [&] { return who() + " leases"; }, held.leases, session.leases);
        expect_count(
            &wrongs_, [&] { return who() + " slots"; }, held.slots, session.slots);
        uint64_t used = 0;
        for (const uint32_t tag : parts_.tags[row])
            used += tag != Core::Parts::kTagFree ? 1 : 0;
        expect_count(
            &wrongs_, [&] { return who() + " tags"; }, used, uint64_t{held.claims} + held.leases);
    }
}

void Check::derived() {
    uint64_t confirming = 0;
    for (const Census& census : census_)
        confirming += census.confirming;
    expect_count(
        &wrongs_,
        [] { return std::string("confirming claims"); },
        confirming + promised_,
        parts_.confirming_total);
    expect_count(
        &wrongs_, [] { return std::string("timers"); }, timers_wanted_, parts_.timers.size());
    expect_count(
        &wrongs_, [] { return std::string("kept slots"); }, kept_wanted_, parts_.kept_slots.size());
    expect_count(
        &wrongs_, [] { return std::string("keys"); }, keys_wanted_, parts_.keys.size());
    expect_count(
        &wrongs_, [] { return std::string("slot names"); }, names_wanted_, parts_.names.size());
}

std::vector<std::string> Core::Parts::check_all() const {
    return Check{*this}.run();
}

}  // namespace dibs::core
