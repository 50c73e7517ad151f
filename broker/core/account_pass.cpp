// broker/core/account_pass.cpp -- the pass over a pool ordered by account: for each class idle
// slots, reprioritise, preempt; then the free class.
//
// Every step may be cut where the log nears its end and goes on at that place in the next turn:
// each one looks at what is left to do, and what has been done does not come back.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using Step = AccountPass::Step;

bool Core::Parts::pass_by_account(uint32_t pool) {
    AccountPass& pass = book->pass;
    if (pass.pool != pool) start_account_pass(pool);
    for (;;) {
        if (!account_step()) return false;
        if (pass.step == Step::kEnd) break;
        const bool free_class = pass.at_class == kFreeClass;
        pass.next_account = 0;
        if (free_class && pass.step == Step::kAny) {
            pass.step = Step::kEnd;
        } else if (pass.step == Step::kSpill) {
            pass.step = Step::kProvisioned;
            ++pass.at_class;
        } else {
            pass.step = static_cast<Step>(static_cast<uint8_t>(pass.step) + 1);
            if (pass.step == Step::kPreempt && somebody_preempts()) book->ban_accounts();
        }
    }
    for (const uint32_t place : book->crowds_of_pool[pool]) {
        Crowd& crowd = book->crowds[place];
        if (crowd.waits_at != kNoClass) crowd.examined_ns = now_ns;
    }
    pass.pool = kNoRow;  // from here on claims wait in their crowds at once
    pass.requeued = pass.requeued || !book->come_back.empty();
    for (const uint32_t claim : book->come_back)
        wait_in_crowd(claim);
    book->come_back.clear();
    pass.pool = pool;
    if (!end_impatient_of(pool)) return false;
    const bool again = pass.requeued;
    pass = {};
    if (again) {
        touch(pool);
        looked_again = true;
    }
    return true;
}

void Core::Parts::start_account_pass(uint32_t pool) {
    book->pass = {.pool = pool, .step = Step::kStart};
    for (std::vector<uint32_t>& crowds : book->crowds_at)
        crowds.clear();
    ++book->walks;
    for (const uint32_t place : book->crowds_of_pool[pool]) {
        const Crowd& crowd = book->crowds[place];
        const uint32_t account = crowd.account;
        uint8_t best = kFreeClass;
        if (account != kNoRow) {
            if (book->sees(account)) book->best_of[account] = best_class(account);
            best = book->best_of[account];
        }
        book->come_to_class(place, class_of(crowd, best));
    }
    for (const uint32_t place : book->stalls_of_pool[pool])
        book->stalls[place].held_back = book->stalls[place].held_for_step = false;
}

uint8_t Core::Parts::class_now(const Crowd& crowd) const {
    return class_of(crowd, best_class(crowd.account));
}

// `best`: of its account.
uint8_t Core::Parts::class_of(const Crowd& crowd, uint8_t best) const {
    if (crowd.account == kNoRow) return kFreeClass;
    const shm::AccountRow& account = state.accounts[crowd.account];
    if (best < kFreeClass && fanout_left(crowd) == 0) best = kFreeClass;
    const bool refused = (account.flags & shm::AccountFlag::kFreeTasksDisabled) != 0;
    return best == kFreeClass && refused ? kNoClass : best;
}

bool Core::Parts::account_step() {
    AccountPass& pass = book->pass;
    switch (pass.step) {
        case Step::kProvisioned:
            return serve_class(true);
        case Step::kAny:
            return serve_class(false);
        case Step::kReprioritise:
            return reprioritise();
        case Step::kPreempt:
            return preempt_for_class();
        case Step::kSpill:
            spill_throttled();
            return true;
        case Step::kStart:
        case Step::kEnd:
            return true;
    }
    return true;
}

// Steps 1 and 2 of a class.
bool Core::Parts::serve_class(bool provisioned) {
    AccountPass& pass = book->pass;
    std::vector<CrowdAtHead>& heap = book->heap;
    heap.clear();
    const shm::PoolRow& pool = state.pools[pass.pool];
    if (pool.idle != 0 && !pass.stopped && book->waits_at(pass.at_class)) {
        for (const uint32_t place : book->crowds_at[pass.at_class]) {
            const Crowd& crowd = book->crowds[place];
            if (!book->waits_here(crowd)) continue;
            heap.push_back({crowd.quality, place, crowd.claims.head_number()});
        }
        std::make_heap(heap.begin(), heap.end());
    }
    while (!heap.empty() && !pass.stopped && pool.idle != 0) {
        if (full()) return false;
        std::pop_heap(heap.begin(), heap.end());
        const uint32_t place = heap.back().crowd;
        if (!serve_head(place, provisioned)) {
            heap.pop_back();
            continue;
        }
        const Crowd& crowd = book->crowds[place];
        if (!book->waits_here(crowd)) {
            heap.pop_back();
        } else {
            heap.back().number = crowd.claims.head_number();
            std::push_heap(heap.begin(), heap.end());
        }
    }
    if (!pass.held_for_step) return true;
    pass.held_for_step = false;
    for (const uint32_t place : book->stalls_of_pool[pass.pool])
        book->stalls[place].held_for_step = false;
    return true;
}

// The first claim of the crowd onto idle slots. False if this step has none for the crowd.
bool Core::Parts::serve_head(uint32_t place, bool provisioned) {
    AccountPass& pass = book->pass;
    const Crowd& crowd = book->crowds[place];
    if (pass.at_class < kFreeClass && fanout_left(crowd) < crowd.units) return false;
    choose_slots(crowd, provisioned);
    std::vector<uint32_t>& chosen = book->chosen;
    if (chosen.size() < crowd.units) {
        if (!chosen.empty()) hold_back(crowd, provisioned);
        return false;
    }
    uint32_t to_confirm = 0;
    for (const uint32_t slot : chosen)
        to_confirm += state.slots[slot].session == kNoRow ? 0 : 1;
    const shm::PoolRow& pool = state.pools[pass.pool];
    if (!lease_row_left() ||
        (to_confirm != 0 && pool.unconfirmed + to_confirm > pool.unconfirmed_max)) {
        pass.stopped = true;
        return false;
    }
    const uint32_t claim = crowd.claims.head();
    backlog.remove(pass.pool, claim);
    leave_waiting(claim);
    shm::PoolRow& edited = edit.row(pool, kPoolHot);
    put(edited.waiting, edited.waiting - 1);
    shm::ClaimRow& row = edit.row(state.claims[claim], 1);
    put(row.account_class, pass.at_class);
    give_slots(claim, chosen, to_confirm);
    return true;
}

// The slots become the claim's: leased at once, or reserved if a worker must confirm.
void Core::Parts::give_slots(uint32_t claim, std::span<const uint32_t> slots, uint32_t to_confirm) {
    const SlotState to = to_confirm == 0 ? SlotState::kLeased : SlotState::kReserved;
    for (size_t unit = 0; unit < slots.size(); ++unit) {
        if (state.slots[slots[unit]].state != to) move_slot(slots[unit], to);
        shm::SlotRow& slot = edit.row(state.slots[slots[unit]], 1);
        put(slot.round, slot.round + 1);
        put(slot.holder_next, unit + 1 < slots.size() ? slots[unit + 1] : kNoRow);
    }
    put(edit.row(state.claims[claim], 1).first_slot, slots.front());
    if (to_confirm == 0) {
        grant(claim, slots.front());
    } else {
        reserve(claim);
    }
}

// Into book->chosen: the first idle slots that can serve the crowd, as many as it has units or
// as there are.
void Core::Parts::choose_slots(const Crowd& crowd, bool provisioned) {
    std::vector<uint32_t>& chosen = book->chosen;
    chosen.clear();
    const bool limited = crowd.account != kNoRow && !book->limits[crowd.account].empty();
    std::vector<uint32_t>& next = book->row_scratch;  // stall's place → its next idle slot
    const std::vector<uint32_t>& stalls = book->stalls_of_pool[crowd.pool];
    next.clear();
    for (const uint32_t place : stalls)
        next.push_back(can_serve(crowd, place, provisioned) ? book->stalls[place].idle.head
                                                            : kNoRow);
    while (chosen.size() < crowd.units) {
        size_t best = stalls.size();
        for (size_t at = 0; at < stalls.size(); ++at) {
            if (next[at] == kNoRow) continue;
            if (best == stalls.size() ||
                state.slots[next[at]].idle_order < state.slots[next[best]].idle_order) {
                best = at;
            }
        }
        if (best == stalls.size()) break;
        if (limited &&
            !labels_allow(crowd.account, crowd.pool, book->stalls[stalls[best]].labels, false)) {
            next[best] = kNoRow;
            continue;
        }
        chosen.push_back(next[best]);
        if (limited) count_labels(crowd.account, next[best], 1);
        next[best] = book->slot_links[next[best]].next;
    }
    if (!limited) return;
    for (const uint32_t slot : chosen)
        count_labels(crowd.account, slot, -1);
}

bool Core::Parts::can_serve(const Crowd& crowd, uint32_t place, bool provisioned) {
    const Stall& stall = book->stalls[place];
    return !stall.held_back && !stall.held_for_step && stall.idle.head != kNoRow &&
           book->labels.covers(stall.labels, crowd.base) &&
           (!provisioned || book->labels.covers(stall.labels, crowd.preferred));
}

// It found some slots and too few: what it could use is not given to smaller claims.
void Core::Parts::hold_back(const Crowd& crowd, bool provisioned) {
    for (const uint32_t place : book->stalls_of_pool[crowd.pool]) {
        if (!can_serve(crowd, place, provisioned)) continue;
        if (!labels_allow(crowd.account, crowd.pool, book->stalls[place].labels, false)) continue;
        (provisioned ? book->stalls[place].held_for_step : book->stalls[place].held_back) = true;
        book->pass.held_for_step = book->pass.held_for_step || provisioned;
    }
}

// Step 3, in order of accounts.
bool Core::Parts::reprioritise() {
    AccountPass& pass = book->pass;
    const shm::PoolRow& pool = state.pools[pass.pool];
    std::vector<std::pair<uint32_t, uint32_t>>& wanted = book->to_reprioritise;
    wanted.clear();
    for (const uint32_t place : book->tenants_of_pool[pass.pool]) {
        const uint32_t account = book->tenants[place].account;
        if (account < pass.next_account) continue;
        const int64_t balance = balance_at(account, pass.at_class);
        if (balance > pool.promote_threshold || balance < pool.demote_threshold) {
            wanted.emplace_back(account, place);
        }
    }
    std::sort(wanted.begin(), wanted.end());
    for (const auto& [account, place] : wanted) {
        pass.next_account = account;
        if (!reprioritise_account(account, place)) return false;
    }
    return true;
}

bool Core::Parts::reprioritise_account(uint32_t account, uint32_t place) {
    constexpr int64_t kOne = 1'000'000;
    const uint8_t p = book->pass.at_class;
    const shm::AccountRow& row = state.accounts[account];
    if ((row.flags & shm::AccountFlag::kConfigured) == 0) return true;
    const shm::PoolRow& pool = state.pools[book->pass.pool];
    const int64_t balance = balance_at(account, p);
    const auto net = [&] { return row.rate[p] - kOne * row.running[p]; };
    while (balance < pool.demote_threshold && net() < 0) {
        const uint32_t lease = book->tenant_leases.first(book->tenants[place].leases[p]);
        if (lease == kNoRow) break;
        if (full()) return false;
        move_class(lease, static_cast<uint8_t>(p + 1));
    }
    if (balance <= pool.promote_threshold || net() <= 0) return true;
    std::vector<uint32_t>& lower = book->row_scratch;
    lower.clear();
    for (uint32_t q = p + 1U; q < kClassesAndFree; ++q) {
        book->tenant_leases.each(book->tenants[place].leases[q],
                                 [&](uint32_t lease) { lower.push_back(lease); });
    }
    std::sort(lower.begin(), lower.end(), [&](uint32_t left, uint32_t right) {
        const Cost one = cost_of(left);
        const Cost other = cost_of(right);
        if (one != other) return one > other;
        return state.slots[state.leases[left].first_slot].number <
               state.slots[state.leases[right].first_slot].number;
    });
    for (const uint32_t lease : lower) {
        if (net() <= 0) break;
        if (full()) return false;
        if (may_be_promoted(lease)) move_class(lease, p);
    }
    return true;
}

bool Core::Parts::may_be_promoted(uint32_t row) const {
    const shm::LeaseRow& lease = state.leases[row];
    const Crowd& crowd = book->crowds[book->crowd_of_claim[book->claim_of_lease[row]]];
    if (lease.account_class == kFreeClass && fanout_left(crowd) < lease.units) return false;
    for (uint32_t slot = lease.first_slot; slot != kNoRow; slot = state.slots[slot].holder_next) {
        const uint32_t set = book->stalls[book->stall_of_slot[slot]].labels;
        if (!labels_allow(lease.account, lease.pool, set, true)) return false;
    }
    return true;
}

// Step 5: what its fan-out has stopped goes on in the free class, if it may.
void Core::Parts::spill_throttled() {
    AccountPass& pass = book->pass;
    if (!book->waits_at(pass.at_class)) return;
    for (const uint32_t place : book->crowds_at[pass.at_class]) {
        const Crowd& crowd = book->crowds[place];
        if (!book->waits_here(crowd) || fanout_left(crowd) >= crowd.units) continue;
        const uint8_t flags = state.accounts[crowd.account].flags;
        const bool refused = (flags & shm::AccountFlag::kFreeTasksDisabled) != 0;
        book->come_to_class(place, refused ? kNoClass : kFreeClass);
    }
}

}  // namespace dibs::core
