// broker/core/provision/gathering.cpp -- orders workers of the size that waiting claims need, in
// elastic pools whose slots have resources.
//
// Nothing is locked there. Once no claim has come for a while, those that wait are placed, for this
// look alone, on the workers that are there or ordered; what is left makes the next order (S3.30).
// An order counts with what its worker is to have at least.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

constexpr uint32_t kOrderedMax = 5;
// A look at what waits is bounded, however much does; what is behind that is left to the next one.
constexpr uint32_t kNeedsMax = 256;

// What is left of a worker.
struct Room {
    uint32_t number = 0;
    uint32_t parts = 0;  // so many more it may have
    bool is_whole = false;
    Vector free = {};
};

void subtract(Vector* from, const Vector& vector) {
    for (size_t at = 0; at < from->size(); ++at)
        (*from)[at] -= vector[at];
}

Vector larger(const Vector& one, const Vector& other) {
    Vector most = one;
    for (size_t at = 0; at < most.size(); ++at)
        most[at] = std::max(most[at], other[at]);
    return most;
}

bool take(Room* room, const Need& need) {
    if (need.is_whole ? !room->is_whole : room->parts == 0 || !fits_in(need.least, room->free))
        return false;
    room->is_whole = false;
    room->parts = need.is_whole ? 0 : room->parts - 1;
    if (!need.is_whole) subtract(&room->free, need.least);
    return true;
}

}  // namespace

// False: the log is full.
bool Provisioning::gather(uint32_t pool) {
    if (!is_silent(pool) || !may_order(pool)) return true;
    find_needs(pool);
    place_on_workers(pool);
    while (!needs_.empty() && may_order(pool)) {
        if (turn().full()) return false;
        const Requirements wanted = required(pool);
        if (!create(pool, cheapest(pool), wanted)) break;
        Room room{0, UINT32_MAX, true, wanted.min};
        std::erase_if(needs_, [&](const Need& need) { return take(&room, need); });
    }
    return true;
}

// Each claim that comes, and has to wait, begins the silence anew.
bool Provisioning::is_silent(uint32_t pool) {
    const uint32_t last = matcher().backlog.tail(pool);
    if (last != kNoRow && state.claims[last].arrival > state.elastics[pool].gathered) {
        shm::ElasticRow& row = edit().row(state.elastics[pool], 1U << 3U);
        put(row.gathered, state.claims[last].arrival);
        put(row.gather_until_ns, sum_or_never(turn().now_ns, row.gather_ns));
    }
    return turn().now_ns >= state.elastics[pool].gather_until_ns;
}

// But for what create() asks on top of it.
bool Provisioning::may_order(uint32_t pool) const {
    const shm::ElasticRow& row = state.elastics[pool];
    const Counts& now = counts[pool];
    return row.ordered < kOrderedMax && uint64_t{now.running} + now.unallocated < row.limit &&
           !at_quota(pool) && turn().now_ns >= row.throttle_until_ns && cheapest(pool) != kNoRow;
}

// The first of those that wait, in the order of the pool; then the largest comes first.
void Provisioning::find_needs(uint32_t pool) {
    const shm::PoolRow& of = state.pools[pool];
    const RankedRows& ranked = matcher().priorities->ranked;
    needs_.clear();
    for (uint32_t at = 0; at < ranked.size(pool) && needs_.size() < kNeedsMax; ++at) {
        const uint32_t row = ranked.at(pool, at);
        const shm::ClaimRow& claim = state.claims[row];
        Need need;
        need.number = claim.arrival;
        need.is_whole = !wants_part(claim);
        for (uint32_t i = 0; i < of.resources_count; ++i) {
            need.least[i] = need.is_whole ? of.capacity[i] : state.claim_vectors[row].least[i];
            need.size += need.least[i] * 1000 / of.capacity[i];
        }
        needs_.insert(needs_.end(), std::min<size_t>(claim.units, kNeedsMax - needs_.size()), need);
    }
    std::sort(needs_.begin(), needs_.end(), [](const Need& left, const Need& right) {
        return left.size != right.size ? left.size > right.size : left.number < right.number;
    });
}

// Each goes to the first with room, by slot number.
void Provisioning::place_on_workers(uint32_t pool) {
    if (needs_.empty()) return;
    std::vector<Room> rooms;
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const shm::SlotRow& slot = state.slots[row];
        if (slot.state == SlotState::kFree || slot.pool != pool || slot.part_of != kNoRow) continue;
        const bool is_whole = (marks_[row] & Mark::kUnallocated) != 0;
        if (!is_whole && (marks_[row] & Mark::kTakesParts) == 0) continue;
        Room& room = rooms.emplace_back(Room{slot.number, slot.parts_max, is_whole, {}});
        room.parts -= std::min(room.parts, slot.parts);
        std::copy_n(state.slot_vectors[row].amount, room.free.size(), room.free.begin());
    }
    std::sort(rooms.begin(), rooms.end(), [](const Room& left, const Room& right) {
        return left.number < right.number;
    });
    std::erase_if(needs_, [&](const Need& need) {
        return std::any_of(
            rooms.begin(), rooms.end(), [&](Room& room) { return take(&room, need); });
    });
}

// S3.30: boxes of the minimum are filled one after the other, each with the largest that fits; who
// fits none makes another one, and the minimum as large as itself (S3.2).
Requirements Provisioning::required(uint32_t pool) const {
    Requirements found;
    uint32_t boxes = 0;
    std::vector<Need> left = needs_;
    while (!left.empty()) {
        found.min = larger(found.min, left.front().least);
        Room box{0, UINT32_MAX, true, found.min};
        std::erase_if(left, [&](const Need& need) { return take(&box, need); });
        ++boxes;
    }
    found.width = boxes == 0 ? 0 : boxes - 1;
    Vector least;
    std::copy_n(state.elastics[pool].create_min, least.size(), least.begin());
    found.min = larger(found.min, least);
    return found;
}

// For who has no claim yet.
Requirements Provisioning::smallest_order(uint32_t pool) const {
    Requirements found;
    const auto& least = state.elastics[pool].create_min;
    const bool is_said = std::any_of(
        std::begin(least), std::end(least), [](uint64_t amount) { return amount != 0; });
    std::copy_n(is_said ? least : state.pools[pool].capacity, found.min.size(), found.min.begin());
    return found;
}

// An order has no parts: its row keeps what is asked for instead of what is free.
void Provisioning::keep_size(uint32_t slot, const Requirements& wanted) {
    shm::SlotVectorRow& row = edit().row(state.slot_vectors[slot], 1U | 1U << 1U);
    for (size_t at = 0; at < wanted.min.size(); ++at)
        put(row.amount[at], wanted.min[at]);
    put(row.width, wanted.width);
}

}  // namespace dibs::core
