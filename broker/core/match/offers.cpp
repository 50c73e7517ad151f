// broker/core/match/offers.cpp -- computes from rows what is offered of a pool, for who asks.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "broker/core/look.hpp"
#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

// A permutation of all numbers, another one for each seed (splitmix64).
uint64_t permuted(uint64_t number, uint64_t seed) {
    uint64_t mixed = number ^ seed;
    mixed = (mixed ^ mixed >> 30U) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ mixed >> 27U) * 0x94d049bb133111ebU;
    return mixed ^ mixed >> 31U;
}

constexpr uint64_t kFar = uint64_t{1} << 60U;  // so that six of them can be summed

struct Rank {
    bool is_smaller;  // than the most that is wanted
    uint64_t distance;
    uint64_t tie;

    bool operator<(const Rank& other) const {
        return std::tie(is_smaller, distance, tie) <
               std::tie(other.is_smaller, other.distance, other.tie);
    }
};

Rank rank_of(const Offer& offer,
             const Vector& most,
             const shm::SlotVectorRow& slot,
             uint64_t seed) {
    Rank rank{false, 0, permuted(offer.slot, seed)};
    for (size_t at = 0; at < most.size(); ++at) {
        const uint64_t has = offer.room[at];
        rank.is_smaller = rank.is_smaller || has < most[at];
        if (slot.capacity[at] == 0) continue;
        const uint64_t apart = has < most[at] ? most[at] - has : has - most[at];
        rank.distance += std::min(apart * 1000 / slot.capacity[at], kFar);  // apart <= 2^53
    }
    return rank;
}

bool has_at_least(const Offer& offer, const Vector& least) {
    return std::equal(
        least.begin(), least.end(), offer.room.begin(), [](uint64_t low, uint64_t has) {
            return low <= has;
        });
}

// Something of every resource that the slot has.
bool is_some(const Offer& offer, const shm::SlotVectorRow& slot) {
    bool has_any = false;
    for (size_t at = 0; at < offer.room.size(); ++at) {
        if (offer.room[at] == 0 && slot.capacity[at] != 0) return false;
        has_any = has_any || offer.room[at] != 0;
    }
    return has_any;
}

}  // namespace

// Whatever changes offers changes it: equal stamps of one broker mean equal offers. Of another
// broker it is another one.
uint64_t Vectors::offers_stamp(uint32_t pool) const {
    const bool waits = matcher().next_claim(pool) != kNoRow;
    const bool drains = pools().draining(pool);
    const bool may = may_grant_part(pool);
    const bool has_row = pools().slot_rows_left(kNoRow) != 0;
    return (state.head->epoch << 40U) + offer_changes[pool] * 16 + (may ? 8U : 0U) +
           (has_row ? 4U : 0U) + (waits ? 2U : 0U) + (drains ? 1U : 0U);
}

// S3.4, S3.11. What waits has a right to the room before an accept has, so nothing is offered then,
// nor what no accept would be granted. Where no slot row is left, a part that ends leaves its own.
std::vector<Offer> Vectors::all_offers(uint32_t pool_row) const {
    std::vector<Offer> offers;
    if (pools().draining(pool_row) || matcher().next_claim(pool_row) != kNoRow) return offers;
    if (!may_grant_part(pool_row)) return offers;
    std::vector<uint32_t> place(state.slots.size());  // slot → its place there + 1
    std::vector<bool> has_row(state.slots.size(), pools().slot_rows_left(kNoRow) != 0);
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const shm::SlotRow& slot = state.slots[row];
        if (slot.state == SlotState::kFree || slot.pool != pool_row) continue;
        if (slot.part_of != kNoRow || is_stopped(slot)) continue;
        offers.push_back({slot.number, {}, row});
        place[row] = static_cast<uint32_t>(offers.size());
        if (!parts_index->is_open(row)) continue;
        std::copy(std::begin(state.slot_vectors[row].amount),
                  std::end(state.slot_vectors[row].amount),
                  offers.back().room.begin());
    }
    for (uint32_t lease = leases().expired_leases.head(pool_row); lease != kNoRow;
         lease = leases().expired_leases.next(lease)) {
        for (uint32_t slot = state.leases[lease].first_slot; slot != kNoRow;
             slot = state.slots[slot].holder_next) {
            const uint32_t whole = whole_of(state.slots[slot], slot);
            const uint32_t at = place[whole];
            if (at == 0) continue;
            if (whole != slot) has_row[whole] = true;
            for (size_t resource = 0; resource < shm::kResourcesMax; ++resource)
                offers[at - 1].room[resource] += state.slot_vectors[slot].amount[resource];
        }
    }
    std::erase_if(offers, [&](const Offer& offer) {
        return !has_row[offer.row] || !is_some(offer, state.slot_vectors[offer.row]);
    });
    std::sort(offers.begin(), offers.end(), [](const Offer& one, const Offer& other) {
        return one.slot < other.slot;
    });
    return offers;
}

// S3.20.
Reason Vectors::offers(const OffersQuery& query,
                       std::vector<Offer>* found,
                       uint64_t* resource) const {
    found->clear();
    if (!pools().pool_lives(query.pool)) return Reason::kUnknownPool;
    const shm::PoolRow& pool = state.pools[query.pool];
    if (!has_resources(pool)) return Reason::kVector;
    Claim claim;
    claim.pool = query.pool;
    claim.least = query.least;
    claim.most = query.most;
    if (const Reason reason = refusal(claim, resource); reason != Reason::kOk) return reason;
    *found = all_offers(query.pool);
    if (!query.least.empty()) {
        Vector least;
        Vector most;
        (void)read_both(claim, &least, &most);
        std::erase_if(*found, [&](const Offer& offer) { return !has_at_least(offer, least); });
        const auto rank = [&](const Offer& offer) {
            return rank_of(offer, most, state.slot_vectors[offer.row], query.seed);
        };
        std::sort(found->begin(), found->end(), [&](const Offer& one, const Offer& other) {
            return rank(one) < rank(other);
        });
    }
    if (found->size() > query.count) found->resize(query.count);
    return Reason::kOk;
}

Reason Look::offers(const Core& core,
                    const OffersQuery& query,
                    std::vector<Offer>* found,
                    uint64_t* resource) {
    return core.parts_->offers(query, found, resource);
}

uint64_t Look::offers_stamp(const Core& core, PoolId pool) {
    return core.parts_->offers_stamp(pool);
}

void Look::keep_ended_leases(Core& core, size_t most) {
    core.parts_->ended.keep(most);
}

const EndedLease* Look::ended_lease(const Core& core, LeaseId id, uint64_t number) {
    return core.parts_->ended.find(id, number);
}

namespace {

std::string text_of(const Core& core, ArenaText meta) {
    std::string text(meta.size, '\0');
    auto* bytes = reinterpret_cast<std::byte*>(text.data());
    if (meta.size != 0) core.copy_chain(meta.chain, meta.size, bytes);
    return text;
}

}  // namespace

std::string Look::meta_of_claim(const Core& core, uint32_t row) {
    return text_of(core, meta_of(core.claim(row)));
}

std::string Look::meta_of_lease(const Core& core, uint32_t row) {
    const uint32_t behind = core.parts_->claim_behind(row);
    return behind != kNoRow ? meta_of_claim(core, behind) : text_of(core, meta_of(core.lease(row)));
}

}  // namespace dibs::core
