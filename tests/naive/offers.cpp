// tests/naive/offers.cpp -- what is offered of slots with resources, and in which order.
//
// What names a statement is written from it; what quotes is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

namespace {

// "Ties by a permutation of the slots' numbers: splitmix64 of number xor seed."
uint64_t permuted(uint64_t number, uint64_t seed) {
    uint64_t x = number ^ seed;
    x ^= x >> 30U;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27U;
    x *= 0x94d049bb133111ebU;
    x ^= x >> 31U;
    return x;
}

}  // namespace

// S3.4: total less what no unexpired lease has, unless some resource of it is used up. S3.11: what
// has expired is free. "Nothing while a claim waits that is not held, or while the pool drains",
// nor "while no accept would be granted".
std::vector<core::Offer> NaiveCore::offers(uint32_t pool,
                                           std::span<const core::Amount> least,
                                           std::span<const core::Amount> most,
                                           uint64_t seed) const {
    std::vector<core::Offer> found;
    const bool waits = std::any_of(m_.claims.begin(), m_.claims.end(), [&](const auto& entry) {
        const Claim& claim = entry.second;
        const bool by_priority = m_.pools.at(pool).config.order == shm::PoolOrder::kPriority;
        return claim.pool == pool && !claim.is_confirming && !claim.is_held_back &&
               !(by_priority && claim.priority < 1);
    });
    if (waits || is_draining(pool)) return found;
    const bool counted = m_.pools.at(pool).config.kind == shm::PoolKind::kCounted;
    if (lease_rows_free() == 0 || (!counted && !may_ask(pool, 1))) return found;
    const auto& resources = m_.pools.at(pool).vector;
    std::map<uint32_t, Vector> capacity;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool != pool || slot.part_of) continue;
        if (slot.is_protected || slot.is_unqualified || slot.is_draining) continue;
        const bool has_room = slot.is == SlotIs::kIdle || slot.is == SlotIs::kShared;
        const bool is_open = has_room && parts_of(id) < slot.parts_max && !must_answer(id);
        const Vector free = free_of(slot);
        bool has_row = slot_rows_used() < limits_.slots;
        core::Offer offer;
        offer.slot = slot.number;
        capacity[slot.number] = slot.capacity;
        for (size_t at = 0; at < resources.size(); ++at)
            offer.room[at] = is_open ? free[at] : 0;
        for (const auto& [number, lease] : m_.leases) {
            for (const uint64_t held : lease.slots) {
                const bool is_here = held == id || m_.slots.at(held).part_of == id;
                if (!is_here || !lease.is_uncollected) continue;
                has_row = has_row || held != id;
                const Vector& has = held == id ? slot.capacity : m_.slots.at(held).part;
                for (size_t at = 0; at < resources.size(); ++at)
                    offer.room[at] += has[at];
            }
        }
        bool has_any = false;
        bool has_each = true;
        for (size_t at = 0; at < resources.size(); ++at) {
            has_any = has_any || offer.room[at] != 0;
            has_each = has_each && (offer.room[at] != 0 || slot.capacity[at] == 0);
        }
        if (has_row && has_any && has_each) found.push_back(offer);
    }
    if (least.empty()) {
        std::sort(found.begin(), found.end(), [](const auto& one, const auto& other) {
            return one.slot < other.slot;
        });
        return found;
    }
    // S3.20: those below min dropped; offers >= max first by increasing distance to it, then
    // smaller ones by increasing distance.
    const Vector low = *vector_of(pool, least);
    const Vector high = most.empty() ? low : *vector_of(pool, most);
    using Key = std::tuple<bool, uint64_t, uint64_t>;
    std::map<Key, core::Offer> ordered;
    for (const core::Offer& offer : found) {
        bool has_least = true;
        bool has_most = true;
        uint64_t distance = 0;
        for (size_t at = 0; at < resources.size(); ++at) {
            has_least = has_least && offer.room[at] >= low[at];
            has_most = has_most && offer.room[at] >= high[at];
            const uint64_t apart =
                std::max(offer.room[at], high[at]) - std::min(offer.room[at], high[at]);
            const uint64_t of = capacity.at(offer.slot)[at];
            distance += of == 0 ? 0 : apart * 1000 / of;
        }
        if (has_least) ordered[{!has_most, distance, permuted(offer.slot, seed)}] = offer;
    }
    found.clear();
    for (const auto& [key, offer] : ordered)
        found.push_back(offer);
    return found;
}

}  // namespace dibs::naive
