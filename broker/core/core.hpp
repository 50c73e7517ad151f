// broker/core/core.hpp -- the scheduler: takes commands, returns decisions, keeps rows in memory.
//
// A turn:   begin_turn(now) · commands … · decide() · [stage stores] · commit() · [store] · clear()
// decide() runs due timers, then the pass; where the log nears its end both stop and work_left()
// says so: the next turn goes on before it decides anything new. Nothing is visible outside before
// commit(); a process that dies earlier leaves no trace, later leaves the whole turn.
//
// Not thread-safe: one owner, the broker's turn. After construction nothing is allocated but in
// set_pool, open_session and check_all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/core/command.hpp"
#include "broker/core/decision.hpp"
#include "broker/core/ids.hpp"
#include "broker/core/limits.hpp"
#include "broker/core/match/explanation.hpp"
#include "shm/layout.hpp"
#include "shm/ring.hpp"

namespace dibs::core {

class RowsAhead;
class Tap;

class Core {
  public:
    // Attaches to a formatted STATE: takes back an uncommitted turn, rebuilds what is derived,
    // keeps a pledge that is owed. A committed turn whose stores may be missing keeps them:
    // staged_stores() lists them until the next begin_turn. `state` outlives the core. Clients must
    // not be able to guess `hash_seed`, because they choose keys and slot names. No decision
    // depends on it.
    explicit Core(std::span<std::byte> state, uint64_t hash_seed = 0);
    ~Core();
    // The same for a STATE that may not be sound, with check_all() at once: each row gets all three
    // looks while it is in the cache, so many rows of each table at a time. Null where there is
    // nothing to attach to, with *refusal set. Errors of rows_refusal() come first. `ahead` may
    // have looked at slots and leases already (row_invariants.hpp); null: no other thread has.
    static constexpr uint32_t kRowsAtOnce = 512;
    struct Refusal {
        std::string unsound;             // what rows_refusal() is about, though perhaps another row
        std::vector<std::string> wrong;  // else: what check_all() is about
    };
    [[nodiscard]] static std::unique_ptr<Core> attach(std::span<std::byte> state,
                                                      uint64_t hash_seed,
                                                      Refusal* refusal,
                                                      uint32_t rows_at_once = kRowsAtOnce,
                                                      RowsAhead* ahead = nullptr);

    // --- the turn
    void begin_turn(TimeNs now);
    void decide();
    void commit();  // one release store: from here on the turn has happened
    void clear();   // its stores are done; decisions stay readable until the next begin_turn
    // A cut, a death, or a growing or undecided pool goes on: a turn is needed without new
    // commands. Work at a later instant is next_turn()'s.
    [[nodiscard]] bool work_left() const;
    // The last turn is not over: it was cut, or another pass of it follows. The next one goes on
    // with it, at its time; commands wait until then.
    [[nodiscard]] bool cut() const;
    // Another pass of the turn follows: it was not cut.
    [[nodiscard]] bool passes_again() const;
    // The next instant at which a turn is wanted without new commands, after a turn: the earlier of
    // the next two. kNever = none.
    [[nodiscard]] TimeNs next_turn() const;
    // The next instant at which a timer is due.
    [[nodiscard]] TimeNs next_due() const;
    // The next instant at which a balance changes what a pass may do. A decision depends on when a
    // turn looks at the balance, not on what has caused that turn.
    [[nodiscard]] TimeNs next_crossing() const;
    // Commands should wait for the next turn: the log is three quarters full.
    [[nodiscard]] bool turn_full() const;
    [[nodiscard]] TimeNs now() const;

    // --- commands; each inside a turn
    // Creates or changes a pool. Returns its row, or kNoRow with *why set (names what is wrong).
    uint32_t set_pool(const PoolConfig& config, std::string* why);
    // Deletes an unused pool, over as many turns as its slots take. kOk, kUnknownPool, kState: it
    // has claims, leases, drained slots or workers. With `when_unused` a used one only takes no
    // more claims and loses its slots as they become free, until set_pool() takes that back; a
    // later call without `when_unused` deletes it.
    shm::Reason delete_pool(PoolId row, bool when_unused = false);
    // Creates or changes an account. False with *why set (names what is wrong).
    bool set_account(const AccountConfig& config, std::string* why);
    // Its leases stay; an account that is not configured is left as it is.
    void delete_account(std::string_view name);
    bool reset_balance(std::string_view name, std::span<const int64_t> balance, std::string* why);
    // Returns the session's row; kNoRow with *why set: the table is full, or no account may have
    // the name of its own.
    uint32_t open_session(const SessionOpen& open, std::string* why = nullptr);
    void session_died(SessionId session, bool tree_lives = false);  // true: HolderDied
    void apply(const Claim& claim);
    void apply(const Cancel& cancel);
    void apply(const Release& release);
    void apply(const Keepalive& keepalive);
    void apply(const Adopt& adopt);
    void apply(const KillFailed& failed);
    void apply(const Harvest& harvest);
    void apply(const Touch& touch);
    void apply(const Announce& announce);
    void apply(const WorkerWord& word);
    // kOk; with if_idle_for_ns kState where it is not idle for so long: then *left_ns is the
    // largest time to expiry, kNever of a lease that does not expire, and nothing has changed.
    shm::Reason apply(const Drain& drain, TimeNs* left_ns = nullptr);
    // kOk, kAlreadyEnded, kNotFound. kRenew: *granted_ns = the interval, 0 = bound to its holder.
    shm::Reason apply(const Steer& steer, TimeNs* granted_ns);
    void apply(const Report& report);
    void apply(const Pull& pull);
    void apply(const Unassign& unassign);
    void apply(const UpdateClaim& update);
    bool set_type(const TypeConfig& config, std::string* why);  // as set_account()
    shm::Reason apply(const DeleteType& deleted);  // kOk, kUnknownPool, kNotFound, kState
    void apply(const ElasticCommand auto& command);
    // What its session is told as a result, too. `value`: that comes with it; null: nobody asks.
    shm::Reason apply(const GangCommand auto& command, uint64_t* value = nullptr);
    // What the worker of an order must know, and whose it must be: kept with the order in the turn
    // that decides kCreate. The core decides nothing by it.
    void keep_token(SlotId order, const OrderToken& token, uint32_t uid);

    // From the next command on; null = no tap. Call it between turns; the tap must outlive the
    // core, or be removed.
    void set_tap(Tap* tap);

    // --- pledges: a grant that is published before its turn, see pledge.cpp
    struct Foreseen {
        uint64_t lease;
        uint64_t fence;
        uint64_t claim;  // its number
        TimeNs interval_ns;
        DecidedSlot slot;
        shm::Reason reason;  // kMayPark, or kOk
    };
    // Computes what the claim will get, if it is all that this turn has to do and one idle slot of
    // a counted pool serves it; false: not foreseeable.
    [[nodiscard]] bool foresee(const Claim& claim, Foreseen* seen) const;
    // The same between turns, of the next one, if no command comes before it and next_due() is
    // still to come.
    [[nodiscard]] bool foresee_next(const Claim& claim, Foreseen* seen) const;
    // What was foreseen between turns holds in the turn that has begun: its beginning has changed
    // no row (balances may be stepped there), and leaves nothing to look at. Or in the next one, if
    // that begins plainly.
    [[nodiscard]] bool still_foreseen() const;
    // The next turn's beginning changes no row, whatever the time: that can be asked before it.
    [[nodiscard]] bool begins_plainly() const;
    // Records that the foreseen grant is published: from here on it takes effect, also if this
    // process dies. Its room has been written. The claim is applied next, as the turn's only
    // command.
    void pledge(const Claim& claim, const shm::Completion& told);
    // The same in two steps: first everything except what only the claim itself says, between turns
    // and as long as no turn begins; then that (user_data, value), in the turn of this time or
    // right before it.
    void draft_pledge(const Claim& claim, const shm::Completion& told);
    void sign_pledge(const shm::Completion& told, TimeNs now);

    // --- what was decided in this turn
    [[nodiscard]] std::span<const Decision> decisions() const;
    [[nodiscard]] std::span<const Revival> revivals() const;  // in the order of their places
    // A decision's slots_begin .. slots_begin + slots_count.
    [[nodiscard]] std::span<const DecidedSlot> decided_slots(const Decision& decision) const;
    // Costs of kPreempt and kRefund, per class in micro-units; of kGrant what a part has, by the
    // pool's order of its resources (empty: whole slots).
    [[nodiscard]] std::span<const int64_t> decided_amounts(const Decision& decision) const;

    // --- stores that follow the commit, kept in the log until clear()
    void stage_store(const shm::LogStore& store);
    [[nodiscard]] std::span<const shm::LogStore> staged_stores() const;

    // --- session fields that the broker keeps beside the core, logged with the turn
    void set_cursors(SessionId session, uint64_t submission_consumed, uint64_t completion_tail);
    void set_epoch(uint64_t epoch);  // outside a turn
    // Before the first pool, outside a turn.
    void set_fence_base(uint64_t base);
    // Not in the log either: broker time − CLOCK_MONOTONIC, for a successor.
    void set_clock_offset(uint64_t offset);
    // The entry that is about to be applied. Not in the log: a successor finds here the entry that
    // its predecessor died of.
    void set_hand(SessionId session, uint64_t sequence);
    // After a broker's death, outside a turn: the sequence up to which the session's entries were
    // in hand, 0 = none; a session is counted as often as that has happened running.
    uint64_t take_hand(SessionId session);
    // Whether the last turn was committed and its stores may not all have been done.
    [[nodiscard]] bool stores_owed() const;

    // --- looking
    [[nodiscard]] uint32_t find_pool(std::string_view name) const;  // row or kNoRow
    [[nodiscard]] uint32_t pools() const;                           // rows in use are below it
    [[nodiscard]] bool pool_lives(PoolId row) const;                // and is not being deleted
    [[nodiscard]] bool pools_go() const;  // a deletion goes on: its name is not free yet
    [[nodiscard]] const shm::PoolRow& pool(PoolId row) const;
    [[nodiscard]] const shm::SlotRow& slot(uint32_t row) const;
    // Where slots have resources: of one what no part has, of a part what it has, of the pool what
    // each slot has.
    [[nodiscard]] std::vector<Resource> resources(PoolId pool, uint32_t slot = shm::kNoRow) const;
    [[nodiscard]] const shm::SessionRow& session(SessionId row) const;
    [[nodiscard]] const shm::LeaseRow& lease(uint32_t row) const;
    [[nodiscard]] const shm::ClaimRow& claim(uint32_t row) const;
    [[nodiscard]] uint32_t find_account(std::string_view name) const;  // row or kNoRow
    [[nodiscard]] uint32_t accounts_max() const;
    [[nodiscard]] const shm::AccountRow& account(AccountId row) const;
    [[nodiscard]] std::array<int64_t, shm::kClasses> balance(AccountId account) const;  // now
    [[nodiscard]] uint64_t used_us(AccountId account) const;     // microseconds of slots, by now
    [[nodiscard]] uint32_t waiting_of(AccountId account) const;  // claims
    [[nodiscard]] uint32_t uses_of(AccountId account) const;     // sessions, claims and leases
    [[nodiscard]] uint8_t best_class(AccountId account) const;   // 5 = free
    // How many slots with a label that begins with "key:" it may hold.
    [[nodiscard]] std::vector<std::pair<std::string, uint32_t>> label_limits(AccountId row) const;
    // Rows whose account has changed, in more than its balance, since they were last forgotten.
    [[nodiscard]] std::span<const uint32_t> changed_accounts() const;
    void forget_changed_accounts();
    // What each slot of a lease has cost by now.
    [[nodiscard]] std::array<int64_t, shm::kClasses> cost(uint32_t lease) const;
    [[nodiscard]] uint32_t find_claim(ClaimNumber number) const;  // a row in use, or kNoRow
    [[nodiscard]] uint8_t class_of(uint32_t claim) const;         // that a pass would give it now
    [[nodiscard]] TimeNs examined_ns(uint32_t claim) const;
    [[nodiscard]] uint32_t find_slot(PoolId pool, std::string_view name) const;
    [[nodiscard]] uint32_t find_number(PoolId pool, uint32_t number) const;  // likewise
    [[nodiscard]] std::string_view slot_labels(uint32_t slot) const;  // each ended by a zero byte
    // Why the worker of the claim with this number failed; empty = it did not.
    [[nodiscard]] std::string_view claim_error(ClaimNumber number) const;
    [[nodiscard]] const shm::StateHead& head() const;
    [[nodiscard]] uint32_t sessions_max() const;
    [[nodiscard]] uint32_t slots_max() const;
    [[nodiscard]] uint32_t claims_max() const;
    [[nodiscard]] uint32_t leases_max() const;
    // Claims of this turn and this uid that stand in no row yet: SessionRow::claims lacks them.
    [[nodiscard]] uint32_t fresh_claims(uint32_t uid) const;
    // A table that all sessions draw on: its rows, of the arena its blocks, and those that are
    // free. {0, 0}: no such table.
    struct Room {
        uint32_t rows;
        uint32_t free;
    };
    [[nodiscard]] Room room(shm::Table table) const;
    // What a session has of it; of label sets and claims what it may have at most.
    [[nodiscard]] uint32_t held(SessionId session, shm::Table table) const;
    // True if a claim or slot with these labels needs no new label set.
    [[nodiscard]] bool knows_labels(std::span<const std::string_view> labels) const;
    [[nodiscard]] const shm::CountersRow& counters() const;
    [[nodiscard]] uint32_t first_waiting(PoolId pool) const;  // claim row, or kNoRow
    [[nodiscard]] uint32_t oldest_lease(PoolId pool) const;   // lease row, or kNoRow
    // Leases whose holders may park them, and that are not wanted: rows, oldest grant first; the
    // one behind this one, else the first; kNoRow: that was the last.
    [[nodiscard]] uint32_t next_parkable(PoolId pool, uint32_t lease = shm::kNoRow) const;
    // Slots that are missing for what waits, what has come in this turn, and so many more.
    [[nodiscard]] uint32_t lacking(PoolId pool, uint32_t units) const;
    // Leases that are wanted and have not come back yet.
    [[nodiscard]] uint32_t wanted(PoolId pool) const;
    // When a lease is to be recalled because claims wait (fast/parking.cpp); kNever: none is.
    [[nodiscard]] TimeNs recall_due(PoolId pool) const;
    // Leases that expire in this turn unless a Touch prolongs them: rows.
    [[nodiscard]] std::span<const uint32_t> lapsing() const;
    // Copies an arena chain's bytes to `out` (at least `size` bytes).
    void copy_chain(uint32_t chain, uint32_t size, std::byte* out) const;
    // Of the leases that existed when this core began: so a takeover need not read a table that no
    // cache holds a second time. Call it once.
    using HeldRoom = core::HeldRoom;
    [[nodiscard]] std::vector<HeldRoom> take_held_rooms();
    // Of a claim row in use.
    [[nodiscard]] Explanation explain(uint32_t claim) const;
    // The claim row that the session's tag names, or kNoRow: none, or it is a lease.
    [[nodiscard]] uint32_t claim_of_tag(SessionId session, uint16_t tag) const;
    // The same of leases.
    [[nodiscard]] uint32_t lease_of_tag(SessionId session, uint16_t tag) const;
    // Slots that the session has announced and that are not gone: the row behind this one, else the
    // first; kNoRow: that was the last.
    [[nodiscard]] uint32_t next_slot_of(SessionId session, uint32_t slot = shm::kNoRow) const;
    // The number of the claim or lease that the session's tag names; 0 = none with a row.
    [[nodiscard]] uint64_t number_of_tag(SessionId session, uint16_t tag) const;
    // Pools whose counters the turn changed.
    [[nodiscard]] std::span<const uint32_t> touched_pools() const;
    [[nodiscard]] bool draining() const;

    // All listed invariants that rows and derived structures can show. Empty if all hold, else one
    // sentence per violation.
    [[nodiscard]] std::vector<std::string> check_all() const;

    // The same for rows and what they name, `rows` of them from the cursor on, for a core that
    // serves: what holds for a row whatever the other rows say. The cursor ends at 0.
    [[nodiscard]] std::vector<std::string> check_slice(uint64_t* cursor, uint32_t rows) const;

    struct Parts;  // parts.hpp; for the core's own files

  private:
    friend class Look;  // look.hpp
    explicit Core(std::unique_ptr<Parts> parts);

    std::unique_ptr<Parts> parts_;
    Tap* tap_ = nullptr;  // observes the commands
};

}  // namespace dibs::core
