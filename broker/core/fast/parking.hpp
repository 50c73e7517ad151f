// broker/core/fast/parking.hpp -- keeps leases that their holders may put aside and take again.
//
// The row of a parked lease is an ordinary one: its slot is leased. Whether it is put aside stands
// in its word in UP (shm/layout.hpp), which the core never sees: what was found there comes as a
// Harvest. A recall is done by whoever sends that command, and has an outcome before it is sent, so
// that no recall is ever under way between two commands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "broker/core/module.hpp"
#include "broker/core/store/chains.hpp"

namespace dibs::core {

struct Parking : Module<Parking> {
    explicit Parking(const State& rows)
        : Module(rows),
          parkable(rows.pools.size(), rows.leases.size()),
          wanted(rows.pools.size()),
          waiting_units(rows.pools.size()),
          recalled_ns(rows.pools.size()) {}

    // list: pool, row: lease whose word may be in use and is not wanted, oldest grant first
    Chains parkable;
    std::vector<uint32_t> wanted;         // pool → leases that are, and that have not ended
    std::vector<uint32_t> waiting_units;  // pool → of the claims in its backlog
    std::vector<TimeNs> recalled_ns;      // pool → when a lease was last recalled

    void apply(const Harvest& command);
    // Of a lease with LeaseFlag::kMayPark.
    void lease_begins(uint32_t lease);
    // Of any lease.
    void lease_ends(uint32_t lease);
    void lease_moves(uint32_t lease);     // to another session, which may not park it
    void lease_is_found(uint32_t lease);  // rebuild, oldest grant first
    void forget();                        // what was found: their order was another one

    // How many slots are missing for the claims that wait in the pool, and for so many more.
    [[nodiscard]] uint32_t lacking(uint32_t pool, uint32_t units) const;
    // When the next lease of the pool is to be recalled because others wait; kNever: not.
    [[nodiscard]] TimeNs recall_due(uint32_t pool) const;

  private:
    void add_uses(uint32_t lease, uint64_t takes);
    void parking_ends(uint32_t lease);
};

}  // namespace dibs::core
