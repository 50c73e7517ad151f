// broker/core/provision/provisioning.hpp -- has provisioners make and stop the workers of elastic
// pools, as many as their claims need.
//
// An order is the slot of a worker that is still to come, so the pool's slots are its workers,
// whether they are there yet or not. Of each slot marks are kept, which say what it
// counts as; slot_changes() brings them up to date behind every change of the slot's state, holder,
// flags or order. Whatever is counted or listed here follows from the marks alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/match/crowd.hpp"
#include "broker/core/match/part_index.hpp"
#include "broker/core/module.hpp"
#include "broker/core/provision/mark.hpp"
#include "broker/core/store/chains.hpp"
#include "broker/core/store/invariant.hpp"
#include "broker/core/store/pool_set.hpp"
#include "broker/core/store/timers.hpp"

namespace dibs::core {

// What a worker is wanted for: claims each of which needs at most so much, and so many more of them
// side by side (S3.2).
struct Requirements {
    Vector min = {};
    uint32_t width = 0;
};

// What a claim that waits needs of one worker, and of all of its slot where it wants that.
struct Need {
    Vector least = {};
    uint64_t size = 0;
    uint64_t number = 0;
    bool is_whole = false;
};

struct Provisioning : Module<Provisioning> {
    explicit Provisioning(const State& rows);

    // Of an elastic pool.
    struct Counts {
        uint32_t running = 0;      // R: slots with Mark::kRuns
        uint32_t unallocated = 0;  // F
        uint32_t asked = 0;
        uint32_t locked = 0;        // claims that wait locked
        uint32_t locked_units = 0;  // L
    };
    std::vector<Counts> counts;            // by pool
    std::vector<uint32_t> by_cost;         // types, in order of pool, cost and name
    std::vector<uint32_t> unallocated_of;  // by type
    std::vector<uint32_t> stopping_of;     // by type: slots with Mark::kStopping

    bool reordered = false;  // provision() has locked or unlocked a claim
    PoolSet passed;          // by provision() since tell_headroom()

    [[nodiscard]] bool is_going(uint32_t type) const {
        return (state.types[type].flags & shm::TypeFlag::kGoing) != 0;
    }
    [[nodiscard]] bool is_elastic(uint32_t pool) const {
        return state.elastics[pool].workers_max != 0;
    }

    // types.cpp
    void configure(uint32_t pool, const PoolConfig& config, bool is_new);
    void close_pool(uint32_t pool);  // its row is about to be cleared
    bool set_type(const TypeConfig& config, std::string* why);
    Reason delete_type(const DeleteType& command);
    void apply(const Provide& command);
    void keep_token(uint32_t slot, const OrderToken& token, uint32_t uid);
    [[nodiscard]] bool opens_order(SlotId order, const OrderToken& token, uint32_t uid) const;
    void session_ends(uint32_t session);
    [[nodiscard]] uint32_t find_type(uint32_t pool, std::string_view name) const;
    [[nodiscard]] std::span<const uint32_t> types_of(uint32_t pool) const;
    [[nodiscard]] uint32_t labels_of(uint32_t type) const {  // a set, or kNoRow
        return state.types[type].label_set - 1U;
    }
    void worker_leaves(uint32_t type);  // kNoRow: it had none
    // Whether these are the labels of the order's type, or more.
    [[nodiscard]] bool has_promised(uint32_t order, std::span<const std::string_view> labels) const;
    void find_types();  // those that were there when this core began

    // answers.cpp
    void apply(const Provisioned& command);
    void use_ends(uint32_t lease);
    // The slot of the order, if its worker may still announce it in this pool; else kNoRow.
    [[nodiscard]] uint32_t open_order(SlotId order, uint32_t pool) const;

    // marks.cpp
    [[nodiscard]] Marks marks_of(uint32_t slot) const;
    [[nodiscard]] bool is_told(const shm::SlotRow& slot) const;
    [[nodiscard]] bool is_being_stopped(const shm::SlotRow& slot) const {
        return slot.order == shm::OrderState::kAnnounced && is_told(slot);
    }
    void slot_enters(uint32_t slot, SlotState to);
    void slot_changes(uint32_t slot);
    void change_type(uint32_t slot, uint32_t type);
    void count_locked(uint32_t claim, bool comes);
    void pool_is_found(uint32_t pool);  // as it was when this core began
    void check(Wrongs* wrongs) const;

    // provisioning.cpp
    // After the pass over the pool; false: the log is full.
    bool provision(uint32_t pool);
    [[nodiscard]] TimeNs next_due() const { return due_.empty() ? kNever : due_.first().due_ns; }
    bool run_due() { return next_due() > turn().now_ns || run_due_timers(); }
    // Behind the turn's passes; false: the log is full.
    bool tell_headroom();
    uint32_t take_headroom(uint32_t pool);
    [[nodiscard]] uint32_t headroom(uint32_t pool) const;
    void lock(uint32_t claim, bool on);
    [[nodiscard]] bool at_quota(uint32_t pool) const;
    [[nodiscard]] bool is_quota_met(uint32_t pool) const;
    [[nodiscard]] bool at_capacity(uint32_t type) const;
    [[nodiscard]] bool may_make(uint32_t type) const;
    [[nodiscard]] bool is_affordable(uint32_t type, uint32_t cheapest) const;
    // Of the types, one bit for each row: that can be made now; kNoRow: none.
    [[nodiscard]] uint32_t cheapest(uint32_t pool, uint64_t types = ~uint64_t{0}) const;
    // R.
    [[nodiscard]] uint32_t running(uint32_t pool) const;
    void adapt_limit(uint32_t pool);
    bool keep_spare(uint32_t pool, uint64_t needed);
    bool create(uint32_t pool, uint32_t type, const Requirements& wanted = {});
    bool stop_idle(uint32_t pool);
    bool tell_untold(uint32_t pool);
    void set_due(uint32_t pool);
    void is_of_use(uint32_t type);  // a worker of it has been
    // Of a type, in a dispatched pool: which is started on, and which is stopped, first.
    [[nodiscard]] uint32_t last_idle(uint32_t type) const { return idle_.tail(type); }
    [[nodiscard]] uint32_t least_useful(uint32_t type) const;

    // account_needs.cpp
    [[nodiscard]] uint32_t first_for(const Crowd& crowd) const;
    [[nodiscard]] bool suits(uint32_t type, const Crowd& crowd, uint32_t first) const;
    struct Usable {
        uint32_t idle = 0;
        uint32_t underway = 0;
        uint32_t ordered = 0;  // of these
    };
    [[nodiscard]] Usable usable_by(const Crowd& crowd) const;

  private:
    // types.cpp
    void list_type(uint32_t type);
    void label_type(uint32_t type, uint32_t set);
    void drop_type(uint32_t type);
    [[nodiscard]] bool is_used(uint32_t type) const;

    // marks.cpp
    void mark(uint32_t slot, Marks now);

    // answers.cpp
    void order_fails(uint32_t slot);
    void start_fails(uint32_t type);
    void boot_times_out(uint32_t slot);
    void meet_quota(uint32_t pool);
    void meet_capacity(uint32_t type, const Provisioned& command);
    void meet_overload(uint32_t pool);

    // provisioning.cpp
    bool run_due_timers();
    [[nodiscard]] uint32_t missing(uint32_t pool) const;
    bool make(uint32_t pool);
    bool make_missing(uint32_t pool);
    bool unlock_over_quota(uint32_t pool);
    bool lock_queued(uint32_t pool);
    void tell(uint32_t slot);
    [[nodiscard]] uint32_t longest_idle(uint32_t pool) const;
    [[nodiscard]] TimeNs stop_due(uint32_t pool) const;
    [[nodiscard]] bool over_quota(uint32_t pool) const {
        return at_quota(pool) && counts[pool].locked_units > counts[pool].unallocated;
    }

    // gathering.cpp
    bool gather(uint32_t pool);
    bool is_silent(uint32_t pool);
    [[nodiscard]] bool may_order(uint32_t pool) const;
    void find_needs(uint32_t pool);
    void place_on_workers(uint32_t pool);
    [[nodiscard]] Requirements required(uint32_t pool) const;
    [[nodiscard]] Requirements smallest_order(uint32_t pool) const;
    void keep_size(uint32_t slot, const Requirements& wanted);

    // account_needs.cpp
    bool make_for_accounts(uint32_t pool);
    enum class Made : uint8_t { kAll, kCut, kOverQuota, kForOthers };
    Made make_for_crowds(uint32_t pool, uint64_t* needed);
    [[nodiscard]] uint64_t wanted_by(const Crowd& crowd) const;
    bool stop_for_others(uint32_t pool);
    void find_crowds_in_need(uint32_t pool);
    void find_free(uint32_t pool);
    void find_held(uint32_t crowd);
    [[nodiscard]] bool is_held_back(uint32_t slot) const;  // for a claim of several
    [[nodiscard]] bool is_spoken_for(uint32_t slot) const;
    [[nodiscard]] uint32_t count_spoken_for(uint32_t pool) const;
    [[nodiscard]] bool serves(const Crowd& crowd, uint32_t set) const;
    [[nodiscard]] uint32_t cheapest_for(const Crowd& crowd) const;
    [[nodiscard]] bool can_make(uint32_t type) const;

    std::vector<Need> needs_;               // of gather()
    std::vector<Marks> marks_;              // by slot
    std::vector<uint32_t> going_;           // by type: drained workers of orders
    std::vector<uint32_t> crowds_in_need_;  // of the pool that is looked at
    struct Run {
        uint32_t set = shm::kNoRow;
        uint32_t next = 0;  // that is left
        uint32_t end = 0;
    };
    std::vector<Run> runs_;                               // of free_, of equal labels
    std::vector<uint32_t> free_;                          // slots, idle or under way
    std::vector<uint32_t> kept_;                          // idle ones that claims count on
    std::vector<uint32_t> lacking_;                       // crowds that have too few
    std::vector<std::pair<uint32_t, uint32_t>> counted_;  // account, label set
    std::vector<uint32_t> held_;                          // slots, in the order in which they idle
    Chains underway_;  // list: pool, row: slot with Mark::kUnderway
    Chains idle_;      // list: type, row: slot with Mark::kIdles, the longest idle first
    Chains untold_;    // list: type, row: slot with Mark::kUntold
    Chains starts_;    // list: type, row: slot with Mark::kStarts
    Timers due_;       // slots with Mark::kBoots; pools, where time alone changes something
};

// What is wrong with the configuration of an elastic pool, or nothing.
std::string elastic_refusal(const PoolConfig& config);

}  // namespace dibs::core
