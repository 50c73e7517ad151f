// broker/core/match/matcher.hpp -- joins waiting claims and idle slots, whatever orders their pool.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "broker/core/fast/parking.hpp"
#include "broker/core/ledger/ledger.hpp"
#include "broker/core/ledger/preemption.hpp"
#include "broker/core/match/account_book.hpp"
#include "broker/core/match/backlog.hpp"
#include "broker/core/match/crowds.hpp"
#include "broker/core/match/priorities.hpp"
#include "broker/core/match/vectors.hpp"
#include "broker/core/module.hpp"
#include "broker/core/provision/provisioning.hpp"
#include "broker/core/rules/claims.hpp"
#include "broker/core/rules/leases.hpp"
#include "broker/core/rules/slots.hpp"
#include "broker/core/turn.hpp"

namespace dibs::core {

struct Matcher : Module<Matcher> {
    explicit Matcher(const State& rows)
        : Module(rows), backlog(rows.pools.size(), rows.claims.size()) {}

    Backlog backlog;                  // list: pool, row: claim, by number
    uint32_t last_seated = 0;         // the claim that came into one last, if it waits
    std::vector<uint32_t> impatient;  // claims that must not wait beyond the pass
    bool looked_again = false;        // the pool wants another pass at once
    // Is there if there is, or was, a pool ordered by priority.
    std::unique_ptr<Priorities> priorities;

    void touch(uint32_t pool) {
        turn().touched.add(pool);
        turn().dirty.add(pool);
        news_of(pool);
    }

    // pass.cpp
    bool pass();
    bool pass_over(uint32_t pool);
    bool end_impatient_of(uint32_t pool);
    void end_impatient(uint32_t claim);
    [[nodiscard]] bool servable(uint32_t pool, uint32_t units) const;
    [[nodiscard]] bool can_serve(uint32_t claim) {
        const shm::ClaimRow& row = state.claims[claim];
        if (wants_part(row)) return vectors().slot_for(claim) != kNoRow;
        return servable(row.pool, row.units) &&
               (vectors().held_back.empty() ||
                vectors().idle_for_others(row.pool, row.units).size() == row.units);
    }
    // The slots are chained, and in that state or about to be.
    [[nodiscard]] bool accepts_offer(uint32_t claim) const {
        return wants_part(state.claims[claim]) && state.claim_vectors[claim].offer != 0;
    }
    void give(uint32_t claim, uint32_t first_slot, SlotState to) {
        if (to == SlotState::kLeased) return (void)leases().grant(claim, first_slot);
        put(edit().row(state.claims[claim], 1).first_slot, first_slot);
        reserve(claim);
    }
    // Takes the first idle slots of the pool into the state (reserved, leased), chained as its
    // holder's; returns the first.
    uint32_t take_idle(uint32_t pool, uint32_t units, SlotState to);

    [[nodiscard]] bool stands_behind(uint32_t before, uint32_t slot) const {
        return book()->slot_links[before].next == slot &&
               book()->stall_of_slot[before] == book()->stall_of_slot[slot];
    }

    [[nodiscard]] bool by_account(uint32_t pool) const {
        return state.pools[pool].order == shm::PoolOrder::kAccount;
    }
    // Its claims and slots have labels, and no claim is locked.
    [[nodiscard]] bool has_labels(uint32_t pool) const { return by_account(pool); }
    [[nodiscard]] bool by_priority(uint32_t pool) const {
        return state.pools[pool].order == shm::PoolOrder::kPriority;
    }

    // matcher.cpp
    // Something has changed that a pass over the pool may decide by.
    void news_of(uint32_t pool) {
        if (book() && by_account(pool)) account_news();
    }
    void pool_opens(uint32_t pool);
    // A claim comes: kOk, or why what it brings cannot be kept.
    Reason claim_comes(const Claim& command, TermRows* terms) {
        if (!by_account(command.pool)) return Reason::kOk;
        const uint32_t blocks =
            Arena::blocks_for(command.payload.size()) + Arena::blocks_for(command.meta.size());
        return crowds().take_terms(terms_of(command), command.session, blocks, terms);
    }
    void claim_accepted(uint32_t claim, const Claim& command, const TermRows& terms) {
        if (serves_by_arrival(command.pool)) return;
        by_account(command.pool) ? crowds().bring_terms(claim, command, terms) : list_number(claim);
    }
    // For placeholders.
    void ask_comes(uint32_t claim);
    void claim_waits(uint32_t claim) {
        const uint32_t pool = state.claims[claim].pool;
        if (serves_by_arrival(pool)) return;
        by_account(pool) ? crowds().wait_by_account(claim) : wait_by_priority(claim);
    }
    // It gets slots, or ends.
    void claim_stops_waiting(uint32_t row) {
        const shm::ClaimRow& claim = state.claims[row];
        shm::PoolRow& pool = edit().row(state.pools[claim.pool], kPoolHot);
        backlog.remove(claim.pool, row);
        parking().waiting_units[claim.pool] -= claim.units;
        put(pool.waiting, pool.waiting - 1);
        if (pool.order == shm::PoolOrder::kArrival) return;
        if (claim.state != shm::ClaimState::kWaiting) return;  // promised: in no crowd
        pool.order == shm::PoolOrder::kAccount ? crowds().leave_waiting(row) : leave_priority(row);
    }
    // Its row is about to be freed.
    void claim_goes(uint32_t row) {
        if (by_priority(state.claims[row].pool)) forget_number(row);
    }
    [[nodiscard]] uint32_t place_in_order(uint32_t claim) const;
    // The one behind it, or the first one.
    [[nodiscard]] uint32_t next_behind(uint32_t pool, uint32_t claim) const {
        if (claim == kNoRow) return next_claim(pool);
        return by_priority(pool) ? priorities->ranked.after(pool, claim, priorities->order())
                                 : backlog.next(claim);
    }
    // The next claim that a pass in order looks at, or kNoRow.
    [[nodiscard]] uint32_t next_claim(uint32_t pool) const {
        return by_priority(pool) ? best_by_priority(pool) : backlog.head(pool);
    }
    void claim_leaves_slots(uint32_t claim, uint32_t first_slot);
    void claim_ends(uint32_t claim);
    // Of the grant that has just been decided. The claim stays behind a lease that may be taken.
    void lease_begins(uint32_t claim, uint32_t lease) {
        if (by_account(state.leases[lease].pool)) return ledger().begin_run(claim, lease);
        if (state.claims[claim].meta != kNoRow) leases().take_meta(claim, lease);
        claims().drop_claim(claim);
    }
    // Returns the claim that stays behind it, or kNoRow.
    uint32_t lease_ends(uint32_t lease) {
        if (!serves_by_arrival(state.leases[lease].pool)) provisioning().use_ends(lease);
        return by_account(state.leases[lease].pool) ? run_ends(lease) : kNoRow;
    }
    void lease_shrinks(uint32_t lease);
    [[nodiscard]] uint32_t claim_behind(uint32_t lease) const;
    void assignments_end(uint32_t lease);
    // move_slot() tells of both ends of a change.
    void slot_leaves_state(uint32_t slot, const shm::PoolRow& pool, SlotState from, SlotState to) {
        if (pool.order == shm::PoolOrder::kAccount) crowds().leave_state(slot, from, to);
    }
    void slot_enters_state(uint32_t slot, const shm::PoolRow& pool, SlotState from, SlotState to) {
        if (pool.order == shm::PoolOrder::kArrival) return;
        if (pool.order == shm::PoolOrder::kAccount) crowds().enter_state(slot, from, to);
        provisioning().slot_enters(slot, to);
    }
    // The slot changes in what decides whether its lease may be taken.
    template <class Change>
    void slot_changes(uint32_t slot, const Change& change) {
        const bool listed = by_account(state.slots[slot].pool) && crowds().list_slot(slot, false);
        change();
        if (listed) crowds().list_slot(slot, true);
        if (has_resources(state.pools[state.slots[slot].pool])) vectors().slot_changes(slot);
        holder_changes(slot);
    }
    // Without a change of its state.
    void holder_changes(uint32_t slot) {
        if (!serves_by_arrival(state.slots[slot].pool)) provisioning().slot_changes(slot);
    }
    // Slots of an ended lease, as far as they become idle at once; returns the first of the others.
    uint32_t slots_come_back(uint32_t first, uint32_t except) {
        const shm::PoolRow& pool = state.pools[state.slots[first].pool];
        const bool listed =
            pool.kind == shm::PoolKind::kCounted && by_account(state.slots[first].pool);
        return listed ? slots().idle_slots(first, except) : first;
    }
    // The claim that gets the slot when it would become idle, or kNoRow.
    [[nodiscard]] uint32_t successor_of(uint32_t slot) const {
        return by_account(state.slots[slot].pool) ? book()->promised_to[slot] : kNoRow;
    }
    Reason slot_labels_come(const Announce& command);
    void take_labels(uint32_t slot);
    [[nodiscard]] bool could_use(uint32_t claim, uint32_t slot) const;
    [[nodiscard]] bool takes_reports(uint32_t pool) const;
    // Where nothing waits, the claim that comes first is served first.
    [[nodiscard]] bool serves_fresh(uint32_t pool) const {
        const shm::PoolRow& row = state.pools[pool];
        return row.kind == shm::PoolKind::kCounted && !has_resources(row) &&
               serves_by_arrival(pool);
    }
    void open_account_turn();

    // priorities.cpp
    void open_priorities();
    void claim_is_found(uint32_t claim);
    void list_number(uint32_t claim);
    [[nodiscard]] uint32_t find_ranked(uint64_t number) const;
    void wait_by_priority(uint32_t claim);
    void leave_priority(uint32_t claim);
    void change_priority(uint32_t claim, int32_t priority);
    void check_priorities(std::vector<std::string>* wrongs) const;

    // account_order.cpp
    [[nodiscard]] uint32_t find_claim(uint64_t number) const;

    // Something has changed that a pass over a pool ordered by account may decide by.
    void account_news() {
        if (!book()) return;
        book()->crossing_known = false;
        if (book()->has_changed) return;
        book()->has_changed = true;
        if (!book()->is_passing) wake_account_pools();
    }

    // match/rebuild.cpp
    void rebuild_accounts(const std::vector<uint32_t>& claims);

  private:
    // pass.cpp
    bool serve_pool(uint32_t pool);
    bool pass_by_priority(uint32_t pool);
    bool serve_in_order(uint32_t pool);
    uint32_t take_these(std::span<const uint32_t> slots, SlotState to);
    uint32_t take_last_idle(uint32_t pool, uint32_t units);
    void serve(uint32_t claim);
    void reserve(uint32_t claim);

    [[nodiscard]] bool serves_by_arrival(uint32_t pool) const {
        return state.pools[pool].order == shm::PoolOrder::kArrival;
    }

    // accounts.cpp
    void wake_account_pools();

    // matcher.cpp
    uint32_t run_ends(uint32_t lease);
    void end_account_turn();

    // priorities.cpp
    void forget_number(uint32_t claim);
    [[nodiscard]] uint32_t best_by_priority(uint32_t pool) const;
    [[nodiscard]] uint32_t ahead_by_priority(uint32_t claim) const;

    // rebuild.cpp
    void rebuild_stalls();
    void rebuild_standing(uint32_t claim);
};

}  // namespace dibs::core
