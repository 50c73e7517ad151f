// tests/naive/statement_rows.cpp -- what the judge follows: found by scanning, moved by name.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tests/naive/statements.hpp"

namespace dibs::naive {

// Null for what it steps aside from.
JudgedPool* Statements::pool_of(uint32_t label) {
    if (label >= pools_.size() || !pools_[label].lives || !pools_[label].by_arrival) return nullptr;
    return &pools_[label];
}

JudgedSlot* Statements::slot_of(uint32_t pool, uint32_t number) {
    JudgedPool* where = pool_of(pool);
    if (where == nullptr) return nullptr;
    const auto slot = where->slots.find(number);
    return slot == where->slots.end() ? nullptr : &slot->second;
}

JudgedSlot* Statements::slot_of_label(uint32_t label) {
    const auto place = places_.find(label);
    if (place == places_.end()) return nullptr;
    JudgedSlot* slot = slot_of(place->second.pool, place->second.number);
    return slot != nullptr && slot->incarnation == place->second.incarnation ? slot : nullptr;
}

JudgedClaim* Statements::claim_of(uint64_t number) {
    const auto claim = claims_.find(number);
    return claim == claims_.end() ? nullptr : &claim->second;
}

JudgedClaim* Statements::claim_of_label(uint32_t label) {
    const auto number = numbers_.find(label);
    return number == numbers_.end() ? nullptr : claim_of(number->second);
}

bool Statements::has_ended(uint64_t number) const {
    return judged_.contains(number) && !claims_.contains(number);
}

// Numbers are the order of arrival.
const JudgedClaim* Statements::first_waiting(uint32_t pool) const {
    for (const auto& [number, claim] : claims_) {
        if (claim.pool == pool && claim.phase == ClaimPhase::kWaiting) return &claim;
    }
    return nullptr;
}

uint32_t Statements::count(uint32_t pool, ClaimPhase phase) const {
    return static_cast<uint32_t>(std::count_if(claims_.begin(), claims_.end(), [&](const auto& c) {
        return c.second.pool == pool && c.second.phase == phase;
    }));
}

uint32_t Statements::pending_in(uint32_t pool) const {
    return count(pool, ClaimPhase::kWaiting) + count(pool, ClaimPhase::kReserved);
}

uint32_t Statements::unconfirmed_in(const JudgedPool& pool) {
    return static_cast<uint32_t>(
        std::count_if(pool.slots.begin(), pool.slots.end(), [](const auto& s) {
            return s.second.phase == SlotPhase::kReserved && !s.second.has_confirmed;
        }));
}

bool Statements::is_draining(const JudgedPool& pool) const {
    return pool.drains || pool.leaves || broker_drains_;
}

bool Statements::is_qualified(const JudgedSlot& slot) const {
    const std::string& required = pools_[slot.pool].spec.required_label;
    return required.empty() ||
           std::find(slot.labels.begin(), slot.labels.end(), required) != slot.labels.end();
}

bool Statements::is_ready(const JudgedSlot& slot) const {
    return slot.phase == SlotPhase::kIdle && !slot.is_protected && !slot.leaves &&
           is_qualified(slot);
}

// Its generation is a new one: whatever reserved it before reserves it no more.
void Statements::become_idle(JudgedSlot& slot, News news) {
    slot.phase = SlotPhase::kIdle;
    slot.claim = 0;
    slot.has_confirmed = false;
    slot.is_late = false;
    slot.is_asked = false;
    slot.idle_from = clock_;
    slot.idle_to = clock_;
    const bool is_early = slot.until_ns > now_ && news != News::kSwept && news != News::kLate;
    slot.news = is_early ? News::kNewGeneration : news;
    if (std::exchange(slot.is_unmarked, false)) slot.news = News::kUnmarked;
    slot.until_ns = 0;
    pools_[slot.pool].idle_changed = true;
}

// S0.25: in its old place, which its number is.
void Statements::wait_again(JudgedClaim& claim) {
    let_go(claim);
    claim.phase = ClaimPhase::kWaiting;
    claim.has_returned = true;
    claim.turn_of_return = turns_;
    pools_[claim.pool].claim_moved = true;
}

// Slots that are still reserved for it: who has been asked must speak first, and may confirm
// (S0.40); of who has confirmed it depends on what a release is to its pool.
void Statements::let_go(JudgedClaim& claim) {
    JudgedPool& pool = pools_[claim.pool];
    for (const uint32_t number : std::exchange(claim.slots, {})) {
        JudgedSlot* slot = slot_of(claim.pool, number);
        if (slot == nullptr || slot->claim != claim.number) continue;
        if (slot->phase != SlotPhase::kReserved) continue;
        const bool idle = slot->has_confirmed && pool.spec.config.release_is_ready;
        if (idle && slot->is_late) {
            become_idle(*slot, News::kLate);
            slot->idle_from = turn_clock_;
            slot->idle_to = kThisTurn;
            continue;
        }
        slot->phase = idle ? SlotPhase::kUnsure : SlotPhase::kAway;
        slot->claim = 0;
        slot->is_asked = !slot->has_confirmed;
        slot->has_confirmed = false;
        slot->is_late = false;
    }
}

void Statements::end_lease(JudgedClaim& claim, LeaseEnd end) {
    const core::PoolConfig& config = pools_[claim.pool].spec.config;
    const bool counted = config.kind == shm::PoolKind::kCounted;
    for (const uint32_t number : claim.slots) {
        JudgedSlot* slot = slot_of(claim.pool, number);
        if (slot == nullptr || slot->claim != claim.number) continue;
        if (slot->phase != SlotPhase::kLeased) continue;
        slot->claim = 0;
        slot->phase = SlotPhase::kAway;
        if (claim.is_killed && end != LeaseEnd::kDeath) {
            slot->phase = SlotPhase::kUnsure;
        } else if (counted || (end == LeaseEnd::kRelease && config.release_is_ready)) {
            become_idle(*slot, News::kNone);
            if (end == LeaseEnd::kDeath) slot->idle_to = kThisTurn;
        } else if (end != LeaseEnd::kBroken && config.release_is_ready) {
            slot->phase = SlotPhase::kUnsure;
        }
    }
    claims_.erase(claim.number);
}

void Statements::forget_slot(uint32_t pool, uint32_t number) {
    JudgedSlot* slot = slot_of(pool, number);
    if (slot == nullptr) return;
    JudgedPool& where = pools_[pool];
    if (!slot->name.empty() && slot->until_ns > now_) {
        where.reserved_names[slot->name] = slot->until_ns;
    }
    const bool was_reserved = slot->phase == SlotPhase::kReserved;
    JudgedClaim* claim = claim_of(slot->claim);
    where.slots.erase(number);
    where.idle_changed = true;
    if (was_reserved && claim != nullptr) wait_again(*claim);
}

}  // namespace dibs::naive
