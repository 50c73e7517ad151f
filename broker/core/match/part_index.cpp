// broker/core/match/part_index.cpp -- keeps the slots' keys of each shape.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/part_index.hpp"

#include <algorithm>
#include <cassert>

namespace dibs::core {

namespace {

constexpr size_t kShapes = 8;
// A shape that has not been wanted while so many others were gives up its place.
constexpr uint64_t kForgottenAfter = 64;
}  // namespace

bool fits_in(const Vector& vector, const Vector& room) {
    return std::equal(vector.begin(), vector.end(), room.begin(), [](uint64_t has, uint64_t most) {
        return has <= most;
    });
}

PartIndex::PartIndex(const State& state)
    : state_(state),
      is_unanswered_(state.slots.size()),
      unanswered_(state.slots.size()),
      smallest_(state.pools.size()) {
    shapes_.reserve(kShapes);
    for (size_t at = 0; at < kShapes; ++at)
        shapes_.emplace_back(state.slots.size());
}

bool PartIndex::part_changes(uint32_t row) {
    const bool is = is_unanswered(state_.slots[row]);
    if (is == is_unanswered_[row]) return false;
    is_unanswered_[row] = is;
    uint32_t& count = unanswered_[state_.slots[row].part_of];
    count = is ? count + 1 : count - 1;
    return true;
}

const Vector& PartIndex::smallest(uint32_t pool) {
    if (smallest_[pool]) return *smallest_[pool];
    Vector& least = smallest_[pool].emplace();
    least.fill(UINT64_MAX);
    for (uint32_t row = 0; row < state_.slots.size(); ++row) {
        const shm::SlotRow& slot = state_.slots[row];
        if (slot.pool != pool || slot.part_of != kNoRow || slot.state == SlotState::kFree) continue;
        const bool has_parts = slot.parts_max != 0;
        for (size_t at = 0; at < least.size(); ++at)
            least[at] = std::min(least[at], has_parts ? state_.slot_vectors[row].capacity[at] : 0);
    }
    return least;
}

bool PartIndex::is_held_back(uint32_t row, std::span<const Vector> wants) const {
    if (state_.slots[row].parts_max == 0) return false;
    Vector capacity;
    std::copy_n(state_.slot_vectors[row].capacity, capacity.size(), capacity.begin());
    return std::any_of(
        wants.begin(), wants.end(), [&](const Vector& least) { return fits_in(least, capacity); });
}

bool PartIndex::is_open(uint32_t row) const {
    const shm::SlotRow& slot = state_.slots[row];
    const bool has_room = slot.state == SlotState::kIdle || slot.state == SlotState::kShared;
    return has_room && slot.part_of == kNoRow && !is_stopped(slot) && slot.parts < slot.parts_max &&
           unanswered_[row] == 0;
}

uint32_t PartIndex::left_of(uint32_t row, const Vector& least, const Vector& most) const {
    const shm::PoolRow& pool = state_.pools[state_.slots[row].pool];
    const auto& free = state_.slot_vectors[row].amount;
    const auto& capacity = state_.slot_vectors[row].capacity;
    uint64_t left = 0;
    for (uint32_t at = 0; at < pool.resources_count; ++at) {
        if (free[at] < least[at]) return kNoRoom;
        if (capacity[at] == 0) continue;
        left += (free[at] - std::min(free[at], most[at])) * 1000 / capacity[at];
    }
    return static_cast<uint32_t>(left);
}

uint32_t PartIndex::best_of_all(uint32_t pool,
                                const Vector& least,
                                const Vector& most,
                                std::span<const Vector> held_back) const {
    uint32_t best = kNoRow;
    uint32_t least_left = kNoRoom;
    for (uint32_t row = 0; row < state_.slots.size(); ++row) {
        if (state_.slots[row].pool != pool || !is_open(row)) continue;
        if (is_held_back(row, held_back)) continue;
        const uint32_t left = left_of(row, least, most);
        const bool is_tie = best != kNoRow && left == least_left;
        const bool comes_first = is_tie && state_.slots[row].number < state_.slots[best].number;
        if (left >= least_left && !comes_first) continue;
        best = row;
        least_left = left;
    }
    return best;
}

uint64_t PartIndex::key_of(const Shape& shape, uint32_t row) const {
    if (!is_open(row)) return LeastRows::kNoKey;
    const uint32_t left = left_of(row, shape.least, shape.most);
    return left == kNoRoom ? LeastRows::kNoKey : uint64_t{left} << 32U | state_.slots[row].number;
}

void PartIndex::change(uint32_t row) {
    for (const Shape& shape : shapes_)
        shape.slots.fetch(row);
    for (Shape& shape : shapes_) {
        if (shape.pool == state_.slots[row].pool) shape.slots.set(row, key_of(shape, row));
    }
}

void PartIndex::forget(uint32_t pool) {
    capacity_changes(pool);
    for (Shape& shape : shapes_) {
        if (shape.pool == pool) shape.pool = kNoRow;
    }
}

void PartIndex::adopt(Shape& shape, uint32_t pool, const Vector& least, const Vector& most) {
    shape.pool = pool;
    shape.least = least;
    shape.most = most;
    shape.slots.clear();
    for (uint32_t row = 0; row < state_.slots.size(); ++row) {
        if (state_.slots[row].pool == pool) shape.slots.set(row, key_of(shape, row));
    }
}

uint32_t PartIndex::best(uint32_t pool, const Vector& least, const Vector& most) {
    assert(pool < state_.counters->pools);
    ++wanted_;
    for (Shape& shape : shapes_) {
        if (shape.pool != pool || shape.least != least || shape.most != most) continue;
        shape.wanted = wanted_;
        return shape.slots.first();
    }
    Shape& oldest =
        *std::min_element(shapes_.begin(), shapes_.end(), [](const Shape& one, const Shape& other) {
            const bool free = one.pool == kNoRow;
            if (free != (other.pool == kNoRow)) return free;
            return one.wanted < other.wanted;
        });
    if (oldest.pool != kNoRow && wanted_ - oldest.wanted < kForgottenAfter) {
        return best_of_all(pool, least, most, {});
    }
    adopt(oldest, pool, least, most);
    oldest.wanted = wanted_;
    return oldest.slots.first();
}

}  // namespace dibs::core
