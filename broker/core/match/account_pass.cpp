// broker/core/match/account_pass.cpp -- runs the pass over an account pool, class by class.
//
// For each class: idle slots, reprioritise, preempt; then the free class.
//
// Every step may be cut where the log nears its end, and continues at that place in the next turn:
// each step looks at what is left to do, and finished work does not come back.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "broker/core/parts.hpp"

namespace dibs::core {

using Step = AccountPass::Step;

bool Crowds::pass_by_account(uint32_t pool) {
    AccountPass& pass = book()->pass;
    if (!preemption().hand_over_held(pool)) return false;
    if (pass.pool != pool) start_account_pass(pool);
    for (; pass.step != Step::kEnd; next_account_step()) {
        if (!account_step()) return false;
    }
    for (const uint32_t place : book()->crowds_of_pool[pool]) {
        Crowd& crowd = book()->crowds[place];
        if (crowd.holds_at != kNoClass && holds_in_vain(place)) pass.kept_in_vain = true;
        crowd.was_listed = crowd.waits_at != kNoClass;
        if (crowd.was_listed) crowd.examined_ns = turn().now_ns;
    }
    pass.pool = kNoRow;  // from here on claims wait in their crowds at once
    pass.requeued = pass.requeued || !book()->come_back.empty();
    for (const uint32_t claim : book()->come_back)
        wait_in_crowd(claim);
    book()->come_back.clear();
    pass.pool = pool;
    if (!matcher().end_impatient_of(pool)) return false;
    assert(book()->come_back.empty());
    const bool in_vain = pass.kept_in_vain || pass.fanout_freed;
    book()->service_has_ended = pass.stopped && state.pools[pool].waiting != 0;
    const bool again = pass.requeued || (in_vain && state.pools[pool].waiting != 0);
    pass = {};
    if (again) {
        matcher().touch(pool);
        matcher().looked_again = true;
    }
    return true;
}

// Behind a step that is done. Steps that would find nothing to do are left out.
void Crowds::next_account_step() {
    AccountPass& pass = book()->pass;
    pass.next_account = 0;
    switch (pass.step) {
        case Step::kProvisioned:
            pass.step = Step::kAny;
            return;
        case Step::kAny:
            pass.step = pass.at_class == kFreeClass ? Step::kEnd : Step::kReprioritise;
            return;
        case Step::kReprioritise: {
            const std::vector<uint32_t>& crowds = book()->crowds_at[pass.at_class];
            const bool some_wait = std::any_of(crowds.begin(), crowds.end(), [&](uint32_t place) {
                return book()->waits_here(book()->crowds[place]);
            });
            if (!some_wait) break;
            pass.step = Step::kSpill;
            if (preemption().preemption_possible()) {
                book()->ban_accounts();
                pass.step = Step::kPreempt;
            }
            return;
        }
        case Step::kPreempt:
            pass.step = Step::kSpill;
            return;
        case Step::kSpill:
            break;
        case Step::kStart:
            return enter_class();
        case Step::kEnd:
            return;
    }
    assert(pass.at_class < kFreeClass);
    ++pass.at_class;
    enter_class();
}

// The class, or the next one at which something waits or, while a lease may have to move, the next.
void Crowds::enter_class() {
    AccountPass& pass = book()->pass;
    const TenantWatch& watch = book()->watches[pass.pool];
    const bool none_moves = watch.due.empty() && watch.stale.empty();
    while (none_moves && pass.at_class < kFreeClass && !book()->waits_at(pass.at_class))
        ++pass.at_class;
    if (!book()->waits_at(pass.at_class)) {
        pass.step = pass.at_class == kFreeClass ? Step::kEnd : Step::kReprioritise;
    } else {
        pass.step = book()->has_two_steps(pass.at_class) ? Step::kProvisioned : Step::kAny;
    }
}

void Crowds::start_account_pass(uint32_t pool) {
    book()->pass = {.pool = pool, .step = Step::kStart};
    for (std::vector<uint32_t>& crowds : book()->crowds_at)
        crowds.clear();
    ++book()->walks;
    ledger().begin_watch(pool);
    for (const uint32_t place : book()->crowds_of_pool[pool]) {
        Crowd& crowd = book()->crowds[place];
        crowd.examined_ns = book()->examined_ns(crowd);
        crowd.holds_at = kNoClass;
        const uint32_t account = crowd.account;
        uint8_t best = kFreeClass;
        if (account != kNoRow) {
            if (book()->sees(account)) book()->best_of[account] = ledger().best_class(account);
            best = book()->best_of[account];
        }
        book()->come_to_class(place, class_of(crowd, best));
    }
    for (const uint32_t place : book()->stalls_of_pool[pool])
        book()->stalls[place].let_go();
}

uint8_t Crowds::class_now(const Crowd& crowd) const {
    return class_of(crowd, ledger().best_class(crowd.account));
}

// `best`: of its account.
uint8_t Crowds::class_of(const Crowd& crowd, uint8_t best) const {
    if (crowd.account == kNoRow) return kFreeClass;
    const shm::AccountRow& account = state.accounts[crowd.account];
    if (best < kFreeClass && fanout_left(crowd) == 0) best = kFreeClass;
    const bool refused = (account.flags & shm::AccountFlag::kFreeTasksDisabled) != 0;
    return best == kFreeClass && refused ? kNoClass : best;
}

bool Crowds::account_step() {
    AccountPass& pass = book()->pass;
    switch (pass.step) {
        case Step::kProvisioned:
            return serve_class(true);
        case Step::kAny:
            return serve_class(false);
        case Step::kReprioritise:
            return ledger().reprioritise();
        case Step::kPreempt:
            return preemption().preempt_for_class();
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
bool Crowds::serve_class(bool provisioned) {
    AccountPass& pass = book()->pass;
    CrowdHeads& heads = book()->heads;
    heads.clear();
    const shm::PoolRow& pool = state.pools[pass.pool];
    if (pool.idle != 0 && !pass.stopped && book()->waits_at(pass.at_class) && !all_held_back()) {
        for (const uint32_t place : book()->crowds_at[pass.at_class]) {
            const Crowd& crowd = book()->crowds[place];
            if (!book()->waits_here(crowd)) continue;
            heads.add({crowd.quality, place, crowd.claims.head_number()});
        }
        heads.arrange();
    }
    while (!heads.empty() && !pass.stopped && pool.idle != 0) {
        if (turn().full()) return false;
        const uint32_t place = heads.first().crowd;
        if (!serve_head(place, provisioned)) {
            heads.drop_first();
            if (book()->is_held_back) break;
            continue;
        }
        const Crowd& crowd = book()->crowds[place];
        if (!book()->waits_here(crowd)) {
            heads.drop_first();
        } else {
            heads.renew_first(crowd.claims.head_number());
        }
    }
    if (!pass.held_for_step) return true;
    pass.held_for_step = false;
    for (const uint32_t place : book()->stalls_of_pool[pass.pool])
        book()->stalls[place].held_for_step = false;
    return true;
}

// The first claim of the crowd onto idle slots. False if this step has none for the crowd.
bool Crowds::serve_head(uint32_t place, bool provisioned) {
    AccountPass& pass = book()->pass;
    const Crowd& crowd = book()->crowds[place];
    if (pass.at_class < kFreeClass && fanout_left(crowd) < crowd.units) return false;
    choose_slots(crowd, provisioned);
    std::vector<uint32_t>& chosen = book()->chosen;
    if (chosen.size() < crowd.units) {
        if (chosen.empty() || limits_stop(crowd)) return false;
        hold_back(place, provisioned);
        note_kept(crowd.claims.head());
        return false;
    }
    const shm::PoolRow& pool = state.pools[pass.pool];
    uint32_t to_confirm = 0;
    if (pool.kind == shm::PoolKind::kWorker) {
        for (const uint32_t slot : chosen)
            to_confirm += state.slots[slot].session == kNoRow ? 0 : 1;
    }
    if (!free_rows().lease_row_left() || (to_confirm != 0 && !may_ask(pool, to_confirm))) {
        pass.stopped = true;
        note_kept(crowd.claims.head());
        return false;
    }
    const uint32_t claim = crowd.claims.head();
    matcher().claim_stops_waiting(claim);
    put(edit().row(state.claims[claim], 1).account_class, pass.at_class);
    for (const uint32_t slot : chosen)
        book()->come_to_hold(crowd.account, slot);
    give_slots(claim, chosen, to_confirm);
    return true;
}

// The slots become the claim's: leased at once, or reserved if a worker must confirm.
void Crowds::give_slots(uint32_t claim, std::span<const uint32_t> given, uint32_t to_confirm) {
    const SlotState to = to_confirm == 0 ? SlotState::kLeased : SlotState::kReserved;
    const bool elastic = provisioning().is_elastic(state.claims[claim].pool);
    const bool at_once =
        to_confirm == 0 && !elastic && state.slots[given.front()].state == SlotState::kIdle;
    if (at_once) slots().lease_slots(given);
    for (size_t unit = 0; !at_once && unit < given.size(); ++unit) {
        if (state.slots[given[unit]].state != to) slots().move_slot(given[unit], to);
        shm::SlotRow& slot = edit().row(state.slots[given[unit]], 1);
        put(slot.round, slot.round + 1);
        put(slot.holder_next, unit + 1 < given.size() ? given[unit + 1] : kNoRow);
    }
    matcher().give(claim, given.front(), to);
    for (size_t unit = 0; elastic && unit < given.size(); ++unit)
        provisioning().slot_changes(given[unit]);
}

// Into book->chosen: the first idle slots that can serve the crowd, as many as it has units or
// as there are.
void Crowds::choose_slots(const Crowd& crowd, bool provisioned) {
    book()->chosen.clear();
    const bool limited = crowd.account != kNoRow && !book()->limits[crowd.account].empty();
    if (limited || !book()->has_stall_bits(crowd.pool)) {
        return choose_slots_slowly(crowd, provisioned, limited);
    }
    book()->look_at_stalls(crowd);
    const uint64_t fits = provisioned ? crowd.provisioned_by : crowd.served_by;
    const std::vector<uint32_t>& stalls = book()->stalls_of_pool[crowd.pool];
    uint32_t best = kNoRow;
    uint64_t best_order = 0;
    uint32_t found = 0;
    for (uint64_t bits = fits & book()->stall_bits[crowd.pool].idle; bits != 0; bits &= bits - 1) {
        const Stall& stall = book()->stalls[stalls[static_cast<size_t>(std::countr_zero(bits))]];
        if (stall.held_back || stall.held_for_step) continue;
        ++found;
        const uint64_t order = state.slots[stall.idle.head].idle_order;
        if (found == 1 || order < best_order) {
            best = stall.idle.head;
            best_order = order;
        }
    }
    if (found > 1 && crowd.units > 1) return choose_slots_slowly(crowd, provisioned, false);
    // Of too few, one says as much as all of them.
    const uint32_t wanted = state.pools[crowd.pool].idle < crowd.units ? 1 : crowd.units;
    for (uint32_t unit = 0; unit < wanted && best != kNoRow; ++unit) {
        book()->chosen.push_back(best);
        best = book()->slot_links[best].next;
    }
}

// From many stalls, or with a limit that each slot counts for.
void Crowds::choose_slots_slowly(const Crowd& crowd, bool provisioned, bool limited) {
    std::vector<uint32_t>& chosen = book()->chosen;
    std::vector<uint32_t>& next = book()->row_scratch;  // stall's place → its next idle slot
    const std::vector<uint32_t>& stalls = book()->stalls_of_pool[crowd.pool];
    next.clear();
    for (const uint32_t place : stalls)
        next.push_back(can_serve(crowd, place, provisioned) ? book()->stalls[place].idle.head
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
            !labels_allow(crowd.account, crowd.pool, book()->stalls[stalls[best]].labels, false)) {
            next[best] = kNoRow;
            continue;
        }
        chosen.push_back(next[best]);
        if (limited) count_labels(crowd.account, next[best], 1);
        next[best] = book()->slot_links[next[best]].next;
    }
    if (!limited) return;
    for (const uint32_t slot : chosen)
        count_labels(crowd.account, slot, -1);
}

bool Crowds::can_serve(const Crowd& crowd, uint32_t place, bool provisioned) {
    const Stall& stall = book()->stalls[place];
    return !stall.held_back && !stall.held_for_step && stall.idle.head != kNoRow &&
           book()->labels.covers(stall.labels, crowd.base) &&
           (!provisioned || book()->labels.covers(stall.labels, crowd.preferred));
}

// It found some slots and too few: are there enough idle ones, but its account's label limits leave
// it too few of all the pool's slots beside those chosen?
bool Crowds::limits_stop(const Crowd& crowd) {
    if (crowd.account == kNoRow || book()->limits[crowd.account].empty()) return false;
    std::vector<uint32_t>& stalls = book()->stall_scratch;
    stalls.clear();
    for (const uint32_t place : book()->stalls_of_pool[crowd.pool]) {
        const Stall& stall = book()->stalls[place];
        if (stall.slots != 0 && book()->labels.covers(stall.labels, crowd.base)) {
            stalls.push_back(place);
        }
    }
    std::sort(stalls.begin(), stalls.end(), [&](uint32_t left, uint32_t right) {
        return book()->labels.text(book()->stalls[left].labels) <
               book()->labels.text(book()->stalls[right].labels);
    });
    std::vector<uint32_t>& counted = book()->row_scratch;  // stalls' places, one for each slot
    counted.clear();
    const auto count = [&](uint32_t place, int32_t change) {
        count_label_set(crowd.account, crowd.pool, book()->stalls[place].labels, change);
    };
    for (const uint32_t slot : book()->chosen) {
        counted.push_back(book()->stall_of_slot[slot]);
        count(counted.back(), 1);
    }
    const auto chosen = static_cast<ptrdiff_t>(counted.size());
    bool refused = false;
    for (const uint32_t place : stalls) {
        const Stall& stall = book()->stalls[place];
        const auto taken = std::count(counted.begin(), counted.begin() + chosen, place);
        auto left = stall.slots - static_cast<uint32_t>(taken);
        for (; left != 0 && counted.size() < crowd.units; --left) {
            if (!labels_allow(crowd.account, crowd.pool, stall.labels, false)) break;
            counted.push_back(place);
            count(place, 1);
        }
        refused = refused || left != 0;
    }
    const bool stop = refused && counted.size() < crowd.units;
    for (const uint32_t place : counted)
        count(place, -1);
    return stop;
}

// It found some slots and too few: smaller claims do not get what it could use.
void Crowds::hold_back(uint32_t crowd_place, bool provisioned) {
    Crowd& crowd = book()->crowds[crowd_place];
    assert(crowd.waiting != 0 && crowd.units > 1);
    if (!provisioned) crowd.holds_at = book()->pass.at_class;
    for (const uint32_t place : book()->stalls_of_pool[crowd.pool]) {
        if (!can_serve(crowd, place, provisioned)) continue;
        if (!labels_allow(crowd.account, crowd.pool, book()->stalls[place].labels, false)) continue;
        Stall& stall = book()->stalls[place];
        (provisioned ? stall.held_for_step : stall.held_back) = true;
        if (!provisioned) stall.held_by = crowd_place;
        book()->pass.held_for_step = book()->pass.held_for_step || provisioned;
    }
    (void)all_held_back();
}

// At the end of a pass: it has held slots back, and since then other claims have used up its
// fan-out or what its label limits leave its account, by service, preemption or a promotion. In
// another pass it would hold back other slots, or none; or it can be served.
bool Crowds::holds_in_vain(uint32_t crowd_place) {
    const Crowd& crowd = book()->crowds[crowd_place];
    if (crowd.waiting == 0) return false;
    if (crowd.holds_at < kFreeClass && fanout_left(crowd) < crowd.units) return true;
    if (crowd.account == kNoRow || book()->limits[crowd.account].empty()) return false;
    const std::vector<uint32_t>& stalls = book()->stalls_of_pool[crowd.pool];
    for (const uint32_t place : stalls) {
        const Stall& stall = book()->stalls[place];
        if (stall.held_by != crowd_place) continue;
        if (!labels_allow(crowd.account, crowd.pool, stall.labels, false)) return true;
    }
    const auto mark_its_own = [&](bool held_back) {
        for (const uint32_t place : stalls) {
            Stall& stall = book()->stalls[place];
            if (stall.held_by == crowd_place) stall.held_back = held_back;
        }
    };
    mark_its_own(false);
    choose_slots(crowd, false);
    mark_its_own(true);
    const size_t found = book()->chosen.size();
    return found == 0 || found >= crowd.units || limits_stop(crowd);
}

// The claim keeps idle slots from other claims. An impatient one ends with the pass, and then they
// are free.
void Crowds::note_kept(uint32_t claim) {
    if ((state.claims[claim].flags & kImpatient) != 0) book()->pass.kept_in_vain = true;
}

// Every idle slot is kept for a claim: this step is over.
bool Crowds::all_held_back() {
    const std::vector<uint32_t>& stalls = book()->stalls_of_pool[book()->pass.pool];
    book()->is_held_back = std::all_of(stalls.begin(), stalls.end(), [&](uint32_t place) {
        const Stall& stall = book()->stalls[place];
        return stall.idle.head == kNoRow || stall.held_back || stall.held_for_step;
    });
    return book()->is_held_back;
}

// Step 5: what its fan-out has stopped goes on in the free class, if it may.
void Crowds::spill_throttled() {
    AccountPass& pass = book()->pass;
    if (!book()->waits_at(pass.at_class)) return;
    for (const uint32_t place : book()->crowds_at[pass.at_class]) {
        const Crowd& crowd = book()->crowds[place];
        if (!book()->waits_here(crowd) || fanout_left(crowd) >= crowd.units) continue;
        const uint8_t flags = state.accounts[crowd.account].flags;
        const bool refused = (flags & shm::AccountFlag::kFreeTasksDisabled) != 0;
        book()->come_to_class(place, refused ? kNoClass : kFreeClass);
    }
}

}  // namespace dibs::core
