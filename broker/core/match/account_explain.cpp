// broker/core/match/account_explain.cpp -- explains why a claim of a pool ordered by account waits.
//
// It looks at the waiting crowds (claims that are alike are one), at the pool's stalls, and at no
// claim but the one asked about: the crowd's own count says how many of its claims stand before
// that one.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

// The class at which a pass now would serve it: what its fan-out stops goes on in the free class.
uint8_t Explainer::class_in_pass(const Crowd& crowd) const {
    const uint8_t best = crowds().class_now(crowd);
    if (best >= kFreeClass || crowds().fanout_left(crowd) >= crowd.units) return best;
    const uint8_t flags = state.accounts[crowd.account].flags;
    return (flags & shm::AccountFlag::kFreeTasksDisabled) != 0 ? kNoClass : kFreeClass;
}

void Explainer::explain_promise(uint32_t row, Explanation* told) const {
    const shm::ClaimRow& claim = state.claims[row];
    told->at_class = claim.account_class;
    told->class_reason = ClassReason::kBalance;
    told->reason = told->obstacle = WaitReason::kPromised;
    // None: it has ended, and its worker is still to say ready, or to be asked.
    told->holder = reports().lease_on(claim.first_slot);
    if (told->holder == kNoRow) return;
    const shm::LeaseRow& lease = state.leases[told->holder];
    if (lease.state != shm::LeaseState::kRevoking) return;
    told->left_ns = std::min(told->left_ns,
                             lease.grace_until_ns - std::min(lease.grace_until_ns, turn().now_ns));
}

void Explainer::explain_class(uint32_t row, Explanation* told) const {
    const shm::ClaimRow& claim = state.claims[row];
    const Crowd& crowd = book()->crowds[book()->crowd_of_claim[row]];
    told->at_class = class_in_pass(crowd);
    const bool known = crowd.account != kNoRow &&
                       (state.accounts[crowd.account].flags & shm::AccountFlag::kConfigured) != 0;
    if (!known) {
        told->class_reason = ClassReason::kNoAccount;
    } else if (told->at_class < kFreeClass) {
        told->class_reason = ClassReason::kBalance;
    } else if (ledger().best_class(crowd.account) == kFreeClass) {
        told->class_reason = ClassReason::kNoBalance;
    } else {
        told->class_reason = ClassReason::kFanout;
        told->fanout_max = state.accounts[crowd.account].fanout_max;
        told->fanout_held = book()->fanouts[crowd.fanout].units;
    }
    if (claim.state == shm::ClaimState::kReserved) told->at_class = claim.account_class;
}

// In the order of a pass: class, more base labels first, number. Those that a pass leaves out come
// last.
void Explainer::explain_place(uint32_t row, Explanation* told) const {
    const shm::ClaimRow& claim = state.claims[row];
    const Crowd& own = book()->crowds[book()->crowd_of_claim[row]];
    uint32_t before = 0;
    for (const uint32_t place : book()->crowds_of_pool[claim.pool]) {
        const Crowd& crowd = book()->crowds[place];
        const uint8_t at_class = class_in_pass(crowd);
        if (at_class != told->at_class) {
            if (at_class < told->at_class) told->better += crowd.waiting;
        } else if (crowd.quality != own.quality) {
            if (crowd.quality > own.quality) before += crowd.waiting;
        } else {
            before += crowd.claims.count_before(claim.arrival);
        }
    }
    told->position = told->better + before + 1;
}

// Slots with its labels, and the oldest lease of one.
void Explainer::explain_fitting(const Crowd& crowd, Explanation* told) const {
    for (const uint32_t place : book()->stalls_of_pool[crowd.pool]) {
        const Stall& stall = book()->stalls[place];
        if (!book()->labels.covers(stall.labels, crowd.base)) continue;
        told->fitting += stall.slots;
        const uint32_t slot = stall.leased.head;
        if (slot == kNoRow) continue;
        const uint32_t lease = state.slots[slot].holder;
        const bool older =
            told->holder == kNoRow || state.leases[lease].fence < state.leases[told->holder].fence;
        if (older) told->holder = lease;
    }
}

WaitReason Explainer::explain_labels(const Crowd& crowd, Explanation* told) const {
    const std::vector<uint32_t>& stalls = book()->stalls_of_pool[crowd.pool];
    each_label(book()->labels.text(crowd.base), [&](std::string_view wanted) {
        const bool there = std::any_of(stalls.begin(), stalls.end(), [&](uint32_t place) {
            bool has = false;
            each_label(book()->labels.text(book()->stalls[place].labels),
                       [&](std::string_view label) { has = has || label == wanted; });
            return has && book()->stalls[place].slots != 0;
        });
        if (!there && told->label.empty()) told->label = wanted;
    });
    return WaitReason::kLabels;
}

// That its account holds in its pool.
uint32_t Explainer::units_with(const Crowd& crowd, std::string_view label) const {
    const auto& held = book()->label_units[crowd.account];
    const auto known = held.find(label_key(crowd.pool, label));
    return known == held.end() ? 0 : known->second;
}

// A limit, on a label that every slot for it has, that is below the number it wants: into *told.
bool Explainer::over_limit(const Crowd& crowd, Explanation* told) const {
    if (crowd.account == kNoRow) return false;
    bool over = false;
    each_counted_label(book()->labels.text(crowd.base), [&](std::string_view label) {
        for (const LabelLimit& limit : book()->limits[crowd.account]) {
            const bool counts = label.starts_with(limit.prefix);
            if (over || !counts || crowd.units <= limit.limit) continue;
            over = true;
            told->label = label;
            told->label_limit = limit.limit;
            told->label_held = units_with(crowd, label);
        }
    });
    return over;
}

// The first of its account's limits that one more slot with these labels would pass: into *told.
bool Explainer::limit_reached(const Crowd& crowd, uint32_t set, Explanation* told) const {
    if (crowd.account == kNoRow || book()->limits[crowd.account].empty()) return false;
    bool reached = false;
    each_counted_label(book()->labels.text(set), [&](std::string_view label) {
        for (const LabelLimit& limit : book()->limits[crowd.account]) {
            if (reached || !label.starts_with(limit.prefix)) continue;
            reached = units_with(crowd, label) >= limit.limit;
            if (!reached) continue;
            told->label = label;
            told->label_limit = limit.limit;
        }
    });
    return reached;
}

// How many idle slots it may have, as far as it needs them. *limited: its account's label limits
// leave no slot to it beyond these, idle or not.
uint32_t Explainer::idle_for(const Crowd& crowd, bool* limited, Explanation* told) {
    std::vector<uint32_t> taken;
    bool open = false;
    for (const uint32_t place : book()->stalls_of_pool[crowd.pool]) {
        const Stall& stall = book()->stalls[place];
        if (stall.slots == 0 || !book()->labels.covers(stall.labels, crowd.base)) continue;
        Explanation limit;
        bool reached = limit_reached(crowd, stall.labels, &limit);
        for (uint32_t slot = stall.idle.head; slot != kNoRow;
             slot = book()->slot_links[slot].next) {
            if (reached || taken.size() == crowd.units) break;
            crowds().count_labels(crowd.account, slot, 1);
            taken.push_back(slot);
            reached = limit_reached(crowd, stall.labels, &limit);
        }
        open = open || !reached;
        if (!reached || !told->label.empty()) continue;
        told->label = limit.label;
        told->label_limit = limit.label_limit;
    }
    for (const uint32_t slot : taken)
        crowds().count_labels(crowd.account, slot, -1);
    *limited = !open && taken.size() < crowd.units;
    if (!*limited) told->label = {};
    if (*limited) told->label_held = units_with(crowd, told->label);  // without those
    return static_cast<uint32_t>(taken.size());
}

// Of one that waits for what other claims hold.
void Explainer::explain_preemption(uint32_t row, Explanation* told) {
    const bool waits =
        told->obstacle == WaitReason::kHeld || told->obstacle == WaitReason::kRecovering;
    if (!waits || told->at_class == kNoClass) return;
    told->preempt = preemption_now(book()->crowds[book()->crowd_of_claim[row]], told->at_class);
}

PreemptReason Explainer::preemption_now(const Crowd& crowd, uint8_t at_class) {
    if (at_class >= kFreeClass) return PreemptReason::kForFree;
    const shm::PoolRow& pool = state.pools[crowd.pool];
    if ((pool.flags & shm::PoolFlag::kNoPreemption) != 0) return PreemptReason::kDisabled;
    if (crowd.units != 1) return PreemptReason::kUnits;
    const uint32_t tenant = book()->find_tenant(crowd.pool, crowd.account);
    for (uint32_t q = at_class + 1U; tenant != kNoRow && q < kClassesAndFree; ++q) {
        if (book()->tenants[tenant].units[q] != 0) return PreemptReason::kBanned;
    }
    bool found = false;
    Cost cheapest = {};
    for (const uint32_t place : book()->stalls_of_pool[crowd.pool]) {
        const Stall& stall = book()->stalls[place];
        if (!book()->labels.covers(stall.labels, crowd.base)) continue;
        if (!crowds().labels_allow(crowd.account, crowd.pool, stall.labels, false)) continue;
        for (uint32_t q = at_class + 1U; q < kClassesAndFree; ++q) {
            const uint32_t lease = book()->stall_leases.first(stall.leases[q]);
            if (lease == kNoRow) continue;
            const Cost cost = ledger().cost_of(lease);
            if (!found || cost < cheapest) cheapest = cost;
            found = true;
        }
    }
    if (!found) return PreemptReason::kNoCandidate;
    Cost balance;
    for (uint32_t p = 0; p < shm::kClasses; ++p)
        balance[p] = ledger().balance_at(crowd.account, p);
    return cheapest < balance ? PreemptReason::kNextTurn : PreemptReason::kBalance;
}

}  // namespace dibs::core
