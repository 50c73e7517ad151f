// broker/core/provision/account_needs.cpp -- decides what elastic pools ordered by account make and
// stop.
//
// Nothing is locked there: class and arrival alone say who is served. A claim that waits behind the
// pass lacks slots: those beyond what the pass has held back for it are workers that are on their
// way, or new ones of a type whose labels it can use. Claims that are alike (a crowd) are looked at
// once.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "broker/core/parts.hpp"

namespace dibs::core {

// Into crowds_in_need_, in order of class, then of the first claim of each.
void Provisioning::find_crowds_in_need(uint32_t pool) {
    crowds_in_need_.clear();
    for (const uint32_t place : book()->crowds_of_pool[pool]) {
        const Crowd& crowd = book()->crowds[place];
        if (crowd.waiting != 0 && crowd.waits_at != kNoClass) crowds_in_need_.push_back(place);
    }
    std::sort(crowds_in_need_.begin(), crowds_in_need_.end(), [&](uint32_t left, uint32_t right) {
        const auto key = [&](const Crowd& crowd) {
            return std::tuple(crowd.waits_at, crowd.claims.head_number());
        };
        return key(book()->crowds[left]) < key(book()->crowds[right]);
    });
}

// Into coming_: the labels of workers that are on their way to be idle, each with their number.
void Provisioning::find_coming(uint32_t pool) {
    coming_.clear();
    for (uint32_t row = underway_.head(pool); row != kNoRow; row = underway_.next(row)) {
        if (book()->promised_to[row] != kNoRow) continue;
        const uint32_t set = state.slots[row].label_set;
        const auto known = std::find_if(
            coming_.begin(), coming_.end(), [&](const auto& one) { return one.first == set; });
        if (known == coming_.end()) {
            coming_.emplace_back(set, 1);
        } else {
            ++known->second;
        }
    }
    std::sort(coming_.begin(), coming_.end(), [&](const auto& left, const auto& right) {
        return book()->labels.text(left.first) < book()->labels.text(right.first);
    });
}

// Into held_: the idle slots that the pass has held back for the crowd's first claim.
void Provisioning::find_held(uint32_t crowd) {
    held_.clear();
    if (book()->crowds[crowd].holds_at == kNoClass) return;
    for (const uint32_t place : book()->stalls_of_pool[book()->crowds[crowd].pool]) {
        const Stall& stall = book()->stalls[place];
        if (!stall.held_back || stall.held_by != crowd) continue;
        for (uint32_t slot = stall.idle.head; slot != kNoRow; slot = book()->slot_links[slot].next)
            held_.push_back(slot);
    }
    std::sort(held_.begin(), held_.end(), [&](uint32_t left, uint32_t right) {
        return state.slots[left].idle_order < state.slots[right].idle_order;
    });
}

// Not for one that has ended with the pass.
bool Provisioning::is_held_back(uint32_t slot) const {
    if (!matcher().has_labels(state.slots[slot].pool)) return false;
    const Stall& stall = book()->stalls[book()->stall_of_slot[slot]];
    return stall.held_back && book()->crowds[stall.held_by].waiting != 0;
}

uint32_t Provisioning::count_held_back(uint32_t pool) const {
    uint32_t held = 0;
    if (!matcher().has_labels(pool)) return held;
    for (uint32_t slot = state.pools[pool].ready_head; slot != kNoRow;
         slot = state.slots[slot].ready_next)
        held += is_held_back(slot) ? 1 : 0;
    return held;
}

bool Provisioning::serves(const Crowd& crowd, uint32_t set) const {
    return book()->labels.covers(set, crowd.base) &&
           crowds().labels_allow(crowd.account, crowd.pool, set, false);
}

// Of the types that are made, with its labels: what it costs limits the price.
uint32_t Provisioning::first_for(const Crowd& crowd) const {
    const auto types = types_of(crowd.pool);
    const auto first = std::find_if(types.begin(), types.end(), [&](uint32_t type) {
        return !is_going(type) && book()->labels.covers(labels_of(type), crowd.base);
    });
    return first == types.end() ? kNoRow : *first;
}

bool Provisioning::suits(uint32_t type, const Crowd& crowd, uint32_t first) const {
    return !is_going(type) && is_affordable(type, first) && serves(crowd, labels_of(type));
}

uint32_t Provisioning::cheapest_for(const Crowd& crowd) const {
    const uint32_t first = first_for(crowd);
    if (first == kNoRow) return kNoRow;
    for (const uint32_t type : types_of(crowd.pool)) {
        if (can_make(type) && suits(type, crowd, first)) return type;
    }
    return kNoRow;
}

// Unallocated slots with labels that may serve it: the idle ones, and those that are still to come.
Provisioning::Usable Provisioning::usable_by(const Crowd& crowd) const {
    Usable usable;
    for (uint32_t slot = state.pools[crowd.pool].ready_head; slot != kNoRow;
         slot = state.slots[slot].ready_next) {
        if (serves(crowd, book()->stalls[book()->stall_of_slot[slot]].labels)) ++usable.idle;
    }
    for (uint32_t slot = underway_.head(crowd.pool); slot != kNoRow; slot = underway_.next(slot)) {
        if (book()->promised_to[slot] != kNoRow) continue;
        if (!serves(crowd, state.slots[slot].label_set)) continue;
        ++usable.underway;
        if (state.slots[slot].state == SlotState::kOrdered) ++usable.ordered;
    }
    return usable;
}

// Slots that the claims of the crowd might have if they were there: where free tasks are refused,
// no more than its fan-out leaves.
uint64_t Provisioning::wanted_by(const Crowd& crowd) const {
    uint32_t claims = crowd.waiting;
    if (crowd.account == kNoRow) return uint64_t{claims} * crowd.units;
    const uint8_t flags = state.accounts[crowd.account].flags;
    const bool refused = (flags & shm::AccountFlag::kFreeTasksDisabled) != 0;
    if (refused) claims = std::min(claims, crowds().fanout_left(crowd) / crowd.units);
    return uint64_t{claims} * crowd.units;
}

// What is held back for an account, or on its way to it, counts for its label limits while the pool
// is looked at.
bool Provisioning::make_for_accounts(uint32_t pool) {
    find_crowds_in_need(pool);
    find_coming(pool);
    counted_.clear();
    uint64_t needed = 0;
    bool over_quota = false;
    const bool done = make_for_crowds(pool, &needed, &over_quota);
    for (const auto& [account, set] : counted_)
        crowds().count_label_set(account, pool, set, -1);
    if (!done) return false;
    return over_quota ? stop_for_others(pool) : keep_spare(pool, needed);
}

// `needed`: workers that are held back for claims, or on their way to them. False: the log is full.
bool Provisioning::make_for_crowds(uint32_t pool, uint64_t* needed, bool* over_quota) {
    const uint64_t limit = state.elastics[pool].limit;
    const uint64_t running = counts[pool].running;
    for (const uint32_t place : crowds_in_need_) {
        const Crowd& crowd = book()->crowds[place];
        const bool limited = crowd.account != kNoRow && !book()->limits[crowd.account].empty();
        uint64_t wanted = wanted_by(crowd);
        const auto take = [&](uint32_t set, uint64_t number) {
            wanted -= number;
            *needed += number;
            if (!limited) return;
            crowds().count_label_set(crowd.account, pool, set, 1);
            counted_.emplace_back(crowd.account, set);
        };
        find_held(place);
        for (const uint32_t slot : held_) {
            const uint32_t set = book()->stalls[book()->stall_of_slot[slot]].labels;
            if (wanted != 0 && serves(crowd, set)) take(set, 1);
        }
        for (auto& [set, number] : coming_) {
            while (wanted != 0 && number != 0 && serves(crowd, set)) {
                const uint64_t some = limited ? 1 : std::min<uint64_t>(wanted, number);
                number -= static_cast<uint32_t>(some);
                take(set, some);
            }
        }
        while (wanted != 0 && running + *needed < limit) {
            if (turn().full()) return false;
            const uint32_t type = cheapest_for(crowd);
            if (type == kNoRow) break;
            *over_quota = at_quota(pool);
            if (*over_quota) return true;
            if (!create(pool, type)) break;
            take(labels_of(type), 1);
        }
    }
    return true;
}

// S1.16: at quota, of each type the worker that is idle longest goes, to leave room for one that a
// claim can use; not while one of the type is going, nor where a claim keeps it.
bool Provisioning::stop_for_others(uint32_t pool) {
    for (const uint32_t type : types_of(pool)) {
        const uint32_t slot = idle_.head(type);
        if (slot == kNoRow || state.types[type].session == kNoRow || going_[type] != 0) continue;
        if (is_held_back(slot)) continue;
        if (turn().full()) return false;
        pools().drain_slot(slot, true);
    }
    return true;
}

}  // namespace dibs::core
