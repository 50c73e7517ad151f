// tests/naive/vectors.cpp -- parts of slots: wanted, found, granted.
//
// What names a statement is written from it; what quotes is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/gangs.hpp"

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
    // What workers will announce nobody knows. S3.30: what fits no shape that may be ordered fails.
    const bool is_known =
        is_elastic(claim.pool) || m_.pools.at(claim.pool).config.kind == shm::PoolKind::kCounted;
    for (size_t at = 0; is_known && at < resources.size(); ++at) {
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
    if (command.offer == 0) return;
    // S3.5: of a slot that is there. One that comes later in the turn was offered to nobody.
    const bool is_there = std::any_of(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
        const Slot& slot = entry.second;
        return slot.pool == command.pool && !slot.part_of && slot.number + 1 == command.offer;
    });
    claim.offer = is_there ? command.offer : UINT32_MAX;
}

// S3.11: what no part has.
Vector NaiveCore::free_of(const Slot& slot) const {
    Vector free = slot.capacity;
    for (const auto& [id, part] : m_.slots) {
        if (part.part_of != slot.id) continue;
        for (size_t at = 0; at < free.size(); ++at)
            free[at] -= part.part[at];
    }
    return free;
}

uint64_t NaiveCore::parts_of(uint64_t slot) const {
    return static_cast<uint64_t>(
        std::count_if(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
            return entry.second.part_of == slot;
        }));
}

// "Each part takes a slot row."
uint64_t NaiveCore::slot_rows_used() const {
    return m_.slots.size();
}

Vector NaiveCore::usual_capacity(uint32_t pool) const {
    Vector capacity;
    for (const auto& [name, amount] : m_.pools.at(pool).vector)
        capacity.push_back(amount);
    return capacity;
}

// But for a slot that has room.
bool NaiveCore::may_have_part(const Claim& claim) const {
    if (slot_rows_used() >= limits_.slots) return false;
    if (claim.is_ask()) return true;  // a placeholder has no lease, and no worker is asked
    const bool counted = m_.pools.at(claim.pool).config.kind == shm::PoolKind::kCounted;
    return lease_rows_free() > 0 && (counted || may_ask(claim.pool, 1));
}

// "The slot with the least room left afterwards, as the sum over its resources of left / capacity
// in permille, ties by number."
std::optional<uint64_t> NaiveCore::slot_for_part(const Claim& claim) const {
    if (!may_have_part(claim)) return std::nullopt;
    std::map<std::pair<uint64_t, uint32_t>, uint64_t> with_room;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool != claim.pool || slot.part_of) continue;
        if (slot.is_protected || slot.is_unqualified || slot.is_draining) continue;
        if (slot.is != SlotIs::kIdle && slot.is != SlotIs::kShared) continue;
        if (claim.offer != 0 && slot.number + 1 != claim.offer) continue;  // S3.5
        if (parts_of(id) >= slot.parts_max || must_answer(id) || is_held_back(slot)) continue;
        const Vector free = free_of(slot);
        uint64_t left = 0;
        bool has_room = true;
        for (size_t at = 0; at < free.size(); ++at) {
            has_room = has_room && free[at] >= claim.least[at];
            if (slot.capacity[at] == 0) continue;
            left += (free[at] - std::min(free[at], claim.most[at])) * 1000 / slot.capacity[at];
        }
        if (has_room) with_room[{left, slot.number}] = id;
    }
    if (with_room.empty()) return std::nullopt;
    return with_room.begin()->second;
}

// "It takes what there is between the two." A part is a slot of its own; of a worker's its worker
// is asked.
void NaiveCore::serve_part(uint64_t number, uint64_t id) {
    Claim& claim = m_.claims.at(number);
    Slot part = part_from(id, claim.most);
    part.part_for = number;
    claim.slots = {part.id};
    m_.slots[part.id] = part;
    if (part.session == shm::kNoRow) {
        grant(number);
    } else {
        reserve(number);
    }
}

Slot NaiveCore::part_from(uint64_t id, const Vector& most) {
    Slot& slot = m_.slots.at(id);
    Slot part;
    part.id = m_.slots_seen++;
    part.pool = slot.pool;
    part.number = slot.number;
    part.session = slot.session;
    part.worker_tag = slot.worker_tag;
    part.part_of = id;
    part.part = free_of(slot);
    for (size_t at = 0; at < part.part.size(); ++at)
        part.part[at] = std::min(part.part[at], most[at]);
    slot.is = SlotIs::kShared;
    return part;
}

// "Where a slot would be idle, it is back in its slot; with the last one that becomes idle."
void NaiveCore::join_part(uint64_t id) {
    const uint64_t whole = *m_.slots.at(id).part_of;
    gangs().slot_goes(m_.slots.at(id));
    m_.slots.erase(id);
    if (parts_of(whole) == 0) become_idle(whole);
}

void NaiveCore::list_part(core::Decision& decision, const Slot& slot, const Vector& most) {
    if (!slot.part_of) return;
    decision.resources_begin = static_cast<uint32_t>(decided_costs_.size());
    decision.resources_count = static_cast<uint32_t>(slot.part.size());
    for (size_t at = 0; at < slot.part.size(); ++at)
        decided_costs_.push_back(static_cast<int64_t>(std::min(slot.part[at], most[at])));
}

bool NaiveCore::is_leaving(const Slot& slot) const {
    return m_.slots.at(slot.part_of.value_or(slot.id)).is_draining;
}

// "Until its worker has answered for one part, the slot gives no other."
bool NaiveCore::must_answer(uint64_t id) const {
    return std::any_of(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
        const Slot& part = entry.second;
        return part.part_of == id && (part.is == SlotIs::kReserved || part.is == SlotIs::kKept ||
                                      part.is == SlotIs::kUnknown || part.is_taken_back);
    });
}

// "A claim that waits holds back the slots that it could use, if nobody had anything of them: one
// for whole slots all of them, and so does one that lacks a lease row, a slot row or a worker that
// may be asked". An ask needs a slot row alone.
bool NaiveCore::holds_back_some(const Claim& claim) const {
    const bool counted = m_.pools.at(claim.pool).config.kind == shm::PoolKind::kCounted;
    return !counted && claim.wants_part && may_have_part(claim);
}

// "A claim for a part holds back the slots that give parts and whose capacity has its minimum."
bool NaiveCore::is_held_back(const Slot& slot) const {
    if (slot.parts_max == 0) return false;
    return std::any_of(held_back_.begin(), held_back_.end(), [&](const Vector& least) {
        return std::equal(
            least.begin(), least.end(), slot.capacity.begin(), [](uint64_t want, uint64_t has) {
                return want <= has;
            });
    });
}

// "Where nothing is left for those behind it, the pass ends": no orphan gives way for one of them.
bool NaiveCore::is_all_held_back(uint32_t pool) const {
    return std::all_of(m_.slots.begin(), m_.slots.end(), [&](const auto& entry) {
        const Slot& slot = entry.second;
        return slot.pool != pool || slot.part_of || is_held_back(slot);
    });
}

std::vector<uint64_t> NaiveCore::ready_for(const Claim& claim) const {
    std::vector<uint64_t> ready = ready_of(claim.pool);
    std::erase_if(ready, [&](uint64_t id) { return is_held_back(m_.slots.at(id)); });
    return ready;
}

Reason NaiveCore::announced_vector_refusal(const core::Announce& announce,
                                           const Slot* existing) const {
    if (m_.pools.at(announce.pool).vector.empty()) {
        return announce.resources.empty() && announce.parts == 0 ? Reason::kOk : Reason::kVector;
    }
    const std::optional<Vector> capacity = vector_of(announce.pool, announce.resources);
    if (!capacity || announce.parts > 256) return Reason::kVector;
    if (existing == nullptr || announce.resources.empty()) return Reason::kOk;
    const Vector free = free_of(*existing);
    for (size_t at = 0; at < free.size(); ++at) {
        if ((*capacity)[at] < existing->capacity[at] - free[at]) return Reason::kState;
    }
    return Reason::kOk;
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
