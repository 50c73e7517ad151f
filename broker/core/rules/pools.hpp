// broker/core/rules/pools.hpp -- creates, changes, drains, grows, shrinks and deletes pools.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/module.hpp"
#include "broker/core/turn.hpp"

namespace dibs::core {

// Slots of a counted pool beyond those that it wants, from this row on.
struct Surplus {
    uint32_t pool;
    uint32_t row;
};

struct Pools : Module<Pools> {
    explicit Pools(const State& rows) : Module(rows) {}

    std::vector<uint32_t> growing;   // counted pools that lack slots
    std::vector<uint32_t> going;     // deleted pools that still have some
    std::vector<Surplus> shrinking;  // counted pools that have more than they want
    bool drain_work = false;
    [[nodiscard]] bool no_session_knows(uint32_t pool) const;

    // pools.cpp
    [[nodiscard]] uint32_t pool_named(std::string_view name) const;  // row or kNoRow
    uint32_t set_pool(const PoolConfig& config, std::string* why);
    bool grow_pools();
    // Slot rows that no growing pool but this one will need.
    [[nodiscard]] uint32_t slot_rows_left(uint32_t but_for) const;
    [[nodiscard]] bool pool_lives(uint32_t row) const {
        return row < state.counters->pools && (state.pools[row].state == shm::PoolState::kOpen ||
                                               state.pools[row].state == shm::PoolState::kDraining);
    }

    // pool_rows.cpp
    Reason delete_pool(uint32_t pool);
    Reason retire_pool(uint32_t pool);
    bool shrink_pools();
    // Why its pool will never serve it as it is now; kOk: it may.
    [[nodiscard]] Reason waits_for_nothing(uint32_t claim) const;
    bool draining(uint32_t pool) const {
        return state.counters->draining != 0 || draining_alone(pool);
    }
    // Not because the broker does.
    bool draining_alone(uint32_t pool) const {
        return state.pools[pool].state == shm::PoolState::kDraining ||
               (state.pools[pool].flags & shm::PoolFlag::kLeaving) != 0;
    }
    Reason drain(const Drain& command, TimeNs* left_ns);
    void count_drained(uint32_t slot, bool on);
    [[nodiscard]] uint32_t find_number(uint32_t pool, uint32_t number) const;
    void drain_slot(uint32_t row, bool on);
    void set_behaviour(uint32_t row, shm::Behaviour behaviour);
    bool go_on_draining();
    void tell_drained(uint32_t pool);
    void tell_all_drained();
    [[nodiscard]] bool demand_moved(uint32_t row) const {
        const shm::PoolRow& pool = state.pools[row];
        return pool.demand_published != int64_t{pool.waiting} + pool.confirming;
    }
    void publish_demand(uint32_t pool);  // if it has moved enough (S0.34)
    void tell_demand(uint32_t pool);

  private:
    // pools.cpp
    [[nodiscard]] std::vector<uint32_t> changed_slots(uint32_t pool,
                                                      const PoolConfig& config) const;
    void set_attributes(uint32_t slot, std::string_view text);
    void grow_pool(uint32_t pool, std::span<const std::string_view> attributes);

    // pool_rows.cpp
    [[nodiscard]] uint32_t row_for_pool(std::string_view name) const;
    void clear_pool(uint32_t pool, bool keep_fences);
    void shrink_to_wanted(uint32_t pool);
    [[nodiscard]] uint32_t slots_below(uint32_t pool, uint32_t number) const;
    void readmit_leaving(uint32_t pool, std::vector<bool>* there);
    void shrink_pool(uint32_t pool);
    bool leave_surplus(Surplus& surplus);

    // idle_drain.cpp
    [[nodiscard]] bool idle_for(uint32_t pool, TimeNs for_ns, TimeNs* left_ns) const;
    bool end_leases_of_idle();
};

}  // namespace dibs::core
