// broker/core/recovery/row_invariants.cpp -- states what holds for each row, whatever others say.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/row_invariants.hpp"

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "broker/core/match/invariants.hpp"

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;
namespace SlotFlag = shm::SlotFlag;

namespace {

// A pool gives each fence out once.
bool is_of(const shm::SlotRow& slot, const shm::LeaseRow& lease) {
    return lease.pool == slot.pool && lease.fence == slot.fence;
}

// The states that a lease of this pool may have after its expiry or its preemption. That of a
// holder whose tree outlives it has become a strict one.
bool can_be(const shm::LeaseRow& lease, const shm::PoolRow& pool) {
    switch (lease.state) {
        case LeaseState::kGrace:
            return pool.mode == shm::ExpiryMode::kCooperative;
        case LeaseState::kExpired:
            return pool.mode == shm::ExpiryMode::kLazy;
        case LeaseState::kKilling:
            return lease.mode == shm::ExpiryMode::kStrict;
        case LeaseState::kRevoking:
            return may_preempt(pool);
        default:
            return true;
    }
}

bool has(const shm::SlotRow& slot, uint8_t flag) {
    return (slot.flags & flag) != 0;
}

uint32_t confirmed_slots(const State& state, const shm::ClaimRow& claim) {
    uint32_t confirmed = 0;
    for (uint32_t row = claim.first_slot; row != kNoRow; row = state.slots[row].holder_next)
        confirmed += has(state.slots[row], SlotFlag::kConfirmed) ? 1 : 0;
    return confirmed;
}

template <class Counts>
void add_each(Counts* to, const Counts& other) {
    for (size_t i = 0; i < other.size(); ++i) {
        if constexpr (std::is_integral_v<typename Counts::value_type>) {
            (*to)[i] += other[i];
        } else {
            add_each(&(*to)[i], other[i]);
        }
    }
}

}  // namespace

void RowInvariants::pool(uint32_t row) const {
    const shm::PoolRow& pool = state.pools[row];
    const Subject it(wrongs, "pool", name_of(pool));
    const bool is_gone = pool.state == shm::PoolState::kFree;
    const bool lives = !is_gone && pool.state != shm::PoolState::kGoing;
    const bool is_unused = pool.waiting == 0 && pool.confirming == 0 && pool.idle == pool.slots;
    it.expect_count("slots (conservation)",
                    uint64_t{pool.idle} + pool.reserved + pool.leased + pool.recovering +
                        pool.unknown + pool.shared + state.elastics[row].ordered,
                    pool.slots);
    it.expect((pool.ready_head == kNoRow) == (pool.idle == 0),
              "has a ready queue without idle slots, or the reverse");
    it.expect(lives || (is_unused && pool.slots_wanted == 0), "is gone and in use");
    it.expect(!is_gone || pool.slots == 0, "is gone and has slots");
    it.expect(lives || pool.kind == shm::PoolKind::kCounted || pool.slots == 0,
              "is going and has workers");
    it.expect(!may_preempt(pool) || pool.mode != shm::ExpiryMode::kLazy,
              "is ordered by account and collects lazily");
}

void RowInvariants::slot(uint32_t row) const {
    const shm::SlotRow& slot = state.slots[row];
    if (slot.state == SlotState::kFree) return;
    const shm::PoolRow& pool = state.pools[slot.pool];
    const Subject it(wrongs, "slot row", row);
    it.expect(slot.fence <= pool.fence_next, "has a fence that its pool has not given out");
    const bool is_workers = slot.session != kNoRow;
    it.expect(!is_workers || state.sessions[slot.session].state != shm::SessionState::kFree,
              "is of a worker whose session is gone");
    const bool is_counted = pool.kind == shm::PoolKind::kCounted;
    it.expect(!is_counted || (!is_workers && slot.name_size == 0),
              "is a worker's, in a pool that has none");
    const bool is_reported = takes_reports(pool) || state.elastics[slot.pool].dispatch != 0;
    it.expect(is_counted || is_workers || is_reported || slot.state == SlotState::kOrdered,
              "is nobody's, in a pool that takes no reports");
    it.expect(!is_withheld(slot) || has(slot, SlotFlag::kProtected),
              "is drained or held, and may be granted");

    const bool reserved = slot.state == SlotState::kReserved && slot.holder != kNoRow;
    const bool leased = slot.state == SlotState::kLeased;
    const bool killing = being_killed_for(slot);
    it.expect((leased || reserved) == (slot.holder != kNoRow) || killing,
              "and its holder disagree");
    if (reserved && slot.holder != kNoRow) {
        it.expect(state.claims[slot.holder].state == ClaimState::kReserved,
                  "is reserved for a claim that is not confirming");
    }
    if ((leased || killing) && slot.holder != kNoRow) {
        const shm::LeaseRow& lease = state.leases[slot.holder];
        it.expect(lease.state != LeaseState::kFree && is_of(slot, lease),
                  "is under a lease that is not its own");
        it.expect(leased || lease.state == LeaseState::kKilling,
                  "is recovering under a lease whose holder is not being killed");
    }

    if (slot.flags == 0) return;
    const bool recovering = slot.state == SlotState::kRecovering;
    // A mark of an earlier use would be taken for one of the next.
    it.expect(slot.state != SlotState::kIdle, "is idle and marked");
    it.expect(!has(slot, SlotFlag::kCollected) || (recovering && slot.holder == kNoRow),
              "is marked as collected and not recovering");
    it.expect(!has(slot, SlotFlag::kTakenBack) || is_taken_back(slot),
              "was taken back, and is in no state for that");
    it.expect(!is_taken_back(slot) || is_workers,
              "was taken back from a worker that nobody had asked");
    it.expect(!has(slot, SlotFlag::kSaidReady) || recovering,
              "waits for admission, not recovering");
    it.expect(!has(slot, SlotFlag::kSaidReady) || may_hold_over(pool) ||
                  has(slot, SlotFlag::kProtected | SlotFlag::kUnqualified),
              "has said ready, is not idle, and nothing stops it");
}

void RowInvariants::claim(uint32_t row) const {
    const shm::ClaimRow& claim = state.claims[row];
    if (claim.state == ClaimState::kFree) return;
    const Subject it(wrongs, "claim", claim.arrival);
    it.expect(claim.arrival < state.counters->arrival_next, "is from the future");
    const bool holds_slots =
        claim.state == ClaimState::kReserved || claim.state == ClaimState::kPromised;
    const bool locked = (claim.flags & shm::ClaimFlag::kLocked) != 0;
    it.expect(!locked || (state.elastics[claim.pool].workers_max != 0 && claim.priority > 0),
              "is locked, and can be in no line");
    it.expect(holds_slots || claim.first_slot == kNoRow, "waits or runs, and holds slots itself");
    if (claim.state == ClaimState::kRunning) {
        it.expect(claim.deadline_ns == kNever, "runs and has a deadline");
    } else if (claim.state == ClaimState::kReserved) {
        const uint32_t confirmed = confirmed_slots(state, claim);
        it.expect_count("confirmed slots", confirmed, claim.confirmed);
        const bool is_over = now_ns > claim.deadline_ns;  // its timer is on its way
        it.expect(confirmed < claim.units || is_over || is_several(claim),
                  "is confirmed by all and not granted");
    }
    if (is_several(claim)) several(claim, row);
}

// Of a claim over several pools: no part is held while another one waits.
void RowInvariants::several(const shm::ClaimRow& claim, uint32_t row) const {
    const Subject it(wrongs, "claim over several pools", claim.arrival);
    const shm::ClaimRow& first = state.claims[claim.several_first];
    it.expect(claim.deadline_ns == kNever || claim.several_first == row,
              "has a deadline for one of its pools");
    if (claim.state != ClaimState::kReserved || claim.several_first != row) return;
    bool is_over = now_ns > claim.deadline_ns;
    for (uint32_t at = row; at != kNoRow; at = state.claims[at].several_next) {
        const shm::ClaimRow& part = state.claims[at];
        it.expect(part.reserved_until_ns == first.reserved_until_ns, "is reserved for two times");
        is_over = is_over || part.confirmed < part.units;
    }
    it.expect(is_over, "is confirmed by all and not granted");
}

void RowInvariants::several(const shm::LeaseRow& lease) const {
    const Subject it(wrongs, "lease over several pools of claim", lease.arrival);
    const shm::LeaseRow& first = state.leases[first_row_of(lease)];
    it.expect(lease.expires_ns == first.expires_ns && lease.interval_ns == first.interval_ns &&
                  lease.grace_until_ns == first.grace_until_ns && lease.mode == first.mode,
              "ends at two times");
    constexpr uint32_t kOfOne = shm::LeaseFlag::kMayPark | shm::LeaseFlag::kTakesSeen;
    it.expect((lease.flags & kOfOne) == 0, "is parked, or was");
}

void RowInvariants::lease(uint32_t row) const {
    const shm::LeaseRow& lease = state.leases[row];
    if (lease.state == LeaseState::kFree) return;
    const shm::PoolRow& pool = state.pools[lease.pool];
    const Subject it(wrongs, "lease of claim", lease.arrival);
    it.expect(lease.granted_ns <= now_ns, "was granted at a time to come");
    it.expect(lease.fence <= pool.fence_next, "has a fence that its pool has not given out");
    const bool outlived = state.sessions[lease.session].state != shm::SessionState::kOpen &&
                          lease.mode == shm::ExpiryMode::kStrict;
    it.expect((lease.mode == pool.mode || outlived) && can_be(lease, pool),
              "ends in another way than its pool's do");
    constexpr uint32_t kOfParked = shm::LeaseFlag::kParked | shm::LeaseFlag::kWanted;
    it.expect((lease.flags & kOfParked) == 0 || (lease.flags & shm::LeaseFlag::kMayPark) != 0,
              "is parked or wanted, and may not be");
    if (is_several(lease)) several(lease);
}

void RowCounts::add(const RowCounts& other) {
    assert(pools.size() == other.pools.size() && sessions.size() == other.sessions.size());
    const size_t room = kWrongsMax - std::min(wrongs.size(), kWrongsMax);
    wrongs.insert(
        wrongs.end(),
        other.wrongs.begin(),
        other.wrongs.begin() + static_cast<ptrdiff_t>(std::min(room, other.wrongs.size())));
    add_each(&pools, other.pools);
    add_each(&sessions, other.sessions);
    add_each(&tables, other.tables);
    slots_with_text.insert(
        slots_with_text.end(), other.slots_with_text.begin(), other.slots_with_text.end());
}

void RowCounts::slot(const State& state, uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    if (slot.state == SlotState::kFree) return;
    ++tables[kLiveSlots];
    if (slot.session != kNoRow && slot.part_of == kNoRow) ++sessions[slot.session][kSlotsOf];
    if (slot.attributes != kNoRow) slots_with_text.push_back(row);
    if (slot.name_size != 0) ++tables[kSlotNames];
    if (is_kept(slot)) ++tables[kKeptSlots];
    auto& pool = pools[slot.pool];
    ++pool[static_cast<size_t>(slot.state)];
    if (is_drained(slot)) ++pool[kDrainedSlots];
    if (slot.part_of != kNoRow) ++pool[kParts];
    if (being_killed_for(slot)) ++pool[kKilledSlots];
    if (has(slot, SlotFlag::kCollected)) ++pool[kCollectedSlots];
}

void RowCounts::claim(const State& state, uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    ++tables[kLiveClaims];
    if (claim.state == ClaimState::kRunning) return;  // its lease stands for it
    const bool is_ask = claim.session == kNoRow;      // for placeholders: nobody's
    if (!is_ask) ++sessions[claim.session][kClaimsOf];
    const bool is_first = !is_further(claim, row);
    if (!is_first) ++sessions[claim.session][kFurtherOf];
    if (claim.deadline_ns != kNever) ++tables[kTimers];
    if (key_given(claim.key)) ++tables[kKeys];
    auto& pool = pools[claim.pool];
    if (is_ask) ++pool[kAsks];
    if (claim.state == ClaimState::kHeld) {
        ++pool[kHeldClaims];
        return;
    }
    if (claim.state == ClaimState::kPromised) ++tables[kPromisedClaims];
    if (claim.state != ClaimState::kReserved) {
        ++pool[kWaitingClaims];
        return;
    }
    if (is_first) ++tables[kTimers];
    ++pool[kConfirmingClaims];
    pool[kUnconfirmedSlots] += uint32_t{claim.units} - claim.confirmed;
}

void RowCounts::lease(const State& state, uint32_t row) {
    const shm::LeaseRow& lease = state.leases[row];
    if (lease.state == LeaseState::kFree) return;
    ++tables[kLiveLeases];
    ++sessions[lease.session][kLeasesOf];
    pools[lease.pool][kUnitsLeased] += lease.units;
    if (lease.state == LeaseState::kExpired) ++pools[lease.pool][kExpiredLeases];
    if ((lease.flags & shm::LeaseFlag::kParked) != 0) ++pools[lease.pool][kParkedLeases];
    if (is_further(lease, row)) {
        ++sessions[lease.session][kFurtherOf];
        return;
    }
    const bool timed = lease.state == LeaseState::kLive || lease.state == LeaseState::kGrace;
    const bool revoking = lease.state == LeaseState::kRevoking;
    if (revoking || (timed && lease.expires_ns != kNever)) ++tables[kTimers];
    if (key_given(lease.key)) ++tables[kKeys];
}

// Both tables are larger than any cache, and mostly a lease stands about where its slots do: so
// they are gone through side by side.
std::string RowLook::piece(uint32_t begin, uint32_t end) {
    assert(begin <= end);
    std::string unsound = soundness_.rows(begin, end);
    if (!unsound.empty()) return unsound;
    slots(begin, std::min(end, state_.slots.size()));
    leases(begin, std::min(end, state_.leases.size()));
    return {};
}

[[gnu::flatten]] void RowLook::slots(uint32_t begin, uint32_t end) {
    const RowInvariants invariants{state_, now_ns_, &counts_.wrongs};
    for (uint32_t row = begin; row < end; ++row) {
        if (end - row > kCheckAhead) state_.leases.fetch(state_.slots[row + kCheckAhead].holder);
        state_.slots.fetch_line<3>(row + kPiecesAhead * (end - begin));
        invariants.slot(row);
        counts_.slot(state_, row);
    }
}

[[gnu::flatten]] void RowLook::leases(uint32_t begin, uint32_t end) {
    const RowInvariants invariants{state_, now_ns_, &counts_.wrongs};
    for (uint32_t row = begin; row < end; ++row) {
        invariants.lease(row);
        counts_.lease(state_, row);
    }
}

}  // namespace dibs::core
