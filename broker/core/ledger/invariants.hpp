// broker/core/ledger/invariants.hpp -- states what holds for accounts and for what runs at a cost.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/core/parts.hpp"
#include "broker/core/store/invariant.hpp"

namespace dibs::core {

// The arena's chain with what a claim's earlier runs have cost, or kNoRow.
uint32_t carried_cost(const Core::Parts& parts, const shm::ClaimRow& claim);

// Neither ended nor taken for a better claim.
bool is_paid_for(const Core::Parts& parts, uint32_t lease);

// Whether a list has so many leases, each of them its own, the cheapest first.
template <class IsOwn>
bool is_cheapest_first(const Core::Parts& parts,
                       const OrderedRows& rows,
                       uint32_t root,
                       uint32_t wanted,
                       const IsOwn& is_own) {
    uint32_t found = 0;
    uint32_t previous = kNoRow;
    bool holds = true;
    rows.each(root, [&](uint32_t lease) {
        holds = holds && is_paid_for(parts, lease) && is_own(lease) &&
                (previous == kNoRow || parts.cheaper(previous, lease));
        previous = lease;
        ++found;
    });
    return holds && found == wanted;
}

// Of one row, whatever others say. There is a book (match/invariants.hpp).
void claim_in_ledger(const Core::Parts& parts, uint32_t row, Wrongs* wrongs);
void lease_in_ledger(const Core::Parts& parts, uint32_t row, Wrongs* wrongs);

// Once all rows hold.
void check_ledger(const Core::Parts& parts, bool has_pools, Wrongs* wrongs);

}  // namespace dibs::core
