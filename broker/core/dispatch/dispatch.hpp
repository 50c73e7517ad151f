// broker/core/dispatch/dispatch.hpp -- decides which entries of a dispatched pool's queue are
// locked, started, unlocked and killed, and reconciles the queue with what its workers run.
//
// Somebody else keeps the queue and starts the processes; both are known by reports. What is to be
// done is decided and stands in the entry's row (EntryOp) until somebody says that it has ended, so
// it can be asked for at any time. Workers are ordered and stopped by provisioning, as those of any
// elastic pool; a dispatched worker is a slot without a session.
//
// Each entry stands in those of the sets below in which its row puts it. All changes of a row go
// through change(), which takes it out of them before and puts it into them behind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/dispatch/entry_reason.hpp"
#include "broker/core/match/ranked_rows.hpp"
#include "broker/core/module.hpp"
#include "broker/core/store/chains.hpp"
#include "broker/core/store/index.hpp"
#include "broker/core/store/invariant.hpp"

namespace dibs::core {

// A bit for each of so many rows of types; all of them: any type.
inline constexpr uint32_t kTypesOfEntry = 64;
inline constexpr uint64_t kAnyType = ~uint64_t{0};

struct Dispatch : Module<Dispatch> {
    explicit Dispatch(const State& rows);

    std::string told_names;  // of this turn's decisions; never grows: its room is reserved
    [[nodiscard]] std::string_view keep_name(std::string_view name);

    [[nodiscard]] bool is_dispatched(uint32_t pool) const {
        return state.elastics[pool].workers_max != 0 && state.elastics[pool].dispatch != 0;
    }
    [[nodiscard]] static bool is_alive(const shm::EntryRow& entry) {
        return has_process(entry) && entry.exited_ns == kNever;
    }
    [[nodiscard]] static bool has_process(const shm::EntryRow& entry) {
        return (entry.flags & shm::EntryFlag::kProcess) != 0;
    }
    // Exited processes that are not forgotten yet.
    [[nodiscard]] uint32_t exited(uint32_t pool) const { return counts_[pool].exited; }
    // Its worker may be stopped whatever runs on it.
    [[nodiscard]] bool is_lost(const shm::SlotRow& slot) const {
        return slot.broken != 0 ||
               (state.entries[slot.entry].flags & shm::EntryFlag::kHopeless) != 0;
    }

    // entries.cpp
    void apply(const EntryReport& report);
    void apply(const QueueRead& read);
    void apply(const QueueOperation& asked);
    void apply(const OperationDone& done);

    // worker_reports.cpp
    void apply(const WorkerReport& report);
    void apply(const ProcessReport& report);
    void apply(const Probe& probe);
    void apply(const SetBehaviour& set);

    // entry_sets.cpp
    [[nodiscard]] uint32_t find(uint32_t pool, std::string_view name) const;
    [[nodiscard]] bool names_type(uint32_t pool, uint32_t type) const;  // an entry, by itself
    void configure(uint32_t pool, const PoolConfig& config, bool is_new);
    void close_pool(uint32_t pool);  // its entries go
    void find_entries();             // those that were there when this core began
    void check(Wrongs* wrongs) const;

    // pass.cpp
    bool serve(uint32_t pool);  // behind the pass over claims; false: the log is full
    [[nodiscard]] bool serves(uint32_t pool) const {
        return state.elastics[pool].phase == shm::DispatchPhase::kServing;
    }
    // Unallocated workers that the last pass has found no use for.
    [[nodiscard]] uint32_t left(uint32_t pool) const;
    [[nodiscard]] bool has_left(uint32_t pool, uint32_t type) const {
        return !is_dispatched(pool) || unallocated_[type] != 0;
    }
    void find_left(uint32_t pool);
    void take_left(uint32_t type) { unallocated_[type] -= unallocated_[type] != 0 ? 1 : 0; }
    [[nodiscard]] TimeNs stale_due(uint32_t pool) const;

    // queue_look.cpp
    [[nodiscard]] std::vector<uint32_t> entries(uint32_t pool) const;
    [[nodiscard]] uint32_t position(uint32_t row) const;
    [[nodiscard]] EntryReason reason(uint32_t row) const;
    [[nodiscard]] uint32_t supervisor_limit(uint32_t pool) const;

  private:
    // Of a pool.
    struct Counts {
        uint32_t exited = 0;
        uint32_t supervisors = 0;  // that run, as far as it is known
        uint32_t lacking = 0;      // locked or being locked, without a process
    };
    // Entries that are queued and alike: if one cannot be locked, none can.
    struct Group {
        uint32_t pool;
        uint64_t types;
        bool supervisor;
        bool operator==(const Group&) const = default;
    };
    // What a pass has given away so far.
    struct Round {
        uint32_t pool;
        uint32_t trying;
        uint32_t limit;
        uint64_t dont_start = 0;       // types
        uint32_t over_quota = kNoRow;  // the first entry for which there is no worker at quota
    };

    // entries.cpp
    [[nodiscard]] Reason refusal(uint32_t pool, std::string_view name) const;
    void refuse(uint64_t user_data, Reason reason);
    [[nodiscard]] uint64_t types_of(const EntryReport& report) const;  // 0: none is the pool's
    void set_queue_state(uint32_t row, shm::EntryState queue_state);
    void unlock_ends(uint32_t row);
    void end(uint32_t row, Outcome outcome, Reason reason);
    void leave_queue(uint32_t row);
    [[nodiscard]] static bool allows(const shm::EntryRow& entry, QueueWord word);

    // worker_reports.cpp
    [[nodiscard]] uint32_t worker_for(const WorkerReport& report, Reason* reason);
    void run_on(uint32_t row, uint32_t slot, uint8_t flags);
    void process_ends(uint32_t row, TimeNs exited_ns);
    void drop_process(uint32_t row);
    void leave_worker(uint32_t slot);
    void see_worker(uint32_t slot, WorkerReport::State seen, TimeNs event_ns);

    // entry_sets.cpp
    template <class Change>
    void change(uint32_t row, const Change& alter);  // entry_change.hpp
    void list(uint32_t row, bool on);
    uint32_t make_entry(uint32_t pool, std::string_view name);
    void fill_new(shm::EntryRow& entry);
    void free_entry(uint32_t row);
    void unname(uint64_t types);
    [[nodiscard]] uint32_t group_of(const shm::EntryRow& entry) const;
    uint32_t open_group(const shm::EntryRow& entry);
    void close_group(uint32_t group);
    [[nodiscard]] static bool waits(const shm::EntryRow& entry);
    [[nodiscard]] Counts counts_as(const shm::EntryRow& entry) const;
    [[nodiscard]] static bool is_settled(const shm::EntryRow& entry);
    [[nodiscard]] auto by_number() const {
        return [this](uint32_t left, uint32_t right) {
            const uint64_t one = state.entries[left].number;
            const uint64_t other = state.entries[right].number;
            return one != other ? one < other : left < right;
        };
    }
    // The locked ones first, then the better priority, then the older one.
    [[nodiscard]] auto order() const {
        return [this](uint32_t left, uint32_t right) {
            const shm::EntryRow& one = state.entries[left];
            const shm::EntryRow& other = state.entries[right];
            const bool locked = one.state == shm::EntryState::kLocked;
            if (locked != (other.state == shm::EntryState::kLocked)) return locked;
            if (one.priority != other.priority) return one.priority > other.priority;
            return by_number()(left, right);
        };
    }

    // pass.cpp
    bool mend_stale(uint32_t pool);
    bool pass_entries(uint32_t pool);
    bool pass_locked(Round* round);
    bool pass_queued(Round* round);
    bool unlock_over(const Round& round);
    bool stop_over_quota(uint32_t pool);
    void count_free(uint32_t pool);
    uint32_t take_free(Round* round, uint64_t types);
    [[nodiscard]] uint64_t types_for(const shm::EntryRow& entry) const;
    [[nodiscard]] bool is_over_limit(uint32_t row) const;
    [[nodiscard]] uint32_t next_waiting(uint32_t pool, uint32_t row) const;
    void start(uint32_t row, uint32_t slot);

    // reconciliation.cpp
    bool reconcile(uint32_t pool);
    bool settle(uint32_t row);
    void forget(uint32_t row);
    void forget_process(uint32_t row);
    void ask(uint32_t row, shm::EntryOp op);
    Decision& tell(DecisionKind kind, uint32_t row);

    static uint32_t line(uint32_t pool, bool supervisor) { return 3 * pool + (supervisor ? 1 : 0); }
    static uint32_t held_line(uint32_t pool) { return 3 * pool + 2; }
    static bool is_supervisor(const shm::EntryRow& entry) {
        return (entry.flags & shm::EntryFlag::kSupervisor) != 0;
    }

    std::vector<Counts> counts_;  // by pool
    std::vector<uint32_t> free_;  // rows
    Index names_;                 // (pool, name) → row
    Chains of_pool_;              // list: pool, row: entry
    RankedRows lines_;            // set: line(): those that wait; held_line(): locked, and held
    RankedRows queued_;           // set: group, row: entry that waits and is queued
    RankedRows unsettled_;        // set: pool, row: entry on which the table may act
    std::vector<Group> groups_;
    std::vector<uint32_t> free_groups_;
    Index group_index_;
    Chains groups_of_;                   // list: pool, row: group
    std::vector<uint32_t> unallocated_;  // of the pass, by type
    std::vector<uint32_t> heads_;        // of the pass: a heap of the groups' next entries
    std::vector<uint32_t> unlocks_;      // of the pass
    std::vector<bool> named_;            // of a reading
};

}  // namespace dibs::core
