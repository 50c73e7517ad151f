// broker/core/parts.hpp -- declares the scheduler's internal state and names each part's file.
//
// Rows live in STATE and are written through `edit`; everything else here is derived from rows and
// rebuilt by rebuild(). The functions are grouped by the noun that they serve; the file of that
// name defines the group. They implement docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/core/fast/fresh.hpp"
#include "broker/core/match/account_book.hpp"
#include "broker/core/match/backlog.hpp"
#include "broker/core/match/priorities.hpp"
#include "broker/core/store/arena.hpp"
#include "broker/core/store/chains.hpp"
#include "broker/core/store/edit.hpp"
#include "broker/core/store/index.hpp"
#include "broker/core/store/pool_set.hpp"
#include "broker/core/store/row_index.hpp"
#include "broker/core/store/state.hpp"
#include "broker/core/store/timers.hpp"

namespace dibs::core {

using shm::kNever;
using shm::kNoRow;
using shm::Outcome;
using shm::Reason;
using shm::SlotState;

// Line masks of a pool row.
inline constexpr unsigned kPoolHot = 1U;
inline constexpr unsigned kPoolStates = 1U | (1U << 1U);
inline constexpr unsigned kPoolTotals = 1U << 2U;
inline constexpr unsigned kPoolAccounts = 1U << 6U;
inline constexpr unsigned kPoolAll = 0x7fU;

// Claims that must not wait beyond the pass.
inline constexpr uint8_t kImpatient =
    shm::ClaimFlag::kNowOnly | shm::ClaimFlag::kReject | shm::ClaimFlag::kCold;

// A time that far from another one, which is never kNever, whatever that one is.
inline uint64_t sum_or_never(uint64_t from_ns, uint64_t interval_ns) {
    const uint64_t sum_ns = from_ns + interval_ns;
    return sum_ns >= from_ns && sum_ns != kNever ? sum_ns : kNever - 1;
}

// May so many more workers of the pool be asked? A claim for more than unconfirmed_max, which was
// higher when it came, is served when no worker is being asked.
inline bool may_ask(const shm::PoolRow& pool, uint32_t workers) {
    return pool.unconfirmed == 0 || pool.unconfirmed + workers <= pool.unconfirmed_max;
}

// Recovering under a lease whose holder is being killed: nothing but its end frees the slot.
inline bool being_killed_for(const shm::SlotRow& slot) {
    return slot.state == SlotState::kRecovering && slot.holder != kNoRow;
}

// Reserved without a claim, until its instant: its worker could not yet, and wants to be asked
// again.
inline bool is_kept(const shm::SlotRow& slot) {
    return slot.state == SlotState::kReserved && slot.holder == kNoRow;
}

// Slots of a counted pool beyond those that it wants, from this row on.
struct Surplus {
    uint32_t pool;
    uint32_t row;
};

// An administrator has drained it: it is protected until that is taken back.
inline bool is_drained(const shm::SlotRow& slot) {
    return slot.behaviour == shm::Behaviour::kDrain;
}

// Its worker was asked for a claim that did not get it, and has not answered since.
inline bool is_taken_back(const shm::SlotRow& slot) {
    return (slot.state == SlotState::kRecovering || slot.state == SlotState::kUnknown) &&
           (slot.flags & shm::SlotFlag::kTakenBack) != 0;
}

// Lines of a claim's row that change when it begins or ends to run.
inline constexpr unsigned kClaimRunLines = 0x7U;

// All zero is "no key".
inline bool key_given(const uint8_t* key) {
    uint64_t halves[2];
    std::memcpy(halves, key, sizeof(halves));
    return (halves[0] | halves[1]) != 0;
}

inline const ClaimTerms& terms_of(const Claim& command) {
    static constexpr ClaimTerms kNone{};
    return command.terms != nullptr ? *command.terms : kNone;
}

struct Core::Parts {
    // Takes back an uncommitted turn. Nothing is derived yet.
    Parts(std::span<std::byte> bytes, uint64_t seed);

    State state;
    Edit edit;
    Arena arena;

    const uint64_t hash_seed;  // of the indices over what clients choose

    // --- derived
    Timers timers;                            // of claims and leases
    Timers kept_slots;                        // of those that are reserved without a claim
    Backlog backlog;                          // list: pool, row: claim, by number
    uint32_t last_seated = 0;                 // the claim that came into one last, if it waits
    Chains pool_leases;                       // list: pool, row: lease, oldest first
    Chains expired_leases;                    // list: pool, row: lease uncollected, by expiry
    std::vector<uint32_t> collected;          // pool → slots with SlotFlag::kCollected
    Chains session_slots;                     // list: session, row: slot
    std::vector<uint32_t> arena_held;         // session → blocks of payloads and attributes
    RowIndex keys;                            // (uid, key) → claim row, or lease row behind them
    Index names;                              // (pool, slot name) → slot row
    std::vector<std::vector<uint32_t>> tags;  // session → tag → claim row, or lease | kTagLease
    std::vector<uint32_t> impatient;          // claims that must not wait beyond the pass
    PoolSet dirty;                            // the pass has to look at them
    PoolSet touched;                          // counters changed in this turn
    std::vector<uint32_t> dying;              // sessions whose things are being returned
    std::vector<uint32_t> growing;            // counted pools that lack slots
    std::vector<uint32_t> going;              // deleted pools that still have some
    std::vector<Surplus> shrinking;           // counted pools that have more than they want
    std::vector<HeldRoom> held_rooms;         // of the leases that were found, until they are taken
    bool drain_work = false;
    uint32_t confirming_total = 0;  // claims, over all pools; promised ones too
    bool looked_again = false;      // the pool wants another pass at once

    // --- claims of this turn that need no row unless they have to wait: fresh.cpp
    static constexpr uint32_t kFreshMax = 256;
    static_assert(kFreshMax <= Backlog::kGap);
    std::vector<FreshClaim> fresh;  // never grows: kFreshMax are reserved
    std::vector<FreshList> fresh_of_pool;

    // --- the turn
    TimeNs now_ns = 0;
    uint64_t first_number = 0;  // of the claims that came in this turn, cuts included
    bool cut = false;
    bool passes_again = false;  // another pass of the turn follows, in a turn of its own
    bool forgetting = false;    // the turn opened, and the log was full before all were forgotten
    bool pledged = false;       // the claim that is applied next is granted already
    bool just_attached = true;  // its first turn tells what a predecessor's cut turn did not
    std::vector<Decision> decisions;
    uint32_t grants = 0;  // among the decisions; an adoption is two
    std::vector<Revival> revivals;
    std::vector<DecidedSlot> decided_slots;
    std::vector<int64_t> decided_costs;
    std::vector<uint32_t> scratch;
    std::vector<uint32_t> touched_list;

    static constexpr uint32_t kTagFree = 0xffffffffU;
    static constexpr uint32_t kTagLease = 0x80000000U;
    static constexpr uint32_t kTagFresh = 0x40000000U;

    // rebuild.cpp: before anything else is asked of it
    void rebuild();
    void keep_room(const shm::LeaseRow& lease);

    // rows.cpp: free lists
    uint32_t take_claim_row();
    void free_claim_row(uint32_t row);
    uint32_t take_lease_row();
    void free_lease_row(uint32_t row);
    // A lease row that no confirming claim will need.
    bool lease_row_left() const { return state.counters->leases_free > confirming_total; }
    void lease_row_comes();
    uint32_t take_slot_row();
    void free_slot_row(uint32_t row);
    uint32_t take_session_row();
    void free_session_row(uint32_t row);

    // decide.cpp: the order of a turn's end
    // A cut gives each fresh claim a row after all. The line of its session is one of those that
    // are touched because they have been read from.
    bool full() const {
        return edit.full(decisions.size() + fresh.size(), grants + revivals.size());
    }
    bool sweep_kept();
    bool run_timers();
    bool tell_news();
    void run_timer(const Timer& timer);
    Decision& decide_that(DecisionKind kind) {
        // A copy of a blank one: g++ 12 would clear it with "rep stos", at 30 cycles a time.
        static constexpr Decision kBlank{.kind = DecisionKind::kResult};
        decisions.push_back(kBlank);
        decisions.back().kind = kind;
        return decisions.back();
    }
    void result(uint32_t session, uint64_t user_data, Reason reason, uint64_t value = 0);
    void touch(uint32_t pool) {
        touched.add(pool);
        dirty.add(pool);
        news_of(pool);
    }

    // pools.cpp
    uint32_t set_pool(const PoolConfig& config, std::string* why);
    [[nodiscard]] std::vector<uint32_t> changed_slots(uint32_t pool,
                                                      const PoolConfig& config) const;
    void set_attributes(uint32_t slot, std::string_view text);
    void grow_pool(uint32_t pool, std::span<const std::string_view> attributes);
    bool grow_pools();
    // Slot rows that no growing pool but this one will need.
    [[nodiscard]] uint32_t slot_rows_left(uint32_t but_for) const;
    [[nodiscard]] bool pool_lives(uint32_t row) const {
        return row < state.counters->pools && (state.pools[row].state == shm::PoolState::kOpen ||
                                               state.pools[row].state == shm::PoolState::kDraining);
    }

    // pool_rows.cpp: which row a pool has, and how it is given up
    [[nodiscard]] uint32_t row_for_pool(std::string_view name) const;
    [[nodiscard]] bool known_to_nobody(uint32_t pool) const;
    void clear_pool(uint32_t pool, bool keep_fences);
    Reason delete_pool(uint32_t pool);
    Reason retire_pool(uint32_t pool);
    void shrink_to_wanted(uint32_t pool);
    [[nodiscard]] uint32_t slots_below(uint32_t pool, uint32_t number) const;
    void readmit_leaving(uint32_t pool, std::vector<bool>* there);
    bool shrink_pools();
    void shrink_pool(uint32_t pool);
    bool leave_surplus(Surplus& surplus);
    // Why its pool will never serve it as it is now; kOk: it may.
    [[nodiscard]] Reason waits_for_nothing(uint32_t claim) const;
    bool draining(uint32_t pool) const {
        return state.counters->draining != 0 ||
               state.pools[pool].state == shm::PoolState::kDraining ||
               (state.pools[pool].flags & shm::PoolFlag::kLeaving) != 0;
    }
    void drain(const Drain& command);
    void drain_slot(uint32_t row, bool on);
    void count_drained(uint32_t slot, bool on);
    [[nodiscard]] uint32_t find_number(uint32_t pool, uint32_t number) const;
    bool go_on_draining();
    void tell_drained(uint32_t pool);
    void tell_all_drained();
    [[nodiscard]] bool demand_moved(uint32_t row) const {
        const shm::PoolRow& pool = state.pools[row];
        return pool.demand_published != int64_t{pool.waiting} + pool.confirming;
    }
    void publish_demand(uint32_t pool);

    // pass.cpp
    bool pass();
    bool pass_over(uint32_t pool);
    bool end_impatient_of(uint32_t pool);
    [[nodiscard]] bool servable(uint32_t pool, uint32_t units) const;
    void serve(uint32_t claim);
    // The slots are chained, and in that state or about to be.
    void give(uint32_t claim, uint32_t first_slot, SlotState to) {
        if (to == SlotState::kLeased) return (void)grant(claim, first_slot);
        put(edit.row(state.claims[claim], 1).first_slot, first_slot);
        reserve(claim);
    }
    // Takes the first idle slots of the pool into the state (reserved, leased), chained as its
    // holder's; returns the first.
    uint32_t take_idle(uint32_t pool, uint32_t units, SlotState to);
    void reserve(uint32_t claim);
    void end_impatient(uint32_t claim);

    // claims.cpp
    void apply(const Claim& command);
    void apply(const Cancel& command);
    [[nodiscard]] Reason claim_refusal(const Claim& command, uint64_t* other) const;
    void reject_unaccepted(const Claim& command, uint64_t number, Reason reason, uint64_t other);
    struct TermRows {
        uint32_t account = kNoRow;
        uint32_t base = kNoRow;
        uint32_t preferred = kNoRow;
    };
    void accept(const Claim& command, uint64_t number, const TermRows& terms);
    [[nodiscard]] uint32_t place_in_backlog(const shm::ClaimRow& claim) const;
    void wait_in_backlog(uint32_t claim);
    void wait_again(uint32_t claim);
    void end_claim(uint32_t claim, Outcome outcome, Reason reason, uint64_t value, bool tell);
    void drop_claim(uint32_t claim);
    // Takes a confirming claim off its slots; they stay chained from the returned first one.
    uint32_t unreserve(uint32_t claim);
    void claim_deadline(uint32_t claim);
    void reservation_over(uint32_t claim);
    void name_holder(Decision* decision, uint32_t pool) const;

    // fresh.cpp
    [[nodiscard]] bool may_stay_fresh(const Claim& command) const;
    void stay_fresh(const Claim& command, uint64_t number);
    void serve_fresh(uint32_t pool);
    void settle_fresh();
    [[nodiscard]] uint32_t fresh_claims(uint32_t uid) const;

    // pledge.cpp
    [[nodiscard]] bool nothing_goes_on() const;
    void keep_pledge(const Claim& command);
    void keep_owed_pledge();

    // leases.cpp
    struct Grantee {  // what a lease takes over from its claim
        uint32_t session;
        uint32_t pool;
        uint16_t units;
        uint16_t tag;
        uint64_t number;
        uint64_t user_data;
        TimeNs interval_ns;
        uint32_t room;
        uint32_t room_lines;
    };
    uint32_t lease_out(const Grantee& to, uint32_t first_slot);
    uint32_t grant(uint32_t claim, uint32_t first_slot);
    void apply(const Release& command);
    void result_of_end(uint32_t session, uint64_t user_data, uint32_t lease);
    void apply(const Keepalive& command);
    // The lease that the command names, or kNoRow with the result told.
    uint32_t find_lease(uint32_t session, uint64_t id, uint64_t fence, uint64_t user_data);
    enum class Tell : uint8_t { kHolder, kNobody };
    // Ends a lease; `except` (a slot row) is left to the caller, still marked leased.
    // `again`: its claim waits again in its old place (pools ordered by account).
    void end_lease(
        uint32_t lease, Reason reason, Tell tell, bool broken, uint32_t except, bool again = false);
    void tell_lease_end(uint32_t lease, Reason reason);
    Decision& tell_of_lease(DecisionKind kind, uint32_t lease);
    void list_slots(Decision* decision, uint32_t first);
    // Prolongs it; returns the granted interval, 0 if it is bound to its holder's life. Not of one
    // whose holder is being killed.
    TimeNs keep_alive(uint32_t lease, TimeNs interval_ns);
    // Why a lease of this id cannot be meant; kOk: its row is there, and it lives.
    [[nodiscard]] Reason lease_refusal(uint64_t id, uint64_t fence) const;

    // expiry.cpp
    void lease_expired(uint32_t lease);
    void begin_grace(uint32_t lease);
    void stay_uncollected(uint32_t lease);
    void kill_holder(uint32_t lease);
    void apply(const KillFailed& command);
    void take_off_lease(uint32_t slot);
    // Ends expired leases of the pool until so many units can be served, if that can be; `at_once`:
    // only if it can be in this pass. False: the log is full, go on in the next turn.
    bool collect(uint32_t pool, uint32_t units, bool at_once);
    void end_collected(uint32_t lease);
    [[nodiscard]] uint32_t would_come_back(uint32_t lease) const;
    void uncollect(uint32_t slot);

    // adoption.cpp
    void apply(const Adopt& command);
    [[nodiscard]] Reason adoption_refusal(const Adopt& command) const;

    // slots.cpp
    // A slot of the pool with its next number, blank otherwise. Its caller moves it out of `free`.
    uint32_t make_slot(uint32_t pool);
    void move_slot(uint32_t slot, SlotState to);
    void make_idle(uint32_t slot);
    void make_recovering(uint32_t slot, bool revoke);
    void recover(uint32_t slot);
    // What becomes of a slot that is taken back from its holder.
    void give_back(uint32_t slot, bool confirmed, bool broken);
    void give_back_chain(uint32_t first, bool confirmed, bool broken, uint32_t except);
    void remove_slot(uint32_t slot);
    bool tell_revoke(uint32_t slot);  // false: it has no worker to notify

    // slot_chains.cpp
    void lease_slots(std::span<const uint32_t> slots);
    [[nodiscard]] bool stands_behind(uint32_t before, uint32_t slot) const {
        return book->slot_links[before].next == slot &&
               book->stall_of_slot[before] == book->stall_of_slot[slot];
    }
    uint32_t idle_slots(uint32_t first, uint32_t except);

    // workers.cpp
    void apply(const Announce& command);
    void apply(const WorkerWord& word);
    void announce_again(uint32_t slot, const Announce& command);
    [[nodiscard]] Reason announce_refusal(const Announce& command, uint32_t existing) const;
    void fill_announced(uint32_t slot, const Announce& command);
    void hold_arena(uint32_t session, size_t bytes);  // kNoRow: no session's
    void drop_arena(uint32_t session, size_t bytes);
    bool leave_unfit_claim(uint32_t slot);
    void qualify(uint32_t slot, std::span<const std::string_view> labels);
    void say_ready(uint32_t slot);
    void say_confirm(uint32_t slot, const WorkerWord& word);
    void confirm_late(uint32_t slot);
    void say_refuse(uint32_t slot, const WorkerWord& word);
    void say_done(uint32_t slot, const WorkerWord& word);
    void say_withdraw(uint32_t slot);
    void protect(uint32_t slot, bool on);
    [[nodiscard]] bool allowed(const WorkerWord& word, uint32_t slot) const;
    void tell_answer(uint32_t slot, std::span<const uint8_t> answer);
    void readmit(uint32_t slot);
    [[nodiscard]] uint32_t find_name(uint32_t pool, std::string_view name) const;
    [[nodiscard]] uint64_t name_hash(uint32_t pool, std::string_view name) const;

    // sessions.cpp
    uint32_t open_session(const SessionOpen& open, std::string* why);
    void session_died(uint32_t session);
    bool bury_the_dying();
    bool bury(uint32_t session);
    void lose_slot(uint32_t slot);

    // --- pools ordered by account; `book` is there if there is one, or an account
    std::unique_ptr<AccountBook> book;
    [[nodiscard]] bool by_account(uint32_t pool) const {
        return state.pools[pool].order == shm::PoolOrder::kAccount;
    }
    // Is there if there is, or was, a pool ordered by priority.
    std::unique_ptr<Priorities> priorities;
    [[nodiscard]] bool by_priority(uint32_t pool) const {
        return state.pools[pool].order == shm::PoolOrder::kPriority;
    }
    [[nodiscard]] bool serves_by_arrival(uint32_t pool) const {
        return state.pools[pool].order == shm::PoolOrder::kArrival;
    }

    // accounts.cpp
    AccountBook& open_book();
    bool set_account(const AccountConfig& config, std::string* why);
    void delete_account(std::string_view name);
    bool reset_balance(std::string_view name, std::span<const int64_t> balance, std::string* why);
    [[nodiscard]] uint32_t find_account(std::string_view name) const;
    void index_account(uint32_t account);
    [[nodiscard]] static std::string account_name_refusal(std::string_view name);
    uint32_t make_account(std::string_view name);
    void learn_account(uint32_t account);
    void learn_movements(uint32_t account);
    void watch_account(uint32_t account);
    // The account of that name, or `otherwise` if it is empty; used once more. kNoRow: no room.
    uint32_t hold_account(std::string_view name, uint32_t otherwise);
    void release_account(uint32_t account);
    void forget_unused_account(uint32_t account);
    [[nodiscard]] int64_t balance_at(uint32_t account, uint32_t at_class) const;
    [[nodiscard]] uint64_t used_us(uint32_t account) const;
    shm::AccountRow& settle(uint32_t account);
    void count_at(uint32_t account, shm::AccountRow* row, uint8_t at_class, int32_t units);
    void pay(uint32_t account, const Cost& amount, bool refund);
    void count_run(uint32_t account, uint8_t at_class, int32_t units);
    void count_move(uint32_t account, uint8_t from, uint8_t to, int32_t units);
    void step_accounts();
    [[nodiscard]] uint8_t best_class(uint32_t account) const;
    void wake_account_pools();

    // --- matcher.cpp: what the rules tell the matcher, which does what the pool's order asks for
    // Something has changed that a pass over the pool may decide by.
    void news_of(uint32_t pool) {
        if (book && by_account(pool)) account_news();
    }
    void pool_opens(uint32_t pool);
    // A claim comes: kOk, or why what it brings cannot be kept.
    Reason claim_comes(const Claim& command, TermRows* terms) {
        if (!by_account(command.pool)) return Reason::kOk;
        return take_terms(terms_of(command), command.session, command.payload.size(), terms);
    }
    void claim_accepted(uint32_t claim, const Claim& command, const TermRows& terms) {
        if (serves_by_arrival(command.pool)) return;
        by_account(command.pool) ? bring_terms(claim, command, terms) : list_number(claim);
    }
    void claim_waits(uint32_t claim) {
        const uint32_t pool = state.claims[claim].pool;
        if (serves_by_arrival(pool)) return;
        by_account(pool) ? wait_by_account(claim) : wait_by_priority(claim);
    }
    // It gets slots, or ends.
    void claim_stops_waiting(uint32_t row) {
        const shm::ClaimRow& claim = state.claims[row];
        shm::PoolRow& pool = edit.row(state.pools[claim.pool], kPoolHot);
        backlog.remove(claim.pool, row);
        put(pool.waiting, pool.waiting - 1);
        if (pool.order == shm::PoolOrder::kArrival) return;
        if (claim.state != shm::ClaimState::kWaiting) return;  // promised: in no crowd
        pool.order == shm::PoolOrder::kAccount ? leave_waiting(row) : leave_priority(row);
    }
    // Its row is about to be freed.
    void claim_goes(uint32_t row) {
        if (by_priority(state.claims[row].pool)) forget_number(row);
    }
    [[nodiscard]] uint32_t place_in_order(uint32_t claim) const;
    // The next claim that a pass in order looks at, or kNoRow.
    [[nodiscard]] uint32_t next_claim(uint32_t pool) const {
        return by_priority(pool) ? best_by_priority(pool) : backlog.head(pool);
    }
    void claim_leaves_slots(uint32_t claim, uint32_t first_slot);
    void claim_ends(uint32_t claim);
    // Of the grant that has just been decided. The claim stays behind a lease that may be taken.
    void lease_begins(uint32_t claim, uint32_t lease) {
        by_account(state.leases[lease].pool) ? begin_run(claim, lease) : drop_claim(claim);
    }
    // Returns the claim that stays behind it, or kNoRow.
    uint32_t lease_ends(uint32_t lease) {
        return by_account(state.leases[lease].pool) ? run_ends(lease) : kNoRow;
    }
    uint32_t run_ends(uint32_t lease);
    void lease_shrinks(uint32_t lease);
    [[nodiscard]] uint32_t claim_behind(uint32_t lease) const;
    void assignments_end(uint32_t lease);
    // move_slot() tells of both ends of a change.
    void slot_leaves_state(uint32_t slot, const shm::PoolRow& pool, SlotState from, SlotState to) {
        if (pool.order == shm::PoolOrder::kAccount) leave_state(slot, from, to);
    }
    void slot_enters_state(uint32_t slot, const shm::PoolRow& pool, SlotState from, SlotState to) {
        if (pool.order == shm::PoolOrder::kAccount) enter_state(slot, from, to);
    }
    // The slot changes in what decides whether its lease may be taken.
    template <class Change>
    void slot_changes(uint32_t slot, const Change& change) {
        const bool listed = by_account(state.slots[slot].pool) && list_slot(slot, false);
        change();
        if (listed) list_slot(slot, true);
    }
    // Slots of an ended lease, as far as they become idle at once; returns the first of the others.
    uint32_t slots_come_back(uint32_t first, uint32_t except) {
        const shm::PoolRow& pool = state.pools[state.slots[first].pool];
        const bool listed =
            pool.kind == shm::PoolKind::kCounted && by_account(state.slots[first].pool);
        return listed ? idle_slots(first, except) : first;
    }
    // The claim that gets the slot when it would become idle, or kNoRow.
    [[nodiscard]] uint32_t successor_of(uint32_t slot) const {
        return by_account(state.slots[slot].pool) ? book->promised_to[slot] : kNoRow;
    }
    Reason slot_labels_come(const Announce& command);
    void take_labels(uint32_t slot);
    [[nodiscard]] bool could_use(uint32_t claim, uint32_t slot) const;
    [[nodiscard]] bool takes_reports(uint32_t pool) const {
        return by_account(pool) && state.pools[pool].kind == shm::PoolKind::kWorker;
    }
    // Where nothing waits, the claim that comes first is served first.
    [[nodiscard]] bool serves_fresh(uint32_t pool) const {
        return state.pools[pool].kind == shm::PoolKind::kCounted && serves_by_arrival(pool);
    }

    void open_account_turn();
    void end_account_turn();

    // priorities.cpp
    void open_priorities();
    void list_number(uint32_t claim);
    void forget_number(uint32_t claim);
    [[nodiscard]] uint32_t find_ranked(uint64_t number) const;
    void wait_by_priority(uint32_t claim);
    void leave_priority(uint32_t claim);
    [[nodiscard]] uint32_t best_by_priority(uint32_t pool) const;
    [[nodiscard]] uint32_t ahead_by_priority(uint32_t claim) const;
    void change_priority(uint32_t claim, int32_t priority);
    void check_priorities(std::vector<std::string>* wrongs) const;

    // account_order.cpp
    Reason take_terms(const ClaimTerms& terms, uint32_t session, size_t payload, TermRows* rows);
    [[nodiscard]] uint32_t find_claim(uint64_t number) const;
    void bring_terms(uint32_t claim, const Claim& command, const TermRows& rows);
    void join_crowd(uint32_t claim);
    void leave_crowd(uint32_t claim);
    void wait_by_account(uint32_t claim);
    void wait_in_crowd(uint32_t claim);
    void leave_waiting(uint32_t claim);
    void forget_claim(uint32_t claim);
    void leave_session(uint32_t session);
    void join_stall(uint32_t slot);
    void leave_stall(uint32_t slot);
    void relabel(uint32_t slot, uint32_t set);
    Reason intern_announced(std::span<const std::string_view> labels);
    void leave_state(uint32_t slot, SlotState from, SlotState to);
    void enter_state(uint32_t slot, SlotState from, SlotState to);
    bool list_slot(uint32_t slot, bool in);
    void stand_idle(uint32_t slot);
    void stand_leased(uint32_t slot);
    void stand_by_fence(uint32_t slot);
    void leave_leased(uint32_t slot);
    void leave_idle(uint32_t slot);
    void change_lists(uint32_t first, uint32_t last, bool to_leased);
    [[nodiscard]] bool labels_allow(uint32_t account,
                                    uint32_t pool,
                                    uint32_t set,
                                    bool at_limit) const;
    void count_labels(uint32_t account, uint32_t slot, int32_t change);
    void count_label_set(uint32_t account, uint32_t pool, uint32_t set, int32_t change);
    void recount_labels(uint32_t account);
    [[nodiscard]] uint32_t occupied_slot(uint32_t claim) const;
    [[nodiscard]] uint32_t next_occupied(uint32_t claim, uint32_t slot) const;
    [[nodiscard]] uint32_t fanout_left(const Crowd& crowd) const;
    void count_fanout(uint32_t claim, uint8_t at_class, int32_t change);
    void occupy(uint32_t claim, uint32_t first_slot, int32_t change);
    [[nodiscard]] bool lacks_preferred(uint32_t claim, uint32_t slot);

    // runs.cpp
    [[nodiscard]] bool cheaper(uint32_t left, uint32_t right) const;
    [[nodiscard]] Cost cost_of(uint32_t lease) const;
    [[nodiscard]] bool may_be_preempted(uint32_t lease) const;
    class ClassLists;
    void list_lease(uint32_t lease, bool in);
    void begin_run(uint32_t claim, uint32_t lease);
    void end_run(uint32_t lease);
    void move_class(uint32_t lease, uint8_t to);
    void after_run(uint32_t claim, bool again);

    // account_pass.cpp
    bool pass_by_account(uint32_t pool);
    void start_account_pass(uint32_t pool);
    void next_account_step();
    void enter_class();
    [[nodiscard]] uint8_t class_now(const Crowd& crowd) const;
    [[nodiscard]] uint8_t class_of(const Crowd& crowd, uint8_t best) const;
    bool account_step();
    bool serve_class(bool provisioned);
    bool serve_head(uint32_t crowd, bool provisioned);
    void give_slots(uint32_t claim, std::span<const uint32_t> slots, uint32_t to_confirm);
    void choose_slots(const Crowd& crowd, bool provisioned);
    void choose_slots_slowly(const Crowd& crowd, bool provisioned, bool limited);
    [[nodiscard]] bool can_serve(const Crowd& crowd, uint32_t stall, bool provisioned);
    [[nodiscard]] bool limits_stop(const Crowd& crowd);
    void hold_back(uint32_t crowd, bool provisioned);
    [[nodiscard]] bool holds_in_vain(uint32_t crowd);
    void note_kept(uint32_t claim);
    bool all_held_back();
    void spill_throttled();

    // reprioritisation.cpp
    [[nodiscard]] uint64_t quiet_us(const Tenant& tenant) const;
    void begin_watch(uint32_t pool);
    void look_at_stale_tenants(uint32_t pool);
    void look_at_tenant(uint32_t pool, uint32_t tenant);
    bool reprioritise();
    bool reprioritise_account(uint32_t account, uint32_t tenant);
    [[nodiscard]] bool may_be_promoted(uint32_t lease) const;

    // preemption.cpp
    [[nodiscard]] bool somebody_preempts() const;
    bool preempt_for_class();
    [[nodiscard]] uint32_t first_candidate(uint32_t root) const;
    [[nodiscard]] uint32_t cheapest_candidate(const std::vector<uint32_t>& stalls,
                                              size_t* at) const;
    [[nodiscard]] size_t best_taker(const std::vector<CrowdAtHead>& crowds,
                                    uint32_t labels,
                                    const Cost& cost);
    void preempt(uint32_t victim, uint32_t claim);
    void tell_preemption(uint32_t claim, uint32_t victim, const Cost& cost);
    void settle_preemption(uint32_t claim, uint32_t victim, const Cost& cost);
    void begin_revoking(uint32_t lease, TimeNs grace_ns);
    void end_revoked(uint32_t lease);
    void give_promised(uint32_t slot);
    void hold_over(uint32_t slot);
    [[nodiscard]] bool holds_others_over(uint32_t pool, uint32_t slot) const;
    [[nodiscard]] bool is_held_over(uint32_t slot) const;
    bool serve_successor(uint32_t slot);
    void drop_successor(uint32_t slot);
    bool hand_over_held(uint32_t pool);
    void break_promise(uint32_t slot);

    // reports.cpp
    void apply(const Report& report);
    void apply(const Unassign& unassign);
    void apply(const UpdateClaim& update);
    [[nodiscard]] Reason report_refusal(uint32_t pool, std::string_view worker) const;
    [[nodiscard]] TimeNs event_time(TimeNs given) const { return given == kNever ? now_ns : given; }
    [[nodiscard]] TimeNs latest_confirmed(uint32_t slot) const;
    [[nodiscard]] uint32_t lease_on(uint32_t slot) const;
    [[nodiscard]] uint32_t runs_on(uint32_t slot) const;
    [[nodiscard]] bool is_held_strictly(uint32_t slot) const;
    void end_strictly(uint32_t lease);
    [[nodiscard]] bool is_asked_for(uint32_t slot, uint32_t claim) const;
    [[nodiscard]] uint32_t counts_on(uint32_t slot) const;
    Reason report_idle(uint32_t pool,
                       std::string_view worker,
                       std::span<const std::string_view> labels,
                       TimeNs event_ns,
                       uint32_t* slot);
    uint32_t make_reported(uint32_t pool, std::string_view worker, uint32_t set);
    void report_running(uint64_t number, uint32_t slot, TimeNs event_ns);
    void report_absent(uint64_t number, TimeNs event_ns);
    void forget_cancellations(uint32_t pool, uint64_t number, TimeNs event_ns);
    void confirm_slot(uint32_t slot, TimeNs event_ns);
    void confirm_claim(uint32_t claim, TimeNs event_ns);
    void unassign(uint32_t claim, TimeNs event_ns);
    void take_new_terms(uint32_t claim, const UpdateClaim& command, const TermRows& rows);
    void drop_run(uint32_t claim, Reason reason, bool again);
    void drop_waiting(uint32_t claim, Reason reason);
    void delete_worker(uint32_t slot);
    void send_away(uint32_t slot);

    // account_due.cpp
    // Something has changed that a pass over a pool ordered by account may decide by.
    void account_news() {
        if (!book) return;
        book->crossing_known = false;
        if (book->has_changed) return;
        book->has_changed = true;
        if (!book->is_passing) wake_account_pools();
    }
    struct Crossings;
    // When time alone changes what a pass may do; kNever = it does not.
    [[nodiscard]] TimeNs next_crossing() const;

    // pulls.cpp
    void apply(const Pull& pull);
    bool carry_out(const Pull& pull, size_t* next);
    bool go_on_pulling();
    bool time_out_assignments(uint32_t pool, TimeNs event_ns);
    void order_oldest_assignments(uint32_t pool);
    bool tell_pulled();
    bool forget_workers();
    [[nodiscard]] TimeNs next_forgotten();
    [[nodiscard]] TimeNs forgotten_at(const shm::SlotRow& slot) const;
    void set_forgotten(uint32_t slot, TimeNs due_ns);
    void watch_reported(uint32_t slot);
    void watch_all_reported(uint32_t pool);
    void assignment_begins(uint32_t slot);
    void assignment_ends(uint32_t slot);

    // match/rebuild.cpp
    void rebuild_accounts(const std::vector<uint32_t>& claims);
    void rebuild_stalls();
    void rebuild_standing(uint32_t claim);

    // keys.cpp
    [[nodiscard]] uint32_t find_key(uint32_t session, const Key& key) const;
    [[nodiscard]] uint32_t key_place(uint32_t holder) const;
    void add_key(uint32_t session, const uint8_t* key, uint32_t holder);
    void remove_key(uint32_t session, const uint8_t* key, uint32_t holder);

    // steer.cpp, explain.cpp
    Reason apply(const Steer& command, TimeNs* granted_ns);
    Reason revoke_claim(const Steer& command);
    [[nodiscard]] Explanation explain(uint32_t claim);
    [[nodiscard]] WaitReason obstacle_of(uint32_t claim, Explanation* told);

    // account_explain.cpp
    void explain_promise(uint32_t claim, Explanation* told) const;
    void explain_class(uint32_t claim, Explanation* told) const;
    void explain_place(uint32_t claim, Explanation* told) const;
    void explain_fitting(const Crowd& crowd, Explanation* told) const;
    void explain_preemption(uint32_t claim, Explanation* told);
    [[nodiscard]] WaitReason explain_labels(const Crowd& crowd, Explanation* told) const;
    [[nodiscard]] uint32_t idle_for(const Crowd& crowd, bool* limited, Explanation* told);
    [[nodiscard]] uint32_t units_with(const Crowd& crowd, std::string_view label) const;
    [[nodiscard]] bool over_limit(const Crowd& crowd, Explanation* told) const;
    [[nodiscard]] bool limit_reached(const Crowd& crowd, uint32_t set, Explanation* told) const;
    [[nodiscard]] PreemptReason preemption_now(const Crowd& crowd, uint8_t at_class);
    [[nodiscard]] uint8_t class_in_pass(const Crowd& crowd) const;

    // check.cpp
    [[nodiscard]] std::vector<std::string> check_all() const;
};

}  // namespace dibs::core
