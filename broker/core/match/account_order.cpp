// broker/core/match/account_order.cpp -- updates the book as claims, slots and leases come and go.
//
// A claim is a member of its crowd as long as its row lives. Its slots count for fan-out and label
// limits from the moment they are chosen (occupy) until they are given up (vacate); a lease pays,
// and stands among the leases, from its grant (begin_run) to the decision to end it (end_run).
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

template <class Links>
void link_before(Links& links, Ends& ends, uint32_t row, uint32_t at) {
    const uint32_t previous = at == kNoRow ? ends.tail : links[at].previous;
    links[row] = {at, previous};
    (previous == kNoRow ? ends.head : links[previous].next) = row;
    (at == kNoRow ? ends.tail : links[at].previous) = row;
}

template <class Links>
void unlink(Links& links, Ends& ends, uint32_t row) {
    const auto link = links[row];
    (link.previous == kNoRow ? ends.head : links[link.previous].next) = link.next;
    (link.next == kNoRow ? ends.tail : links[link.next].previous) = link.previous;
}

// A run of the one list, whose links stay as they are, to the end of the other.
template <class Links>
void splice(Links& links, Ends& from, Ends& to, uint32_t first, uint32_t last) {
    const uint32_t before = links[first].previous;
    const uint32_t behind = links[last].next;
    (before == kNoRow ? from.head : links[before].next) = behind;
    (behind == kNoRow ? from.tail : links[behind].previous) = before;
    links[first].previous = to.tail;
    links[last].next = kNoRow;
    (to.tail == kNoRow ? to.head : links[to.tail].next) = first;
    to.tail = last;
}

void leave_list(std::vector<uint32_t>& list, uint32_t place) {
    assert(place < list.size());
    list[place] = list.back();
    list.pop_back();
}

}  // namespace

// --- claims

// Interns what the claim brings, beside texts of so many blocks. Not kOk: nothing has changed.
Reason Crowds::take_terms(const ClaimTerms& terms,
                          uint32_t session,
                          uint32_t blocks,
                          TermRows* rows) {
    if (!LabelSets::well_formed(terms.labels) || !LabelSets::well_formed(terms.provisionable) ||
        terms.account.size() > shm::kNameMax) {
        return Reason::kPayload;
    }
    const bool is_named = !terms.account.empty();
    const uint32_t known =
        is_named ? ledger().find_account(terms.account) : state.sessions[session].account;
    const bool is_new = is_named && known == kNoRow;
    // A name that an account has has been looked at.
    if (is_new && LabelSets::has_zero(terms.account)) return Reason::kPayload;
    LabelSets& labels = book()->labels;
    const auto intern = [&](std::span<const std::string_view> given, uint32_t* row) {
        if (labels.intern(given, row)) return true;
        book()->sweep();
        return labels.intern(given, row);
    };
    if (!intern(terms.labels, &rows->base)) return Reason::kTablesFull;
    labels.hold(rows->base);  // the next one may sweep
    const bool both = intern(terms.provisionable, &rows->preferred);
    labels.drop(rows->base);
    if (!both) return Reason::kTablesFull;
    rows->account = is_new ? ledger().make_account(terms.account) : known;
    if (is_new && rows->account == kNoRow) return Reason::kTablesFull;
    if (rows->account != kNoRow) ++book()->account_uses[rows->account];
    if (arena().has_blocks(blocks)) return Reason::kOk;
    ledger().release_account(
        rows->account);  // new labels have taken their part of the arena by now
    return Reason::kArenaFull;
}

void Crowds::join_crowd(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    const uint32_t crowd = book()->crowd_for(
        claim.pool, claim.account, claim.label_set, claim.preferred_set, claim.units, hash_seed());
    book()->crowd_of_claim[row] = crowd;
    ++book()->crowds[crowd].members;
}

void Crowds::leave_crowd(uint32_t row) {
    Crowd& crowd = book()->crowds[book()->crowd_of_claim[row]];
    assert(crowd.in_use && crowd.members != 0);
    --crowd.members;
    book()->crowd_of_claim[row] = kNoRow;
}

void Crowds::wait_in_crowd(uint32_t row) {
    const uint32_t place = book()->crowd_of_claim[row];
    Crowd& crowd = book()->crowds[place];
    crowd.claims.insert(state.claims[row].arrival, row);
    book()->count_waiting(crowd.account, 1);
    if (crowd.waiting++ != 0) return;
    crowd.waits_at = kNoClass;
    crowd.was_listed = false;
    std::vector<uint32_t>& crowds = book()->crowds_of_pool[crowd.pool];
    crowd.place = static_cast<uint32_t>(crowds.size());
    crowds.push_back(place);
}

void Crowds::leave_waiting(uint32_t row) {
    Crowd& crowd = book()->crowds[book()->crowd_of_claim[row]];
    crowd.claims.remove(state.claims[row].arrival);
    book()->count_waiting(crowd.account, -1);
    if (--crowd.waiting != 0) return;
    crowd.examined_ns = book()->examined_ns(crowd);
    crowd.was_listed = false;
    std::vector<uint32_t>& crowds = book()->crowds_of_pool[crowd.pool];
    leave_list(crowds, crowd.place);
    if (crowd.place < crowds.size()) book()->crowds[crowds[crowd.place]].place = crowd.place;
    crowd.place = kNoRow;
}

// A claim of a pool ordered by account: its row, or kNoRow.
uint32_t Matcher::find_claim(uint64_t number) const {
    if (!book()) return kNoRow;
    return book()->claim_by_number.find(
        number_hash(number), [&](uint32_t row) { return state.claims[row].arrival == number; });
}

// A new claim's part of its row.
void Crowds::bring_terms(uint32_t row, const Claim& command, const TermRows& rows) {
    const ClaimTerms& terms = terms_of(command);
    shm::ClaimRow& claim = edit().row(state.claims[row], kClaimRunLines);
    put(claim.account, rows.account);
    put(claim.label_set, rows.base);
    put(claim.preferred_set, rows.preferred);
    put(claim.account_class, kFreeClass);
    put(claim.preempt_mode, terms.preempt_mode);
    put(claim.preempt_grace_ns, terms.preempt_grace_ns);
    if (terms.requeue) put(claim.flags, claim.flags | uint32_t{shm::ClaimFlag::kRequeue});
    put(claim.confirmed_ns, turn().event_time(terms.confirmed_ns));
    put(claim.carried_cost, kNoRow);
    put(claim.lease, kNoRow);
    book()->claim_by_number.insert(number_hash(claim.arrival), row);
    join_crowd(row);
}

// Into its crowd; while a pass runs over the pool, when that has ended: it has no class in it.
void Crowds::wait_by_account(uint32_t row) {
    if (book()->pass.pool == state.claims[row].pool) {
        book()->come_back.push_back(row);
    } else {
        wait_in_crowd(row);
    }
}

// A claim's row is about to be freed.
void Crowds::forget_claim(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    leave_crowd(row);
    book()->claim_by_number.remove(number_hash(claim.arrival), row);
    arena().free(claim.carried_cost, claim.carried_cost == kNoRow ? 0 : sizeof(Cost));
    ledger().release_account(claim.account);
}

void Crowds::join_stall(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    const uint32_t stall = book()->stall_for(slot.pool, slot.label_set);
    assert(book()->stall_of_slot[row] == kNoRow);
    book()->stall_of_slot[row] = stall;
    ++book()->stalls[stall].slots;
}

void Crowds::leave_stall(uint32_t row) {
    Stall& stall = book()->stalls[book()->stall_of_slot[row]];
    assert(stall.in_use && stall.slots != 0);
    --stall.slots;
    book()->stall_of_slot[row] = kNoRow;
}

void Crowds::relabel(uint32_t row, uint32_t set) {
    const shm::SlotRow& slot = state.slots[row];
    if (book()->stall_of_slot[row] != kNoRow) {
        if (slot.label_set == set) return;
        const uint32_t claim = reports().counts_on(row);
        const uint32_t account = claim == kNoRow ? kNoRow : state.claims[claim].account;
        const bool idle = slot.state == SlotState::kIdle;
        const bool leased = slot.state == SlotState::kLeased;
        if (idle) leave_state(row, SlotState::kIdle, SlotState::kRecovering);
        if (leased) leave_leased(row);
        if (account != kNoRow) count_labels(account, row, -1);
        leave_stall(row);
        put(edit().row(slot, 1U << 1U).label_set, set);
        join_stall(row);
        if (account != kNoRow) {
            count_labels(account, row, 1);
            book()->excuse_holdings(account);  // it has not come by it
        }
        // Its place among the idle ones goes with it.
        if (idle) stand_idle(row);
        if (leased) stand_by_fence(row);
        return;
    }
    put(edit().row(slot, 1U << 1U).label_set, set);
    join_stall(row);
}

// Where its place in the order of idle slots puts it.
void Crowds::stand_idle(uint32_t row) {
    Stall& stall = book()->stalls[book()->stall_of_slot[row]];
    const uint64_t order = state.slots[row].idle_order;
    uint32_t at = kNoRow;
    if (stall.idle.tail != kNoRow && state.slots[stall.idle.tail].idle_order > order) {
        at = stall.idle.head;
        while (state.slots[at].idle_order < order)
            at = book()->slot_links[at].next;
    }
    const bool is_first = stall.idle.head == kNoRow;
    link_before(book()->slot_links, stall.idle, row, at);
    if (is_first) book()->mark_idle(stall);
}

Reason Crowds::intern_announced(std::span<const std::string_view> labels) {
    if (!LabelSets::well_formed(labels)) return Reason::kPayload;
    if (book()->labels.intern(labels, &book()->announced_set)) return Reason::kOk;
    book()->sweep();
    return book()->labels.intern(labels, &book()->announced_set) ? Reason::kOk
                                                                 : Reason::kTablesFull;
}

// Behind all that are leased.
void Crowds::stand_leased(uint32_t row) {
    link_before(book()->slot_links, book()->stalls[book()->stall_of_slot[row]].leased, row, kNoRow);
}

// Where its grant puts it.
void Crowds::stand_by_fence(uint32_t row) {
    Stall& stall = book()->stalls[book()->stall_of_slot[row]];
    uint32_t at = kNoRow;
    uint32_t before = stall.leased.tail;
    while (before != kNoRow && state.slots[before].fence > state.slots[row].fence) {
        at = before;
        before = book()->slot_links[before].previous;
    }
    link_before(book()->slot_links, stall.leased, row, at);
}

void Crowds::leave_leased(uint32_t row) {
    unlink(book()->slot_links, book()->stalls[book()->stall_of_slot[row]].leased, row);
}

// Slots that stand side by side in a stall, idle or leased, to the end of the other list.
void Crowds::change_lists(uint32_t first, uint32_t last, bool to_leased) {
    Stall& stall = book()->stalls[book()->stall_of_slot[first]];
    Ends& from = to_leased ? stall.idle : stall.leased;
    Ends& to = to_leased ? stall.leased : stall.idle;
    const bool had_idle = stall.idle.head != kNoRow;
    splice(book()->slot_links, from, to, first, last);
    if (had_idle != (stall.idle.head != kNoRow)) book()->mark_idle(stall);
}

void Crowds::leave_idle(uint32_t row) {
    Stall& stall = book()->stalls[book()->stall_of_slot[row]];
    unlink(book()->slot_links, stall.idle, row);
    if (stall.idle.head == kNoRow) book()->mark_idle(stall);
}

void Crowds::leave_state(uint32_t row, SlotState from, SlotState to) {
    if (from == SlotState::kLeased) leave_leased(row);
    if (from == SlotState::kIdle) leave_idle(row);
    if (to == SlotState::kFree) leave_stall(row);
}

void Crowds::enter_state(uint32_t row, SlotState from, SlotState to) {
    const shm::SlotRow& slot = state.slots[row];
    if (from == SlotState::kFree) {
        if (book()->stall_of_slot[row] == kNoRow) join_stall(row);
    }
    if (to == SlotState::kIdle) stand_idle(row);
    if (to == SlotState::kLeased) stand_leased(row);
    if (slot.session != kNoRow || state.pools[slot.pool].kind == shm::PoolKind::kCounted) return;
    reports().watch_reported(row);
}

// A leased slot's lease into the lists, or out of them. False: it is in none.
bool Crowds::list_slot(uint32_t row, bool in) {
    const shm::SlotRow& slot = state.slots[row];
    if (slot.state != SlotState::kLeased) return false;
    if ((state.leases[slot.holder].flags & shm::LeaseFlag::kTaken) != 0) return false;
    assert(state.leases[slot.holder].pool == slot.pool);
    ledger().list_lease(slot.holder, in);
    return true;
}

void Crowds::leave_session(uint32_t row) {
    ledger().release_account(state.sessions[row].account);
    book()->sweep();
}

// --- limits

bool Crowds::labels_allow(uint32_t account, uint32_t pool, uint32_t set, bool at_limit) const {
    if (account == kNoRow || book()->limits[account].empty()) return true;
    const auto& held = book()->label_units[account];
    bool allow = true;
    each_counted_label(book()->labels.text(set), [&](std::string_view label) {
        for (const LabelLimit& limit : book()->limits[account]) {
            if (!label.starts_with(limit.prefix)) continue;
            const auto known = held.find(label_key(pool, label));
            const uint32_t units = known == held.end() ? 0 : known->second;
            allow = allow && (units < limit.limit || (at_limit && units == limit.limit));
        }
    });
    return allow;
}

void Crowds::count_labels(uint32_t account, uint32_t slot, int32_t change) {
    if (account == kNoRow || book()->limits[account].empty()) return;
    const Stall& stall = book()->stalls[book()->stall_of_slot[slot]];
    count_label_set(account, stall.pool, stall.labels, change);
}

// Of an account that has limits.
void Crowds::count_label_set(uint32_t account, uint32_t pool, uint32_t set, int32_t change) {
    auto& held = book()->label_units[account];
    each_counted_label(book()->labels.text(set), [&](std::string_view label) {
        uint32_t& units = held[label_key(pool, label)];
        assert(int64_t{units} + change >= 0);
        units = static_cast<uint32_t>(static_cast<int64_t>(units) + change);
    });
}

// Its limits have changed: counts from all that it holds. Rare, hence by a scan.
void Crowds::recount_labels(uint32_t account) {
    book()->label_units[account].clear();
    if (book()->limits[account].empty()) return;
    for (uint32_t row = 0; row < state.claims.size(); ++row) {
        const shm::ClaimRow& claim = state.claims[row];
        if (claim.state == shm::ClaimState::kFree || claim.account != account) continue;
        if (!matcher().by_account(claim.pool)) continue;
        for (uint32_t slot = occupied_slot(row); slot != kNoRow; slot = next_occupied(row, slot))
            count_labels(account, slot, 1);
    }
}

// The first slot that counts as held by the claim, or kNoRow.
uint32_t Crowds::occupied_slot(uint32_t row) const {
    const shm::ClaimRow& claim = state.claims[row];
    switch (claim.state) {
        case shm::ClaimState::kReserved:
        case shm::ClaimState::kPromised:
            return claim.first_slot;
        case shm::ClaimState::kRunning: {
            const shm::LeaseRow& lease = state.leases[claim.lease];
            return (lease.flags & shm::LeaseFlag::kTaken) != 0 ? kNoRow : lease.first_slot;
        }
        default:
            return kNoRow;
    }
}

uint32_t Crowds::next_occupied(uint32_t row, uint32_t slot) const {
    const bool one = state.claims[row].state == shm::ClaimState::kPromised;
    return one ? kNoRow : state.slots[slot].holder_next;
}

uint32_t Crowds::fanout_left(const Crowd& crowd) const {
    const uint32_t most = state.accounts[crowd.account].fanout_max;
    if (most == 0) return kNoRow;
    const uint32_t held = book()->fanouts[crowd.fanout].units;
    return held < most ? most - held : 0;
}

void Crowds::count_fanout(uint32_t claim, uint8_t at_class, int32_t change) {
    if (at_class >= kFreeClass) return;
    Fanout& fanout = book()->fanouts[book()->crowds[book()->crowd_of_claim[claim]].fanout];
    assert(change > 0 || fanout.units >= state.claims[claim].units);
    fanout.units = static_cast<uint32_t>(static_cast<int64_t>(fanout.units) +
                                         int64_t{change} * state.claims[claim].units);
    if (change > 0 || fanout.pool != book()->pass.pool || fanout.account == kNoRow) return;
    if (state.accounts[fanout.account].fanout_max != 0) book()->pass.fanout_freed = true;
}

void Crowds::occupy(uint32_t claim, uint32_t first_slot, int32_t change) {
    const shm::ClaimRow& row = state.claims[claim];
    count_fanout(claim, row.account_class, change);
    if (row.account == kNoRow || book()->limits[row.account].empty()) return;
    for (uint32_t unit = 0, slot = first_slot; unit < row.units; ++unit) {
        count_labels(row.account, slot, change);
        slot = state.slots[slot].holder_next;
    }
}

// Does the slot lack a label that the claim prefers?
bool Crowds::lacks_preferred(uint32_t claim, uint32_t slot) {
    const uint32_t stall = book()->stall_of_slot[slot];
    return !book()->labels.covers(book()->stalls[stall].labels, state.claims[claim].preferred_set);
}

}  // namespace dibs::core
