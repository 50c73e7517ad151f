// broker/core/match/vectors.cpp -- takes what claims want of slots, and gives it back.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/vectors.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

constexpr size_t kNamesMax = shm::kResourcesMax * (shm::kResourceNameMax + 1);

bool is_amount(int64_t amount) {
    return amount >= 0 && static_cast<uint64_t>(amount) <= shm::kAmountMax;
}

bool is_nothing(const Vector& vector) {
    return std::all_of(vector.begin(), vector.end(), [](uint64_t amount) { return amount == 0; });
}

Vector vector_of(const uint64_t (&amounts)[shm::kResourcesMax]) {
    Vector vector;
    std::copy(std::begin(amounts), std::end(amounts), vector.begin());
    return vector;
}

}  // namespace

std::string Vectors::refusal_of(const PoolConfig& config) {
    if (config.vector.empty()) return {};
    if (config.kind == shm::PoolKind::kWorker && config.expiry == shm::ExpiryMode::kLazy) {
        return "slots of workers that have resources are not collected";
    }
    if (config.order == shm::PoolOrder::kAccount) {
        return "slots of a pool ordered by account have no resources";
    }
    if (config.vector.size() > shm::kResourcesMax) {
        return "slots have at most " + std::to_string(shm::kResourcesMax) + " resources";
    }
    for (size_t at = 0; at < config.vector.size(); ++at) {
        const Amount& amount = config.vector[at];
        const std::string name = "resource '" + std::string{amount.name} + "'";
        if (!is_resource_name(amount.name)) {
            return name + ": a name has 1 to 31 letters, digits, '_', '-' and '.'";
        }
        if (amount.amount == 0 || !is_amount(amount.amount)) {
            return name + ": a slot has from 1 to 2^53 of it";
        }
        for (size_t before = 0; before < at; ++before) {
            if (config.vector[before].name == amount.name) return name + " is named twice";
        }
    }
    return {};
}

bool Vectors::differs(uint32_t row, const PoolConfig& config) const {
    const shm::PoolRow& pool = state.pools[row];
    const std::vector<std::string> had =
        has_resources(pool) ? resource_names(row) : std::vector<std::string>{};
    if (had.size() != config.vector.size()) return true;
    for (size_t at = 0; at < had.size(); ++at) {
        const Amount& amount = config.vector[at];
        if (had[at] != amount.name || pool.capacity[at] != static_cast<uint64_t>(amount.amount))
            return true;
    }
    return false;
}

// Its row is new, and its flags are set; the arena has a block.
void Vectors::open_pool(uint32_t row, const PoolConfig& config) {
    if (config.vector.empty()) return;
    open_part_index();
    std::string names;
    shm::PoolRow& pool = edit().row(state.pools[row], kPoolParts);
    for (size_t at = 0; at < config.vector.size(); ++at) {
        names += config.vector[at].name;
        names += '\0';
        put(pool.capacity[at], config.vector[at].amount);
    }
    const uint32_t chain =
        arena().store({reinterpret_cast<const uint8_t*>(names.data()), names.size()});
    assert(chain != kNoRow);
    put(pool.resources, chain);
    put(pool.resources_size, names.size());
    put(pool.resources_count, config.vector.size());
}

void Vectors::close_pool(uint32_t row) {
    const shm::PoolRow& pool = state.pools[row];
    if (!has_resources(pool)) return;
    assert(pool.parts == 0 && pool.shared == 0);
    arena().free(pool.resources, pool.resources_size);
    parts_index->forget(row);
}

// If a pool needs it. It learns of each shape as a claim wants it.
void Vectors::open_part_index() {
    for (uint32_t row = 0; row < state.counters->pools && !parts_index; ++row) {
        if (!has_resources(state.pools[row])) continue;
        parts_index = std::make_unique<PartIndex>(state);
        place_.resize(state.slots.size());
        turn().decided_amounts.reserve(state.log_stores_max);
    }
}

std::vector<std::string> Vectors::resource_names(uint32_t row) const {
    const shm::PoolRow& pool = state.pools[row];
    std::array<char, kNamesMax> bytes;
    arena().copy(pool.resources, pool.resources_size, reinterpret_cast<std::byte*>(bytes.data()));
    std::vector<std::string> found;
    for (size_t at = 0; at < pool.resources_size; at += found.back().size() + 1)
        found.emplace_back(bytes.data() + at);
    return found;
}

bool Vectors::read(uint32_t row, std::span<const Amount> amounts, Vector* vector) const {
    const shm::PoolRow& pool = state.pools[row];
    std::array<char, kNamesMax> names;
    arena().copy(pool.resources, pool.resources_size, reinterpret_cast<std::byte*>(names.data()));
    *vector = {};
    uint32_t named = 0;
    for (const Amount& amount : amounts) {
        if (!is_amount(amount.amount)) return false;
        uint32_t at = 0;
        const char* name = names.data();
        while (at < pool.resources_count && amount.name != name) {
            name += std::string_view(name).size() + 1;
            ++at;
        }
        if (at == pool.resources_count || (named & 1U << at) != 0) return false;
        named |= 1U << at;
        (*vector)[at] = static_cast<uint64_t>(amount.amount);
    }
    return true;
}

bool Vectors::read_both(const Claim& command, Vector* least, Vector* most) const {
    if (!read(command.pool, command.least, least)) return false;
    *most = *least;
    if (!command.most.empty() && !read(command.pool, command.most, most)) return false;
    return !is_nothing(*least) &&
           std::equal(least->begin(), least->end(), most->begin(), [](uint64_t low, uint64_t high) {
               return low <= high;
           });
}

Reason Vectors::refusal(const Claim& command, uint64_t* resource) const {
    const bool wants_any = command.least.empty() && command.most.empty();
    if (wants_any && command.offer == 0) return Reason::kOk;
    const shm::PoolRow& pool = state.pools[command.pool];
    if (!has_resources(pool)) return Reason::kVector;
    if (command.units != 1) return Reason::kTooManyUnits;
    Vector least;
    Vector most;
    if (!read_both(command, &least, &most)) return Reason::kVector;
    // What workers will announce nobody knows; what may be ordered is known.
    const bool is_known =
        pool.kind == shm::PoolKind::kCounted || provisioning().is_elastic(command.pool);
    for (uint32_t at = 0; is_known && at < pool.resources_count; ++at) {
        if (least[at] <= pool.capacity[at]) continue;
        if (command.offer != 0) return Reason::kOfferExpired;
        *resource = at;
        return Reason::kUnavailable;
    }
    return Reason::kOk;
}

void Vectors::bring(uint32_t row, const Claim& command) {
    Vector least;
    Vector most;
    const bool is_sound = read_both(command, &least, &most);
    assert(is_sound);
    (void)is_sound;
    shm::ClaimVectorRow& wanted = edit().row(state.claim_vectors[row], 1U << 1U);
    for (size_t at = 0; at < shm::kResourcesMax; ++at) {
        put(wanted.least[at], least[at]);
        put(wanted.most[at], most[at]);
    }
    const bool accepts = command.offer != 0;
    put(wanted.offer, command.offer);
    put(wanted.offer_slot, accepts ? pools().find_number(command.pool, command.offer - 1) : kNoRow);
}

uint32_t Vectors::slot_for_placeholder(uint32_t row) {
    if (pools().slot_rows_left(kNoRow) == 0) {
        lacked_slot_row = true;
        return kNoRow;
    }
    return best_slot(row);
}

uint32_t Vectors::slot_for(uint32_t row) {
    return may_have_part(state.claims[row].pool) ? best_slot(row) : kNoRow;
}

uint32_t Vectors::best_slot(uint32_t row) {
    const uint32_t pool = state.claims[row].pool;
    const shm::ClaimVectorRow& wanted = state.claim_vectors[row];
    const Vector least = vector_of(wanted.least);
    const Vector most = vector_of(wanted.most);
    if (wanted.offer == 0) {
        return held_back.empty() ? parts_index->best(pool, least, most)
                                 : parts_index->best_of_all(pool, least, most, held_back);
    }
    const uint32_t slot = wanted.offer_slot;
    const bool fits = is_offered(row, slot) && parts_index->is_open(slot) &&
                      !parts_index->is_held_back(slot, held_back) &&
                      parts_index->left_of(slot, least, most) != PartIndex::kNoRoom;
    return fits ? slot : kNoRow;
}

// The slot itself, and not what has its row since it left.
bool Vectors::is_offered(uint32_t claim, uint32_t slot) const {
    const shm::ClaimVectorRow& wanted = state.claim_vectors[claim];
    if (wanted.offer == 0) return true;
    if (slot != wanted.offer_slot || slot == kNoRow) return false;
    return state.slots[slot].pool == state.claims[claim].pool &&
           state.slots[slot].number == wanted.offer - 1;
}

// But for a slot row, and a slot that has room.
bool Vectors::may_grant_part(uint32_t pool) const {
    if (!free_rows().lease_row_left()) return false;
    const shm::PoolRow& row = state.pools[pool];
    return row.kind != shm::PoolKind::kWorker || may_ask(row, 1);
}

// But for a slot that has room.
bool Vectors::may_have_part(uint32_t pool) {
    if (!may_grant_part(pool)) return false;
    if (pools().slot_rows_left(kNoRow) != 0) return true;
    lacked_slot_row = true;
    return false;
}

uint32_t Vectors::cut_part(uint32_t claim, uint32_t slot) {
    const bool has_worker = state.slots[slot].session != kNoRow;
    return cut_part(claim, slot, has_worker ? SlotState::kReserved : SlotState::kLeased);
}

uint32_t Vectors::cut_part(uint32_t claim_row, uint32_t slot_row, SlotState to) {
    const shm::ClaimVectorRow& wanted = state.claim_vectors[claim_row];
    const uint32_t row = slots().blank_slot(state.slots[slot_row].pool);
    shm::SlotRow& whole = edit().row(state.slots[slot_row], 1U << 1U);
    shm::SlotRow& part = edit().row(state.slots[row], 1U << 1U);
    shm::PoolRow& pool = edit().row(state.pools[whole.pool], kPoolParts);
    put(part.number, whole.number);
    put(part.part_of, slot_row);
    put(whole.parts, whole.parts + 1);
    put(pool.parts, pool.parts + 1);
    shm::SlotVectorRow& left = edit().row(state.slot_vectors[slot_row], 1);
    shm::SlotVectorRow& taken = edit().row(state.slot_vectors[row], 1);
    for (size_t at = 0; at < shm::kResourcesMax; ++at) {
        const uint64_t amount = std::min(left.amount[at], wanted.most[at]);
        assert(amount >= wanted.least[at]);
        put(taken.amount[at], amount);
        put(left.amount[at], left.amount[at] - amount);
    }
    if (whole.state == SlotState::kIdle) {
        slots().move_slot(slot_row, SlotState::kShared);
    } else {
        slot_changes(slot_row);
    }
    if (whole.session != kNoRow) join_worker(part, row, whole);
    slots().move_slot(row, to);
    return row;
}

void Vectors::shrink_part(uint32_t claim, uint32_t row) {
    const shm::ClaimVectorRow& wanted = state.claim_vectors[claim];
    const uint32_t whole = state.slots[row].part_of;
    if (state.slots[row].group == kNoRow) return;  // it was cut for the claim
    shm::SlotVectorRow& left = edit().row(state.slot_vectors[whole], 1);
    shm::SlotVectorRow& taken = edit().row(state.slot_vectors[row], 1);
    for (size_t at = 0; at < shm::kResourcesMax; ++at) {
        const uint64_t amount = std::min(taken.amount[at], wanted.most[at]);
        put(left.amount[at], left.amount[at] + taken.amount[at] - amount);
        put(taken.amount[at], amount);
    }
    slot_changes(whole);
    matcher().touch(state.slots[whole].pool);
}

void Vectors::join_part(uint32_t row) {
    if (gangs().linked != 0) gangs().is_lost(row);
    shm::SlotRow& part = edit().row(state.slots[row], 1);
    const uint32_t slot_row = part.part_of;
    shm::SlotRow& whole = edit().row(state.slots[slot_row], 1U << 1U);
    shm::PoolRow& pool = edit().row(state.pools[whole.pool], kPoolParts);
    assert(whole.state == SlotState::kShared && whole.parts != 0 && pool.parts != 0);
    if (part.session != kNoRow) {
        slots().kept_slots.remove(TimerKind::kKept, row);
        sessions().session_slots.remove(part.session, row);
    }
    put(part.holder, kNoRow);
    put(whole.parts, whole.parts - 1);
    put(pool.parts, pool.parts - 1);
    shm::SlotVectorRow& left = edit().row(state.slot_vectors[slot_row], 1);
    const shm::SlotVectorRow& taken = state.slot_vectors[row];
    for (size_t at = 0; at < shm::kResourcesMax; ++at)
        put(left.amount[at], left.amount[at] + taken.amount[at]);
    slots().move_slot(row, SlotState::kFree);
    free_rows().free_slot_row(row);
    if (whole.parts == 0) return slots().make_idle(slot_row);
    slot_changes(slot_row);
    matcher().touch(whole.pool);
}

void Vectors::list_part(Decision* told, uint32_t row, uint32_t claim) {
    const auto& amounts = state.slot_vectors[row].amount;
    told->resources_begin = static_cast<uint32_t>(turn().decided_amounts.size());
    told->resources_count = state.pools[state.slots[row].pool].resources_count;
    for (uint32_t at = 0; at < told->resources_count; ++at) {
        const uint64_t most = claim == kNoRow
                                  ? amounts[at]
                                  : std::min(amounts[at], state.claim_vectors[claim].most[at]);
        turn().decided_amounts.push_back(static_cast<int64_t>(most));
    }
}

void Vectors::whole_slot_begins(uint32_t row) {
    const shm::PoolRow& pool = state.pools[state.slots[row].pool];
    put(edit().row(state.slots[row], 1U << 1U).parts_max, UINT32_MAX);
    set_capacity(row, vector_of(pool.capacity));
}

// Pools with claims that wait for a slot row are looked at again.
void Vectors::slot_row_comes() {
    if (!lacked_slot_row) return;
    lacked_slot_row = false;
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool)
        turn().dirty.add(pool);
}

// Whether the claim could have the slot, or a part of it, if so much of it were free.
bool Vectors::fits(uint32_t row, const Vector& free) const {
    const shm::ClaimRow& claim = state.claims[row];
    const shm::PoolRow& pool = state.pools[claim.pool];
    const shm::ClaimVectorRow& wanted = state.claim_vectors[row];
    for (uint32_t at = 0; at < pool.resources_count; ++at) {
        const uint64_t need = wants_part(claim) ? wanted.least[at] : pool.capacity[at];
        if (free[at] < need) return false;
    }
    return true;
}

// What has expired longest counts first, until as many slots as are missing would serve the claim;
// of what was counted, only what is on these slots ends.
bool Vectors::collect(uint32_t row, uint32_t units) {
    const shm::ClaimRow& claim = state.claims[row];
    const uint32_t pool = claim.pool;
    const uint32_t idle = state.pools[pool].idle;
    const uint32_t missing = wants_part(claim) ? 1 : units - std::min(units, idle);
    made_.clear();
    coming_.clear();
    free_.clear();
    uint32_t last = kNoRow;
    for (uint32_t lease = leases().expired_leases.head(pool);
         lease != kNoRow && made_.size() < missing;
         lease = leases().expired_leases.next(lease)) {
        count_collected(row, lease);
        last = lease;
    }
    for (const uint32_t slot : coming_)
        place_[slot] = 0;
    if (made_.size() < missing || missing == 0) return true;
    for (uint32_t lease = leases().expired_leases.head(pool);;) {
        if (turn().full()) return false;
        const uint32_t next = leases().expired_leases.next(lease);
        const bool is_last = lease == last;
        if (is_on_made_slot(lease)) leases().end_collected(lease);
        if (is_last) return true;
        lease = next;
    }
}

void Vectors::count_collected(uint32_t claim, uint32_t lease) {
    for (uint32_t slot = state.leases[lease].first_slot; slot != kNoRow;
         slot = state.slots[slot].holder_next) {
        const uint32_t whole = whole_of(state.slots[slot], slot);
        if (is_stopped(state.slots[whole])) continue;
        if (wants_part(state.claims[claim]) && !is_offered(claim, whole)) continue;
        if (place_[whole] == 0) {
            coming_.push_back(whole);
            free_.push_back(vector_of(state.slot_vectors[whole].amount));
            place_[whole] = static_cast<uint32_t>(coming_.size());
        }
        Vector& free = free_[place_[whole] - 1];
        for (size_t at = 0; whole != slot && at < free.size(); ++at)
            free[at] += state.slot_vectors[slot].amount[at];
        // A part that ends leaves its row to the one that comes.
        const bool has_row = whole != slot || !wants_part(state.claims[claim]) ||
                             pools().slot_rows_left(kNoRow) != 0;
        const bool is_made = std::find(made_.begin(), made_.end(), whole) != made_.end();
        if (has_row && !is_made && fits(claim, free)) made_.push_back(whole);
    }
}

bool Vectors::is_on_made_slot(uint32_t lease) const {
    for (uint32_t slot = state.leases[lease].first_slot; slot != kNoRow;
         slot = state.slots[slot].holder_next) {
        const uint32_t whole = whole_of(state.slots[slot], slot);
        if (std::find(made_.begin(), made_.end(), whole) != made_.end()) return true;
    }
    return false;
}

uint32_t Vectors::scarcest(uint32_t row) const {
    const uint32_t pool = state.claims[row].pool;
    const shm::ClaimVectorRow& wanted = state.claim_vectors[row];
    Vector slots_with = {};
    for (uint32_t slot = 0; slot < state.slots.size(); ++slot) {
        if (state.slots[slot].pool != pool || !parts_index->is_open(slot)) continue;
        for (size_t at = 0; at < slots_with.size(); ++at)
            slots_with[at] += state.slot_vectors[slot].amount[at] >= wanted.least[at] ? 1U : 0U;
    }
    const auto end = slots_with.begin() + state.pools[pool].resources_count;
    const auto scarcest = std::min_element(slots_with.begin(), end);
    return *scarcest != 0 ? kNoRow : static_cast<uint32_t>(scarcest - slots_with.begin());
}

uint64_t Vectors::most_free(uint32_t pool, uint32_t resource) const {
    uint64_t most = 0;
    for (uint32_t slot = 0; slot < state.slots.size(); ++slot) {
        if (state.slots[slot].pool != pool || !parts_index->is_open(slot)) continue;
        most = std::max(most, state.slot_vectors[slot].amount[resource]);
    }
    return most;
}

uint32_t Vectors::holder_of(uint32_t pool, uint32_t resource) const {
    for (uint32_t lease = leases().pool_leases.head(pool); lease != kNoRow;
         lease = leases().pool_leases.next(lease)) {
        const uint32_t slot = state.leases[lease].first_slot;
        const bool is_part = state.slots[slot].part_of != kNoRow;
        if (!is_part || resource == kNoRow || state.slot_vectors[slot].amount[resource] != 0) {
            return lease;
        }
    }
    return kNoRow;
}

std::vector<Resource> Core::resources(PoolId row, uint32_t slot) const {
    const shm::PoolRow& pool = parts_->state.pools[row];
    std::vector<Resource> found;
    if (!has_resources(pool)) return found;
    const State& state = parts_->state;
    const auto& amounts = slot == kNoRow ? pool.capacity : state.slot_vectors[slot].amount;
    // Of a slot that is held as a whole nothing is free.
    const bool is_held =
        slot != kNoRow && state.slots[slot].part_of == kNoRow && state.slots[slot].holder != kNoRow;
    for (const std::string& name : parts_->resource_names(row))
        found.push_back({name, is_held ? 0 : amounts[found.size()]});
    return found;
}

}  // namespace dibs::core
