// broker/core/provision/account_needs.cpp -- decides what elastic pools ordered by account make and
// stop.
//
// Nothing is locked there: class and arrival alone say who is served. A claim that waits behind the
// pass lacks slots: those beyond what is idle for it are workers that are on their way, or new ones
// of a type whose labels it can use. Claims that are alike (a crowd) are looked at once.
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

// Into free_, in runs of equal labels: the idle slots that no claim holds back, as they became
// idle; then those that are on their way to be idle, by number, so that what is ordered comes last.
void Provisioning::find_free(uint32_t pool) {
    free_.clear();
    runs_.clear();
    const auto add = [&](uint32_t slot, uint32_t set) {
        if (runs_.empty() || runs_.back().set != set)
            runs_.push_back({set, static_cast<uint32_t>(free_.size()), 0});
        free_.push_back(slot);
        runs_.back().end = static_cast<uint32_t>(free_.size());
    };
    for (uint32_t slot = state.pools[pool].ready_head; slot != kNoRow;
         slot = state.slots[slot].ready_next) {
        const Stall& stall = book()->stalls[book()->stall_of_slot[slot]];
        if (!is_held_back(slot)) add(slot, stall.labels);
    }
    std::vector<uint32_t>& coming = turn().scratch;
    coming.clear();
    for (uint32_t slot = underway_.head(pool); slot != kNoRow; slot = underway_.next(slot))
        if (book()->promised_to[slot] == kNoRow) coming.push_back(slot);
    std::sort(coming.begin(), coming.end(), [&](uint32_t left, uint32_t right) {
        return state.slots[left].number < state.slots[right].number;
    });
    for (const uint32_t slot : coming)
        add(slot, state.slots[slot].label_set);
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
    const Stall& stall = book()->stalls[book()->stall_of_slot[slot]];
    return stall.held_back && book()->crowds[stall.held_by].waiting != 0;
}

// An idle slot that a claim counts on.
bool Provisioning::is_spoken_for(uint32_t slot) const {
    if (!matcher().has_labels(state.slots[slot].pool)) return false;
    return is_held_back(slot) || std::binary_search(kept_.begin(), kept_.end(), slot);
}

uint32_t Provisioning::count_spoken_for(uint32_t pool) const {
    uint32_t kept = 0;
    if (!matcher().has_labels(pool)) return kept;
    for (uint32_t slot = state.pools[pool].ready_head; slot != kNoRow;
         slot = state.slots[slot].ready_next)
        kept += is_spoken_for(slot) ? 1 : 0;
    return kept;
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

// What an account counts on is counted for its label limits while the pool is looked at. Whatever
// is ordered may serve a claim before the one that lacked it, so all are looked at again behind it.
bool Provisioning::make_for_accounts(uint32_t pool) {
    find_crowds_in_need(pool);
    for (;;) {
        find_free(pool);
        kept_.clear();
        counted_.clear();
        uint64_t needed = 0;
        const Made made = make_for_crowds(pool, &needed);
        for (const auto& [account, set] : counted_)
            crowds().count_label_set(account, pool, set, -1);
        std::sort(kept_.begin(), kept_.end());
        if (made == Made::kCut) return false;
        if (made == Made::kOverQuota) return stop_for_others(pool);
        if (made == Made::kForOthers) continue;
        const uint32_t workers = whole_slots(state.pools[pool]);
        if (!keep_spare(pool, needed)) return false;
        if (whole_slots(state.pools[pool]) == workers) return true;
    }
}

// `needed`: workers that are idle for claims, or on their way to them.
Provisioning::Made Provisioning::make_for_crowds(uint32_t pool, uint64_t* needed) {
    const uint64_t limit = state.elastics[pool].limit;
    const uint64_t running = counts[pool].running;
    lacking_.clear();
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
        for (Run& run : runs_) {
            while (wanted != 0 && run.next != run.end && serves(crowd, run.set)) {
                const uint64_t some = limited ? 1 : std::min<uint64_t>(wanted, run.end - run.next);
                for (uint64_t unit = 0; unit < some; ++unit) {
                    const uint32_t slot = free_[run.next++];
                    if (state.slots[slot].state == SlotState::kIdle) kept_.push_back(slot);
                }
                take(run.set, some);
            }
        }
        while (wanted != 0 && running + *needed < limit) {
            if (turn().full()) return Made::kCut;
            const uint32_t type = cheapest_for(crowd);
            if (type == kNoRow) break;
            if (at_quota(pool)) return Made::kOverQuota;
            if (!create(pool, type)) break;
            const uint32_t set = labels_of(type);
            const bool for_others =
                std::any_of(lacking_.begin(), lacking_.end(), [&](uint32_t other) {
                    return book()->labels.covers(set, book()->crowds[other].base);
                });
            if (for_others) return Made::kForOthers;
            take(set, 1);
        }
        if (wanted != 0) lacking_.push_back(place);
    }
    return Made::kAll;
}

// S1.16: at quota, of each type the worker that is idle longest goes, to leave room for one that a
// claim can use; not while one of the type is going, nor where a claim keeps it.
bool Provisioning::stop_for_others(uint32_t pool) {
    if (book()->service_has_ended) return true;
    for (const uint32_t type : types_of(pool)) {
        const uint32_t slot = idle_.head(type);
        if (slot == kNoRow || state.types[type].session == kNoRow || going_[type] != 0) continue;
        if (is_spoken_for(slot)) continue;
        if (turn().full()) return false;
        pools().drain_slot(slot, true);
    }
    return true;
}

}  // namespace dibs::core
