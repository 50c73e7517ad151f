// tests/naive/vectors.cpp -- parts of slots: wanted, found, granted.
//
// What names a statement is written from it; what quotes is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

using shm::Reason;

// S3.1: what is missing is 0. None: it is no vector of the pool's resources.
std::optional<Vector> NaiveCore::vector_of(uint32_t pool,
                                           std::span<const core::Amount> amounts) const {
    const auto& resources = m_.pools.at(pool).vector;
    Vector vector(resources.size());
    std::set<std::string> named;
    for (const core::Amount& amount : amounts) {
        const auto resource =
            std::find_if(resources.begin(), resources.end(), [&](const auto& known) {
                return known.first == amount.name;
            });
        if (resource == resources.end() || amount.amount < 0) return std::nullopt;
        if (static_cast<uint64_t>(amount.amount) > shm::kAmountMax) return std::nullopt;
        if (!named.emplace(amount.name).second) return std::nullopt;
        vector[static_cast<size_t>(resource - resources.begin())] =
            static_cast<uint64_t>(amount.amount);
    }
    return vector;
}

// S3.6: a want of nothing is refused. S3.1: room is room in every label.
Reason NaiveCore::vector_refusal(const core::Claim& claim, uint64_t* resource) const {
    if (claim.least.empty() && claim.most.empty() && claim.offer == 0) return Reason::kOk;
    const auto& resources = m_.pools.at(claim.pool).vector;
    if (resources.empty()) return Reason::kVector;
    if (claim.units != 1) return Reason::kTooManyUnits;
    const std::optional<Vector> least = vector_of(claim.pool, claim.least);
    const std::optional<Vector> most = vector_of(claim.pool, claim.most);
    if (!least || !most) return Reason::kVector;
    if (*least == Vector(resources.size())) return Reason::kVector;
    for (size_t at = 0; at < resources.size(); ++at) {
        if (!claim.most.empty() && (*least)[at] > (*most)[at]) return Reason::kVector;
    }
    for (size_t at = 0; at < resources.size(); ++at) {
        if ((*least)[at] <= resources[at].second) continue;
        if (claim.offer != 0) return Reason::kOfferExpired;
        *resource = at;
        return Reason::kUnavailable;
    }
    return Reason::kOk;
}

void NaiveCore::take_vectors(Claim& claim, const core::Claim& command) const {
    claim.wants_part = !command.least.empty();
    if (!claim.wants_part) return;
    claim.least = *vector_of(command.pool, command.least);
    claim.most = command.most.empty() ? claim.least : *vector_of(command.pool, command.most);
    claim.offer = command.offer;
}

// S3.11: what no lease has.
Vector NaiveCore::free_of(const Slot& slot) const {
    Vector free;
    for (const auto& [name, amount] : m_.pools.at(slot.pool).vector)
        free.push_back(amount);
    for (const auto& [number, lease] : m_.leases) {
        if (lease.part.empty() || lease.slots.front() != slot.id) continue;
        for (size_t at = 0; at < free.size(); ++at)
            free[at] -= lease.part[at];
    }
    return free;
}

bool NaiveCore::has_parts(uint64_t slot) const {
    return std::any_of(m_.leases.begin(), m_.leases.end(), [&](const auto& entry) {
        return !entry.second.part.empty() && entry.second.slots.front() == slot;
    });
}

// "Each part takes a slot row."
uint64_t NaiveCore::slot_rows_used() const {
    const auto parts = std::count_if(m_.leases.begin(), m_.leases.end(), [](const auto& entry) {
        return !entry.second.part.empty();
    });
    return m_.slots.size() + static_cast<uint64_t>(parts);
}

// "The slot with the least room left afterwards, as the sum over its resources of left / capacity
// in permille, ties by number."
std::optional<uint64_t> NaiveCore::slot_for_part(const Claim& claim) const {
    if (slot_rows_used() >= limits_.slots) return std::nullopt;
    const auto& resources = m_.pools.at(claim.pool).vector;
    std::map<std::pair<uint64_t, uint32_t>, uint64_t> with_room;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool != claim.pool || slot.is_protected || slot.is_draining) continue;
        if (slot.is != SlotIs::kIdle && slot.is != SlotIs::kShared) continue;
        if (claim.offer != 0 && slot.number + 1 != claim.offer) continue;  // S3.5
        const Vector free = free_of(slot);
        uint64_t left = 0;
        bool has_room = true;
        for (size_t at = 0; at < free.size(); ++at) {
            has_room = has_room && free[at] >= claim.least[at];
            left += (free[at] - std::min(free[at], claim.most[at])) * 1000 / resources[at].second;
        }
        if (has_room) with_room[{left, slot.number}] = id;
    }
    if (with_room.empty()) return std::nullopt;
    return with_room.begin()->second;
}

// "It takes what there is between the two."
void NaiveCore::serve_part(uint64_t number, uint64_t id) {
    Claim& claim = m_.claims.at(number);
    Slot& slot = m_.slots.at(id);
    Vector part = free_of(slot);
    for (size_t at = 0; at < part.size(); ++at)
        part[at] = std::min(part[at], claim.most[at]);
    slot.is = SlotIs::kShared;
    claim.slots = {id};
    grant(number);
    m_.leases.at(number).part = part;
    core::Decision& granted = decisions_.back();
    granted.resources_begin = static_cast<uint32_t>(decided_costs_.size());
    granted.resources_count = static_cast<uint32_t>(part.size());
    decided_costs_.insert(decided_costs_.end(), part.begin(), part.end());
}

bool NaiveCore::same_vector(uint32_t pool, const core::PoolConfig& config) const {
    const auto& known = m_.pools.at(pool).vector;
    return std::equal(known.begin(),
                      known.end(),
                      config.vector.begin(),
                      config.vector.end(),
                      [](const auto& had, const core::Amount& amount) {
                          return had.first == amount.name &&
                                 had.second == static_cast<uint64_t>(amount.amount);
                      });
}

}  // namespace dibs::naive
