// tests/naive/vector_collection.cpp -- what has expired makes room for a claim of slots with
// resources.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

// S3.7: what has been expired longest is taken as free, one after the other, until the want fits;
// if it never does, nothing is collected. With several slots only what is on those that serve the
// claim is.
void NaiveCore::collect_vectors(const Claim& claim) {
    const auto& resources = m_.pools.at(claim.pool).vector;
    const uint64_t idle = ready_of(claim.pool).size();
    const uint64_t missing =
        claim.wants_part ? 1 : claim.units - std::min<uint64_t>(claim.units, idle);
    std::map<uint64_t, Vector> free;
    std::set<uint64_t> made;
    std::vector<uint64_t> counted;
    for (const uint64_t number : uncollected_of(claim.pool)) {
        if (made.size() >= missing) break;
        counted.push_back(number);
        const Lease& lease = m_.leases.at(number);
        for (const uint64_t id : lease.slots) {
            const Slot& held = m_.slots.at(id);
            const uint64_t whole = held.part_of.value_or(id);
            const Slot& slot = m_.slots.at(whole);
            if (slot.is_protected || slot.is_draining) continue;
            if (claim.offer != 0 && slot.number + 1 != claim.offer) continue;
            if (!free.contains(whole)) free[whole] = free_of(slot);
            // "A part that ends leaves its row to the one that comes."
            bool fits = held.part_of || !claim.wants_part || slot_rows_used() < limits_.slots;
            for (size_t at = 0; at < resources.size(); ++at) {
                if (held.part_of) free[whole][at] += held.part[at];
                const uint64_t need = claim.wants_part ? claim.least[at] : resources[at].second;
                fits = fits && free[whole][at] >= need;
            }
            if (fits) made.insert(whole);
        }
    }
    if (made.size() < missing) return;
    for (const uint64_t number : counted) {
        const std::vector<uint64_t> slots = m_.leases.at(number).slots;
        const bool makes_room = std::any_of(slots.begin(), slots.end(), [&](uint64_t slot) {
            return made.contains(m_.slots.at(slot).part_of.value_or(slot));
        });
        if (makes_room) lease_ended_by_time(number);
    }
}

}  // namespace dibs::naive
