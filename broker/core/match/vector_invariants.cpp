// broker/core/match/vector_invariants.cpp -- states what holds of slots with parts.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "broker/core/match/invariants.hpp"
#include "broker/core/parts.hpp"

namespace dibs::core {

// Conservation: what is free of a slot and what its parts have is all that it has.
void check_vectors(const Core::Parts& parts, Wrongs* wrongs) {
    if (!parts.parts_index) return;
    const State& state = parts.state;
    std::vector<uint32_t> counted(state.slots.size());
    std::vector<uint32_t> unanswered(state.slots.size());
    std::vector<Vector> sums(state.slots.size());
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const shm::SlotRow& slot = state.slots[row];
        if (slot.state == SlotState::kFree || !has_resources(state.pools[slot.pool])) continue;
        const uint32_t whole = whole_of(slot, row);
        counted[whole] += whole != row ? 1 : 0;
        unanswered[whole] += whole != row && is_unanswered(slot) ? 1 : 0;
        for (size_t at = 0; at < shm::kResourcesMax; ++at) {
            uint64_t& sum = sums[whole][at];  // too much stays so, however many parts there are
            sum = std::min(sum + state.slot_vectors[row].amount[at], shm::kAmountMax + 1);
        }
    }
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const shm::SlotRow& slot = state.slots[row];
        if (slot.state == SlotState::kFree || slot.part_of != kNoRow) continue;
        const Subject it(wrongs, "slot row", row);
        it.expect_count("parts", counted[row], slot.parts);
        if (!has_resources(state.pools[slot.pool])) continue;
        it.expect(unanswered[row] < 2, "has two parts whose worker has not answered");
        it.expect((slot.state == SlotState::kShared) == (slot.parts != 0),
                  "is shared without parts, or the reverse");
        if (slot.state == SlotState::kOrdered) continue;  // what its worker is to have at least
        for (size_t at = 0; at < shm::kResourcesMax; ++at)
            it.expect_count("of a resource", sums[row][at], state.slot_vectors[row].capacity[at]);
    }
    parts.parts_index->check(wrongs);
}

// Each slot has its present key of each shape, and the first is the best of all.
void PartIndex::check(std::vector<std::string>* wrongs) const {
    for (uint32_t row = 0; row < state_.slots.size(); ++row) {
        const shm::SlotRow& slot = state_.slots[row];
        const bool is_part = slot.state != SlotState::kFree && slot.part_of != kNoRow;
        const Subject it(wrongs, "slot row", row);
        it.expect(is_unanswered_[row] == (is_part && is_unanswered(slot)),
                  "has answered, and is listed otherwise");
    }
    for (const Shape& shape : shapes_) {
        if (shape.pool == kNoRow) continue;
        const Subject it(wrongs, "pool row", shape.pool);
        for (uint32_t row = 0; row < state_.slots.size(); ++row) {
            const bool is_of_pool = state_.slots[row].pool == shape.pool;
            const uint64_t key = is_of_pool ? key_of(shape, row) : LeastRows::kNoKey;
            it.expect(shape.slots.key(row) == key, "has a slot whose room is listed otherwise");
        }
        it.expect(shape.slots.first() == best_of_all(shape.pool, shape.least, shape.most, {}),
                  "has another first slot than the best of all");
    }
}

}  // namespace dibs::core
