// tests/naive/statement_choices.cpp -- who gets which slot: claims in order of arrival, slots in
// the order in which they became idle.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/statement_words.hpp"
#include "tests/naive/statements.hpp"

namespace dibs::naive {

// S0.2, S0.9, S0.10, S0.25, S0.29: it is its turn.
void Statements::may_be_served(const JudgedClaim& claim) {
    if (claim.deadline_ns != shm::kNever) {
        hold(2, now_ <= claim.deadline_ns, [&] {
            return words_of(claim) + " gets a slot after its deadline";
        });
    }
    JudgedPool& pool = pools_[claim.pool];
    const auto drains = [&] { return words_of(claim) + " gets a slot of a pool that drains"; };
    hold(29, !is_draining(pool), drains, false);
    if (!pool.has_chosen) tested_[7] += 1;
    pool.has_chosen = true;
    if (claim.turn == turns_) tested_[8] += 1;
    const JudgedClaim* first = first_waiting(claim.pool);
    const bool is_first = first == nullptr || first->number >= claim.number;
    size_t statement = claim.turn == turns_ ? 9 : 10;
    if ((!is_first && first->has_returned) || claim.has_returned) statement = 25;
    count_traps(pool);
    const bool has_rivals = count(claim.pool, ClaimPhase::kWaiting) > 1;
    const auto overtakes = [&] { return words_of(claim) + " overtakes " + words_of(*first); };
    hold(statement, is_first, overtakes, has_rivals);
}

// S0.14, S0.15, S0.17, S0.23: it may be taken, and by one claim only.
void Statements::may_be_chosen(const JudgedClaim& claim, const JudgedSlot& slot) {
    if (slot.phase == SlotPhase::kUnsure) return;
    const auto may = [&](size_t statement, bool holds, const char* what) {
        const auto words = [&] {
            return words_of(claim) + " gets " + words_of(slot) + ", which is " + what;
        };
        hold(statement, holds, words, false);
    };
    may(17, slot.phase != SlotPhase::kKept, "reserved still");
    may(23, slot.phase == SlotPhase::kIdle, "not idle");
    may(14, !slot.is_protected, "protected");
    may(15, !slot.leaves, "withdrawn");
    may(15, is_qualified(slot), "without the required label");
    count_news(claim, slot);
}

// S0.14: first in, first out. The chosen may be told in whatever order.
void Statements::are_longest_idle(uint32_t pool, const std::vector<uint32_t>& chosen) {
    const JudgedSlot* last = nullptr;
    std::set<uint32_t> numbers;
    for (const uint32_t number : chosen) {
        const JudgedSlot* slot = slot_of(pool, number);
        numbers.insert(number);
        if (slot->phase != SlotPhase::kIdle) continue;
        if (last == nullptr || slot->idle_from > last->idle_from) last = slot;
    }
    if (last == nullptr) return;
    bool has_choice = false;
    for (const auto& [number, other] : pools_[pool].slots) {
        has_choice = has_choice || (is_ready(other) && other.idle_from > last->idle_to);
        const bool before = is_ready(other) && other.idle_to < last->idle_from;
        if (!before || numbers.contains(number)) continue;
        const uint32_t earlier = number;
        const bool is_swept = other.news == News::kSwept && other.idle_from > turn_clock_;
        hold(is_swept ? 18 : 14, false, [&] {
            return words_of(*last) + " is taken before slot " + std::to_string(earlier) +
                   ", which has been idle for longer";
        });
        return;
    }
    if (has_choice) tested_[14] += 1;
}

// What might have been taken instead, and may not be.
void Statements::count_traps(const JudgedPool& pool) {
    bool kept = false;
    bool not_idle = false;
    bool is_protected = false;
    bool unqualified = false;
    for (const auto& [number, slot] : pool.slots) {
        kept = kept || slot.phase == SlotPhase::kKept;
        not_idle = not_idle || slot.phase == SlotPhase::kLeased || slot.phase == SlotPhase::kAway;
        const bool idle = slot.phase == SlotPhase::kIdle;
        is_protected = is_protected || (idle && slot.is_protected);
        unqualified = unqualified || (idle && (slot.leaves || !is_qualified(slot)));
    }
    tested_[17] += kept;
    tested_[23] += not_idle;
    tested_[14] += is_protected;
    tested_[15] += unqualified;
}

// Which statement's slot it is that reached a claim.
void Statements::count_news(const JudgedClaim& claim, const JudgedSlot& slot) {
    if (slot.idle_to > turn_clock_ && claim.turn != turns_) tested_[11] += 1;
    tested_[statement_of(slot.news)] += 1;
    if (slot.news != News::kReady || slot.idle_from <= turn_clock_) return;
    ready_chosen_ += 1;
    if (ready_chosen_ > 1) tested_[21] += 1;
}

size_t Statements::statement_of(News news) {
    switch (news) {
        case News::kNone:
            return 11;
        case News::kReady:
            return 27;
        case News::kReadmitted:
            return 16;
        case News::kSwept:
            return 18;
        case News::kNewGeneration:
            return 24;
        case News::kSameName:
            return 20;
        case News::kLate:
            return 40;
        case News::kUnmarked:
            return 23;
    }
    return 11;
}

// As far as can be told: slots that are unsure are not counted on.
bool Statements::could_be_served(const JudgedClaim& claim) const {
    const JudgedPool& pool = pools_[claim.pool];
    const JudgedClaim* first = first_waiting(claim.pool);
    if (is_draining(pool) || now_ > claim.deadline_ns) return false;
    if (first != nullptr && first->number < claim.number) return false;
    return has_room(pool, claim.units) && ready_in(pool) >= claim.units;
}

uint32_t Statements::ready_in(const JudgedPool& pool) const {
    return static_cast<uint32_t>(std::count_if(
        pool.slots.begin(), pool.slots.end(), [&](const auto& s) { return is_ready(s.second); }));
}

// S0.22, and a row for the lease.
bool Statements::has_room(const JudgedPool& pool, uint32_t units) const {
    const core::PoolConfig& config = pool.spec.config;
    if (config.kind == shm::PoolKind::kWorker &&
        unconfirmed_in(pool) + units > config.unconfirmed_max) {
        return false;
    }
    return leases_are_judged_ && leased() < journal_.limits.leases;
}

}  // namespace dibs::naive
