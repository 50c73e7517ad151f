// broker/core/match/invariants.cpp -- states what holds for crowds, stalls, and what they are of.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/invariants.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "broker/core/ledger/invariants.hpp"

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;
namespace SlotFlag = shm::SlotFlag;

namespace {

// The slot has no holder, or its lease is being taken for a better claim.
bool is_given_up(const State& state, const shm::SlotRow& slot) {
    if (slot.state == SlotState::kReserved) return false;
    return slot.state != SlotState::kLeased || slot.holder == kNoRow ||
           (state.leases[slot.holder].flags & shm::LeaseFlag::kTaken) != 0;
}

bool is_promised(const State& state, uint32_t claim, uint32_t slot) {
    return claim < state.claims.size() && state.claims[claim].state == ClaimState::kPromised &&
           state.claims[claim].first_slot == slot;
}

// Its worker has said ready. A free slot that nothing else stops is held over, until its worker may
// be asked.
void waits_for_admission(const Core::Parts& parts, uint32_t row, const Subject& it) {
    constexpr auto kStops = static_cast<uint8_t>(SlotFlag::kProtected | SlotFlag::kUnqualified);
    const shm::SlotRow& slot = parts.state.slots[row];
    if ((slot.flags & kStops) != 0 || slot.holder != kNoRow) return;
    it.expect(parts.is_held_over(row), "has said ready, is not idle, and held over for nobody");
    const bool is_due = parts.dirty.first(slot.pool) == slot.pool;  // a pass comes
    it.expect(is_due || !may_ask(parts.state.pools[slot.pool], 1),
              "is held over though its worker may be asked");
}

// A worker without a session that holds nothing has a time at which it is forgotten; no other
// worker has. No other is assigned without being asked.
void reported(const Core::Parts& parts, uint32_t row, bool is_there, const Subject& it) {
    const shm::SlotRow& slot = parts.state.slots[row];
    const bool is_reported = is_there && slot.session == kNoRow &&
                             slot.order == shm::OrderState::kNone &&
                             parts.state.pools[slot.pool].kind == shm::PoolKind::kWorker;
    const Timers& timers = parts.book->forgotten;
    const bool has_timer = timers.has(TimerKind::kKept, row);
    it.expect(is_reported || !has_timer, "is to be forgotten and not reported");
    it.expect(is_reported || !is_there || (slot.flags & SlotFlag::kAssigned) == 0,
              "is assigned and not reported");
    const bool is_held = slot.state == SlotState::kLeased || slot.state == SlotState::kReserved ||
                         being_killed_for(slot);
    if (!is_reported || is_held) return;
    it.expect(has_timer && timers.due_ns(TimerKind::kKept, row) <= parts.forgotten_at(slot),
              "holds nothing and is not forgotten in time");
}

}  // namespace

void slot_in_book(const Core::Parts& parts, uint32_t row, Wrongs* wrongs) {
    const AccountBook& book = *parts.book;
    const shm::SlotRow& slot = parts.state.slots[row];
    const bool is_there = slot.state != SlotState::kFree && parts.by_account(slot.pool);
    const Subject it(wrongs, "slot row", row);
    const uint32_t place = book.stall_of_slot[row];
    const uint32_t claim = book.promised_to[row];
    reported(parts, row, is_there, it);
    it.expect(claim == kNoRow || (is_there && is_promised(parts.state, claim, row)),
              "is promised to a claim that does not wait for it");
    if (!is_there) return it.expect(place == kNoRow, "is in a stall and not there");
    it.expect(place < book.stalls.size() && book.stalls[place].in_use &&
                  book.stalls[place].pool == slot.pool &&
                  book.stalls[place].labels == slot.label_set,
              "is in a stall with other labels");
    it.expect(slot.state != SlotState::kIdle || claim == kNoRow, "is idle although it is promised");
    if ((slot.flags & SlotFlag::kSaidReady) != 0) waits_for_admission(parts, row, it);
}

void claim_in_book(const Core::Parts& parts, uint32_t row, Wrongs* wrongs) {
    const AccountBook& book = *parts.book;
    const shm::ClaimRow& claim = parts.state.claims[row];
    const uint32_t place = book.crowd_of_claim[row];
    const Subject it(wrongs, "claim", claim.arrival);
    if (claim.state == ClaimState::kFree || !parts.by_account(claim.pool)) {
        return it.expect(place == kNoRow, "is in a crowd and not there");
    }
    it.expect(parts.find_claim(claim.arrival) == row, "is not found by its number");
    if (place >= book.crowds.size()) return it.expect(false, "is in no crowd");
    const Crowd& crowd = book.crowds[place];
    it.expect(crowd.in_use && crowd.pool == claim.pool && crowd.account == claim.account &&
                  crowd.base == claim.label_set && crowd.preferred == claim.preferred_set &&
                  crowd.units == claim.units,
              "is in a crowd that is not like it");
    if (claim.state == ClaimState::kPromised) {
        it.expect(book.promised_to[claim.first_slot] == row,
                  "is promised a slot that is promised to another");
        it.expect(is_given_up(parts.state, parts.state.slots[claim.first_slot]),
                  "is promised a slot that somebody keeps");
    }
    claim_in_ledger(parts, row, wrongs);
}

namespace {

class BookInvariants {
  public:
    BookInvariants(const Core::Parts& parts, Wrongs* wrongs)
        : parts_(parts),
          state_(parts.state),
          book_(*parts.book),
          wrongs_(wrongs),
          of_stall_(book_.stalls.size()),
          of_crowd_(book_.crowds.size()),
          of_fanout_(book_.fanouts.size()),
          assigned_(state_.pools.size()) {}

    void check() {
        held_over();
        count();
        stalls();
        assignments();
        crowds();
    }

  private:
    struct OfStall {
        uint32_t slots = 0;
        uint32_t idle = 0;
        uint32_t leased = 0;
        std::array<uint32_t, kClassesAndFree> candidates{};
    };
    struct OfCrowd {
        uint32_t members = 0;
        uint32_t waiting = 0;
        uint32_t late = 0;  // that wait again since the pass began
    };
    struct OfFanout {
        uint32_t crowds = 0;
        uint32_t units = 0;
        bool has_newcomers = false;  // some of them came under its limit
    };

    [[nodiscard]] Subject of_pool(uint32_t pool) const {
        return {wrongs_, "pool", name_of(state_.pools[pool])};
    }
    void held_over();
    void count();
    void count_claim(uint32_t row);
    void stalls();
    void stall_lists(uint32_t stall, const Subject& it);
    template <class Order>
    [[nodiscard]] bool is_list(uint32_t stall,
                               const Ends& ends,
                               SlotState state,
                               uint32_t wanted,
                               const Order& order) const;
    void assignments();
    void crowds();
    void crowd(uint32_t place, const Subject& it);
    void waiting_claims(uint32_t place, const Subject& it);
    void stalls_of_crowd(const Crowd& crowd, const Subject& it);

    const Core::Parts& parts_;
    const State& state_;
    AccountBook& book_;  // its queries change what it caches
    Wrongs* wrongs_;
    std::vector<OfStall> of_stall_;
    std::vector<OfCrowd> of_crowd_;
    std::vector<OfFanout> of_fanout_;
    std::vector<uint32_t> assigned_;  // pool → slots whose workers have not confirmed
};

// The list may name slots that are held over no more, and rows that are another pool's by now.
void BookInvariants::held_over() {
    std::vector<uint32_t> listed(state_.slots.size());
    for (uint32_t pool = 0; pool < state_.counters->pools; ++pool) {
        for (const uint32_t row : book_.held_over[pool])
            listed[row] += state_.slots[row].pool == pool ? 1 : 0;
    }
    for (uint32_t row = 0; row < listed.size(); ++row) {
        const Subject it(wrongs_, "slot row", row);
        it.expect(listed[row] <= 1, "is listed twice as held over");
        it.expect(listed[row] != 0 || !parts_.is_held_over(row),
                  "is held over for a claim and would never be handed over");
    }
}

void BookInvariants::count() {
    for (uint32_t row = 0; row < state_.slots.size(); ++row) {
        const shm::SlotRow& slot = state_.slots[row];
        if (book_.stall_of_slot[row] == kNoRow) continue;
        OfStall& counted = of_stall_[book_.stall_of_slot[row]];
        ++counted.slots;
        counted.idle += slot.state == SlotState::kIdle ? 1 : 0;
        counted.leased += slot.state == SlotState::kLeased ? 1 : 0;
        assigned_[slot.pool] += (slot.flags & SlotFlag::kAssigned) != 0 ? 1 : 0;
    }
    for (uint32_t row = 0; row < state_.leases.size(); ++row) {
        const shm::LeaseRow& lease = state_.leases[row];
        if (!is_paid_for(parts_, row) || !parts_.may_be_preempted(row)) continue;
        ++of_stall_[book_.stall_of_slot[lease.first_slot]].candidates[lease.account_class];
    }
    for (uint32_t row = 0; row < state_.claims.size(); ++row)
        if (book_.crowd_of_claim[row] != kNoRow) count_claim(row);
    for (const uint32_t claim : book_.come_back)
        if (book_.crowd_of_claim[claim] != kNoRow) ++of_crowd_[book_.crowd_of_claim[claim]].late;
    const auto claims = static_cast<size_t>(
        std::count_if(book_.crowd_of_claim.begin(), book_.crowd_of_claim.end(), [](uint32_t crowd) {
            return crowd != kNoRow;
        }));
    Subject(wrongs_, "claims").expect_count("by number", claims, book_.claim_by_number.size());
}

void BookInvariants::count_claim(uint32_t row) {
    const shm::ClaimRow& claim = state_.claims[row];
    OfCrowd& counted = of_crowd_[book_.crowd_of_claim[row]];
    ++counted.members;
    counted.waiting += claim.state == ClaimState::kWaiting ? 1 : 0;
    const uint32_t slot = parts_.occupied_slot(row);
    if (slot == kNoRow || claim.account_class >= kFreeClass) return;
    OfFanout& fanout = of_fanout_[book_.crowds[book_.crowd_of_claim[row]].fanout];
    fanout.units += claim.units;
    const bool came_under =
        claim.account != kNoRow && book_.held_since[slot] == book_.limits_set[claim.account];
    fanout.has_newcomers = fanout.has_newcomers || came_under;
}

void BookInvariants::stalls() {
    std::vector<uint32_t> counts(state_.pools.size());
    for (uint32_t row = 0; row < book_.stalls.size(); ++row) {
        const Stall& stall = book_.stalls[row];
        const Subject it(wrongs_, "stall", row);
        it.expect(stall.in_use || of_stall_[row].slots == 0, "is free and has slots");
        if (!stall.in_use) continue;
        ++counts[stall.pool];
        it.expect(stall.slots == of_stall_[row].slots, "counts its slots wrong");
        const std::vector<uint32_t>& places = book_.stalls_of_pool[stall.pool];
        it.expect(stall.place < places.size() && places[stall.place] == row,
                  "is at another place of its pool");
        const uint32_t known = book_.stall_by_key.find(
            numbers_hash(stall.pool, stall.labels), [&](uint32_t other) { return other == row; });
        it.expect(known == row, "is not found by its labels");
        stall_lists(row, it);
    }
    for (uint32_t pool = 0; pool < state_.pools.size(); ++pool) {
        const std::vector<uint32_t>& places = book_.stalls_of_pool[pool];
        of_pool(pool).expect(places.size() == counts[pool], "has another number of stalls");
        uint64_t idle = 0;
        for (size_t place = 0; place < places.size() && place < 64; ++place)
            idle |= uint64_t{book_.stalls[places[place]].idle.head != kNoRow} << place;
        of_pool(pool).expect(idle == book_.stall_bits[pool].idle,
                             "marks another stall as having idle slots");
    }
}

// Walked as far as it has been counted, back links and all.
template <class Order>
bool BookInvariants::is_list(
    uint32_t stall, const Ends& ends, SlotState state, uint32_t wanted, const Order& order) const {
    uint32_t found = 0;
    uint32_t previous = kNoRow;
    uint32_t slot = ends.head;
    for (; slot < state_.slots.size() && found < wanted; slot = book_.slot_links[slot].next) {
        const bool stands =
            book_.slot_links[slot].previous == previous && book_.stall_of_slot[slot] == stall &&
            state_.slots[slot].state == state &&
            (previous == kNoRow || order(state_.slots[previous], state_.slots[slot]));
        if (!stands) return false;
        previous = slot;
        ++found;
    }
    return found == wanted && slot == kNoRow && ends.tail == previous;
}

void BookInvariants::stall_lists(uint32_t row, const Subject& it) {
    using Slot = shm::SlotRow;
    const Stall& stall = book_.stalls[row];
    const OfStall& counted = of_stall_[row];
    it.expect(is_list(row,
                      stall.idle,
                      SlotState::kIdle,
                      counted.idle,
                      [](const Slot& left, const Slot& right) {
                          return left.idle_order < right.idle_order;
                      }),
              "lists its idle slots wrong");
    it.expect(
        is_list(row,
                stall.leased,
                SlotState::kLeased,
                counted.leased,
                [](const Slot& left, const Slot& right) { return left.fence <= right.fence; }),
        "lists its leased slots wrong");
    for (uint32_t at_class = 0; at_class < kClassesAndFree; ++at_class) {
        const auto is_own = [&](uint32_t lease) {
            return parts_.may_be_preempted(lease) &&
                   state_.leases[lease].account_class == at_class &&
                   book_.stall_of_slot[state_.leases[lease].first_slot] == row;
        };
        it.expect(
            is_cheapest_first(parts_,
                              book_.stall_leases,
                              stall.leases[at_class],
                              counted.candidates[at_class],
                              is_own),
            [&] { return "lists its candidates of class " + std::to_string(at_class) + " wrong"; });
    }
}

void BookInvariants::assignments() {
    for (uint32_t pool = 0; pool < state_.counters->pools; ++pool) {
        uint32_t found = 0;
        TimeNs last_ns = 0;
        bool holds = true;
        for (uint32_t row = book_.assignments.head(pool);
             row != kNoRow && holds && found <= assigned_[pool];
             row = book_.assignments.next(row)) {
            const shm::SlotRow& slot = state_.slots[row];
            holds = slot.pool == pool && (slot.flags & SlotFlag::kAssigned) != 0 &&
                    state_.leases[slot.holder].granted_ns >= last_ns;
            if (holds) last_ns = state_.leases[slot.holder].granted_ns;
            ++found;
        }
        of_pool(pool).expect(holds && found == assigned_[pool],
                             "lists its unconfirmed assignments wrong");
    }
}

void BookInvariants::crowds() {
    std::vector<uint32_t> counts(state_.pools.size());
    std::vector<uint32_t> of_account(state_.accounts.size());  // claims that wait
    for (uint32_t place = 0; place < book_.crowds.size(); ++place) {
        const Crowd& known = book_.crowds[place];
        if (!known.in_use) continue;
        counts[known.pool] += known.waiting != 0 ? 1 : 0;
        if (known.account != kNoRow) of_account[known.account] += known.waiting;
        ++of_fanout_[known.fanout].crowds;
        crowd(place, {wrongs_, "crowd", place});
    }
    for (uint32_t pool = 0; pool < state_.pools.size(); ++pool) {
        of_pool(pool).expect(book_.crowds_of_pool[pool].size() == counts[pool],
                             "has another number of crowds that wait");
    }
    for (uint32_t row = 0; row < of_account.size(); ++row) {
        Subject(wrongs_, "account row", row)
            .expect(of_account[row] == book_.account_waits[row],
                    "has its waiting claims counted wrong");
    }
    for (uint32_t row = 0; row < book_.fanouts.size(); ++row) {
        const Fanout& fanout = book_.fanouts[row];
        const OfFanout& counted = of_fanout_[row];
        const Subject it(wrongs_, "fan-out", row);
        it.expect((fanout.in_use ? fanout.crowds : 0) == counted.crowds, "counts its crowds wrong");
        if (!fanout.in_use) continue;
        it.expect(fanout.units == counted.units, "counts its units wrong");
        const uint32_t most =
            fanout.account == kNoRow ? 0 : state_.accounts[fanout.account].fanout_max;
        it.expect(most == 0 || counted.units <= most || !counted.has_newcomers,
                  "is above its limit");
    }
}

void BookInvariants::crowd(uint32_t place, const Subject& it) {
    const Crowd& known = book_.crowds[place];
    it.expect(known.members == of_crowd_[place].members, "has another number of members");
    waiting_claims(place, it);
    const std::vector<uint32_t>& waiting = book_.crowds_of_pool[known.pool];
    const bool stands = known.place < waiting.size() && waiting[known.place] == place;
    it.expect(stands == (known.waiting != 0), "is at another place of its pool");
    it.expect(known.quality == book_.labels.count(known.base), "counts its labels wrong");
    for (const uint32_t set : {known.base, known.preferred}) {
        it.expect(set == kNoRow || state_.label_sets[set].references != 0,
                  "has labels that are forgotten");
    }
    const Fanout& fanout = book_.fanouts[known.fanout];
    it.expect(fanout.in_use && fanout.pool == known.pool && fanout.account == known.account &&
                  fanout.labels ==
                      book_.labels.hash_of_union(known.base, known.preferred, parts_.hash_seed),
              "counts for another fan-out");
    if (known.tenant != kNoRow) {
        const Tenant& tenant = book_.tenants[known.tenant];
        it.expect(tenant.in_use && tenant.pool == known.pool && tenant.account == known.account,
                  "runs for another tenant");
    }
    const uint64_t hash =
        numbers_hash(known.pool, known.account, known.base, known.preferred, known.units);
    const uint32_t found =
        book_.crowd_by_key.find(hash, [&](uint32_t row) { return row == place; });
    it.expect(found == place, "is not found by its terms");
    stalls_of_crowd(known, it);
}

void BookInvariants::waiting_claims(uint32_t place, const Subject& it) {
    const Crowd& known = book_.crowds[place];
    uint32_t found = 0;
    uint64_t last = 0;
    known.claims.each([&](uint32_t row) {
        const uint64_t number = state_.claims[row].arrival;
        it.expect(number > last, "is out of order");
        it.expect(known.claims.count_before(number) == found, "counts its places wrong");
        last = number;
        ++found;
    });
    it.expect(found == known.waiting && found + of_crowd_[place].late == of_crowd_[place].waiting,
              "has another number of waiting claims");
}

// What has been worked out of a list of stalls that is still the same.
void BookInvariants::stalls_of_crowd(const Crowd& known, const Subject& it) {
    if (known.stalls_version != book_.stall_bits[known.pool].version) return;
    uint64_t served = 0;
    uint64_t provisioned = 0;
    const std::vector<uint32_t>& places = book_.stalls_of_pool[known.pool];
    for (size_t place = 0; place < places.size() && place < 64; ++place) {
        const uint32_t set = book_.stalls[places[place]].labels;
        if (!book_.labels.covers(set, known.base)) continue;
        served |= uint64_t{1} << place;
        if (book_.labels.covers(set, known.preferred)) provisioned |= uint64_t{1} << place;
    }
    it.expect(served == known.served_by && provisioned == known.provisioned_by,
              "takes another stall for one that serves it");
}

}  // namespace

// Where no pool is ordered by account, no row is looked at: a takeover waits for this.
void check_book(const Core::Parts& parts, Wrongs* wrongs) {
    const State& state = parts.state;
    bool has_pools = false;
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool)
        has_pools = has_pools || parts.by_account(pool);
    const size_t before = wrongs->size();
    for (uint32_t row = 0; has_pools && row < state.claims.size(); ++row)
        claim_in_book(parts, row, wrongs);
    for (uint32_t row = 0; has_pools && row < state.leases.size(); ++row)
        lease_in_ledger(parts, row, wrongs);
    for (uint32_t row = 0; has_pools && row < state.slots.size(); ++row)
        slot_in_book(parts, row, wrongs);
    if (wrongs->size() != before) return;  // lists of broken rows may not end
    if (has_pools) BookInvariants(parts, wrongs).check();
    check_ledger(parts, has_pools, wrongs);
}

}  // namespace dibs::core
