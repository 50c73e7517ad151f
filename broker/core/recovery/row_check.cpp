// broker/core/recovery/row_check.cpp -- checks each slot and lease against the rows that it names.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/row_check.hpp"

#include <algorithm>

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;
namespace SlotFlag = shm::SlotFlag;

namespace {

template <class Number>
void add_each(std::vector<Number>* to, const std::vector<Number>& other) {
    for (size_t i = 0; i < other.size(); ++i)
        (*to)[i] += other[i];
}

std::string slot_text(uint32_t row) {
    return "slot row " + std::to_string(row);
}

}  // namespace

void RowCounts::add(const RowCounts& other) {
    for (const std::string& wrong : other.wrongs)
        expect(&wrongs, false, [&] { return wrong; });
    add_each(&census, other.census);
    add_each(&held_by, other.held_by);
    add_each(&leased, other.leased);
    slots_with_text.insert(
        slots_with_text.end(), other.slots_with_text.begin(), other.slots_with_text.end());
    live_slots += other.live_slots;
    live_leases += other.live_leases;
    timers_wanted += other.timers_wanted;
    kept_wanted += other.kept_wanted;
    keys_wanted += other.keys_wanted;
    names_wanted += other.names_wanted;
}

void RowCheck::piece(uint32_t begin, uint32_t end) {
    slots(std::min(begin, state_.slots.size()), std::min(end, state_.slots.size()));
    leases(std::min(begin, state_.leases.size()), std::min(end, state_.leases.size()));
}

void RowCheck::all(uint64_t slots, uint64_t leases) {
    const uint32_t rows = std::max(state_.slots.size(), state_.leases.size());
    const auto left = [&] { return counts_.live_slots < slots || counts_.live_leases < leases; };
    for (uint32_t row = 0; row < rows && left(); row += Core::kRowsAtOnce)
        piece(row, row + Core::kRowsAtOnce);
}

void RowCheck::slots(uint32_t begin, uint32_t end) {
    for (uint32_t row = begin; row < end; ++row) {
        const shm::SlotRow& slot = state_.slots[row];
        if (end - row > kCheckAhead) state_.leases.fetch(state_.slots[row + kCheckAhead].holder);
        state_.slots.fetch_line<3>(row + kPiecesAhead * (end - begin));
        if (slot.state == SlotState::kFree) continue;
        ++counts_.live_slots;
        const auto who = [&] { return slot_text(row); };
        if (slot.session < counts_.held_by.size()) ++counts_.held_by[slot.session].slots;
        if (slot.attributes != kNoRow) counts_.slots_with_text.push_back(row);
        if (slot.pool >= counts_.census.size()) {
            counts_.wrongs.push_back(who() + " names a pool that is not there");
            continue;
        }
        ++counts_.census[slot.pool].by_state[static_cast<size_t>(slot.state)];
        if (slot.name_size != 0) ++counts_.names_wanted;
        const shm::PoolRow& pool = state_.pools[slot.pool];
        expect(&counts_.wrongs, slot.fence <= pool.fence_next, [&] {
            return who() + " has a fence that its pool has not given out";
        });
        const bool attached =
            pool.kind == shm::PoolKind::kWorker && pool.order != shm::PoolOrder::kAccount;
        expect(&counts_.wrongs, !attached || slot.session != kNoRow, [&] {
            return who() + " is nobody's, in a pool that takes no reports";
        });
        const bool counted = pool.kind == shm::PoolKind::kCounted;
        expect(&counts_.wrongs, !counted || (slot.session == kNoRow && slot.name_size == 0), [&] {
            return who() + " is a worker's, in a pool that has none";
        });
        if (is_drained(slot)) ++counts_.census[slot.pool].drained;
        const bool is_stopped = (slot.flags & SlotFlag::kProtected) != 0;
        expect(&counts_.wrongs, is_stopped || !is_drained(slot), [&] {
            return who() + " is drained and may be granted";
        });
        if (slot.flags != 0) marked_slot(row);
        if (is_kept(slot)) ++counts_.kept_wanted;
        held_slot(row);
    }
}

// What a slot's marks say of it.
void RowCheck::marked_slot(uint32_t row) {
    const shm::SlotRow& slot = state_.slots[row];
    const auto who = [&] { return slot_text(row); };
    if ((slot.flags & SlotFlag::kCollected) != 0) {
        ++counts_.census[slot.pool].collected;
        expect(&counts_.wrongs, slot.state == SlotState::kRecovering && slot.holder == kNoRow, [&] {
            return who() + " is marked as collected and not recovering";
        });
    }
    const bool marked = (slot.flags & SlotFlag::kTakenBack) != 0;
    expect(&counts_.wrongs, !marked || is_taken_back(slot), [&] {
        return who() + " was taken back, and is in no state for that";
    });
    expect(&counts_.wrongs, !is_taken_back(slot) || slot.session != kNoRow, [&] {
        return who() + " was taken back from a worker that nobody had asked";
    });
    const bool said_ready = (slot.flags & SlotFlag::kSaidReady) != 0;
    expect(&counts_.wrongs, !said_ready || slot.state == SlotState::kRecovering, [&] {
        return who() + " waits for admission, not recovering";
    });
    const bool by_account = state_.pools[slot.pool].order == shm::PoolOrder::kAccount;
    // In a pool ordered by account it may be held over for a claim: the book's check knows.
    const bool stopped = (slot.flags & (SlotFlag::kProtected | SlotFlag::kUnqualified)) != 0;
    expect(&counts_.wrongs, !said_ready || stopped || by_account, [&] {
        return who() + " has said ready, is not idle, and nothing stops it";
    });
    // A mark of an earlier use would be taken for one of the next.
    expect(&counts_.wrongs, slot.state != SlotState::kIdle, [&] {
        return who() + " is idle and marked (flags " + std::to_string(slot.flags) + ")";
    });
}

namespace {

// A pool gives each fence out once.
bool is_of(const shm::SlotRow& slot, const shm::LeaseRow& lease) {
    return lease.pool == slot.pool && lease.fence == slot.fence;
}

}  // namespace

// Checks the holder, and that the holder's row agrees.
void RowCheck::held_slot(uint32_t row) {
    const shm::SlotRow& slot = state_.slots[row];
    const auto who = [&] { return slot_text(row); };
    const bool reserved = slot.state == SlotState::kReserved && !is_kept(slot);
    const bool leased = slot.state == SlotState::kLeased;
    expect(&counts_.wrongs,
           (leased || reserved) == (slot.holder != kNoRow) || being_killed_for(slot),
           [&] { return who() + " and its holder disagree"; });
    if (leased && slot.holder < state_.leases.size()) {
        const shm::LeaseRow& lease = state_.leases[slot.holder];
        expect(&counts_.wrongs, lease.state != LeaseState::kFree && is_of(slot, lease), [&] {
            return who() + " is leased under a lease that is not its own";
        });
    } else if (reserved && slot.holder < state_.claims.size()) {
        expect(&counts_.wrongs, state_.claims[slot.holder].state == ClaimState::kReserved, [&] {
            return who() + " is reserved for a claim that is not confirming";
        });
    } else if (being_killed_for(slot) && slot.holder < state_.leases.size()) {
        ++counts_.census[slot.pool].killed;
        const shm::LeaseRow& lease = state_.leases[slot.holder];
        expect(&counts_.wrongs, lease.state == LeaseState::kKilling, [&] {
            return who() + " is recovering under a lease whose holder is not being killed";
        });
        expect(&counts_.wrongs, is_of(slot, lease), [&] {
            return who() + " is recovering under a lease that is not its own";
        });
    }
}

uint32_t chain_length(
    const State& state, uint32_t first, uint32_t holder, SlotState held, uint32_t* confirmed) {
    uint32_t length = 0;
    for (uint32_t row = first; row != kNoRow && length <= shm::kUnitsMax;
         row = state.slots[row].holder_next) {
        if (row >= state.slots.size()) return 0;
        const shm::SlotRow& slot = state.slots[row];
        if (slot.holder != holder || slot.state != held) return 0;
        if ((slot.flags & SlotFlag::kConfirmed) != 0) ++*confirmed;
        ++length;
    }
    return length;
}

namespace {

// The states that a lease of this pool may have after its expiry or its preemption.
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

void RowCheck::leases(uint32_t begin, uint32_t end) {
    for (uint32_t row = begin; row < end; ++row) {
        const shm::LeaseRow& lease = state_.leases[row];
        if (chains_ == Chains::kUnseen && end - row > kCheckAhead)
            state_.slots.fetch(state_.leases[row + kCheckAhead].first_slot);
        if (lease.state == LeaseState::kFree) continue;
        ++counts_.live_leases;
        const auto who = [&] { return "lease of claim " + std::to_string(lease.arrival); };
        if (lease.pool >= counts_.census.size() || lease.session >= state_.sessions.size()) {
            counts_.wrongs.push_back(who() + " names a pool or session that is not there");
            continue;
        }
        ++counts_.held_by[lease.session].leases;
        expect(&counts_.wrongs, lease.granted_ns <= now_ns_, [&] {
            return who() + " was granted at a time to come";
        });
        const shm::PoolRow& pool = state_.pools[lease.pool];
        expect(&counts_.wrongs, lease.fence <= pool.fence_next, [&] {
            return who() + " has a fence that its pool has not given out";
        });
        expect(&counts_.wrongs, lease.mode == pool.mode && can_be(lease.state, pool), [&] {
            return who() + " ends in another way than its pool's do";
        });
        const bool killing = lease.state == LeaseState::kKilling;
        const SlotState held = killing ? SlotState::kRecovering : SlotState::kLeased;
        uint32_t confirmed = 0;
        if (chains_ == Chains::kUnseen) {
            expect_count(
                &counts_.wrongs,
                [&] { return who() + " slots"; },
                chain_length(state_, lease.first_slot, row, held, &confirmed),
                lease.units);
        }
        counts_.leased[lease.pool] += lease.units;
        if (lease.state == LeaseState::kExpired) ++counts_.census[lease.pool].expired;
        const bool timed = lease.state == LeaseState::kLive || lease.state == LeaseState::kGrace;
        const bool revoking = lease.state == LeaseState::kRevoking;
        if (revoking || (timed && lease.expires_ns != kNever)) ++counts_.timers_wanted;
        if (key_given(lease.key)) ++counts_.keys_wanted;
    }
}

}  // namespace dibs::core
