// broker/core/store/row_states.hpp -- says what a row's fields mean to every rule.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "broker/core/command.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

using shm::kNever;
using shm::kNoRow;
using shm::Outcome;
using shm::Reason;
using shm::SlotState;

// Line masks of a pool row.
inline constexpr unsigned kPoolHot = 1U;
inline constexpr unsigned kPoolStates = 1U | (1U << 1U);
inline constexpr unsigned kPoolTotals = 1U << 2U;
inline constexpr unsigned kPoolAccounts = 1U << 6U;
inline constexpr unsigned kPoolParts = 1U << 7U;
inline constexpr unsigned kPoolAll = 0xffU;

// Claims that must not wait beyond the pass.
inline constexpr uint8_t kImpatient =
    shm::ClaimFlag::kNowOnly | shm::ClaimFlag::kReject | shm::ClaimFlag::kCold;

// Takes of a parked lease, as far as they have been seen.
inline uint64_t takes_of(const shm::LeaseRow& lease) {
    return (lease.flags & shm::LeaseFlag::kTakesSeen) != 0 ? lease.takes : 0;
}
inline constexpr uint64_t kTakesMax = uint64_t{1} << 60U;

// A time that far from another one, which is never kNever, whatever that one is.
inline uint64_t sum_or_never(uint64_t from_ns, uint64_t interval_ns) {
    const uint64_t sum_ns = from_ns + interval_ns;
    return sum_ns >= from_ns && sum_ns != kNever ? sum_ns : kNever - 1;
}

// May so many more workers of the pool be asked? A claim for more than unconfirmed_max, which was
// higher when it came, is served when no worker is being asked.
inline bool may_ask(const shm::PoolRow& pool, uint32_t workers) {
    return pool.unconfirmed == 0 || pool.unconfirmed + workers <= pool.unconfirmed_max;
}

// Recovering under a lease whose holder is being killed: nothing but its end frees the slot.
inline bool being_killed_for(const shm::SlotRow& slot) {
    return slot.state == SlotState::kRecovering && slot.holder != kNoRow;
}

// Reserved without a claim, and without an end: a placeholder of an application holds it.
inline bool is_placeholder(const shm::SlotRow& slot) {
    return slot.state == SlotState::kReserved && slot.holder == kNoRow && slot.group != kNoRow &&
           slot.reserved_until_ns == 0;
}

// Reserved without a claim, until its instant: its worker could not yet, and wants to be asked
// again.
inline bool is_kept(const shm::SlotRow& slot) {
    return slot.state == SlotState::kReserved && slot.holder == kNoRow && !is_placeholder(slot);
}

// An administrator has drained it: it is protected until that is taken back.
inline bool is_drained(const shm::SlotRow& slot) {
    return slot.behaviour == shm::Behaviour::kDrain;
}

// The same, or held: it is not stopped then.
inline bool is_withheld(const shm::SlotRow& slot) {
    return slot.behaviour != shm::Behaviour::kRun;
}

// A mark keeps it from being granted again.
inline bool is_stopped(const shm::SlotRow& slot) {
    constexpr uint32_t kStops =
        shm::SlotFlag::kProtected | shm::SlotFlag::kUnqualified | shm::SlotFlag::kDraining;
    return (slot.flags & kStops) != 0;
}

// Which slot it is, or is a part of.
inline uint32_t whole_of(const shm::SlotRow& slot, uint32_t row) {
    return slot.part_of == kNoRow ? row : slot.part_of;
}

// Slots of a pool, without their parts.
inline uint32_t whole_slots(const shm::PoolRow& pool) {
    return pool.slots - pool.parts;
}

inline bool has_resources(const shm::PoolRow& pool) {
    return (pool.flags & shm::PoolFlag::kResources) != 0;
}

inline bool wants_part(const shm::ClaimRow& claim) {
    return (claim.flags & shm::ClaimFlag::kPart) != 0;
}

// Its worker was asked for a claim that did not get it, and has not answered since.
inline bool is_taken_back(const shm::SlotRow& slot) {
    return (slot.state == SlotState::kRecovering || slot.state == SlotState::kUnknown) &&
           (slot.flags & shm::SlotFlag::kTakenBack) != 0;
}

// A text in the arena; chain kNoRow: none.
struct ArenaText {
    uint32_t chain = kNoRow;
    uint32_t size = 0;
};

// For who inspects. In a pool ordered by account a lease's is its claim's.
inline ArenaText meta_of(const shm::ClaimRow& claim) {
    return {claim.meta, claim.meta_size};
}
inline ArenaText meta_of(const shm::LeaseRow& lease) {
    if ((lease.flags & shm::LeaseFlag::kMeta) == 0) return {};
    return {static_cast<uint32_t>(lease.wanted_ns), static_cast<uint32_t>(lease.wanted_ns >> 32U)};
}

// Of a part: its worker is asked, must say, or wants to be asked again.
inline bool is_unanswered(const shm::SlotRow& slot) {
    return (slot.state == SlotState::kReserved && !is_placeholder(slot)) ||
           slot.state == SlotState::kUnknown || is_taken_back(slot);
}

// Lines of a claim's row that change when it begins or ends to run.
inline constexpr unsigned kClaimRunLines = 0x7U;

// All zero is "no key".
inline bool key_given(const uint8_t* key) {
    uint64_t halves[2];
    std::memcpy(halves, key, sizeof(halves));
    return (halves[0] | halves[1]) != 0;
}

inline const ClaimTerms& terms_of(const Claim& command) {
    static constexpr ClaimTerms kNone{};
    return command.terms != nullptr ? *command.terms : kNone;
}
}  // namespace dibs::core
