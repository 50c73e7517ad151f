// broker/core/match/vectors.hpp -- cuts parts of slots for claims, and joins them again.
//
// A part is a slot row of its own, made for its lease and freed with it, so that everything that
// happens to a lease's slot happens to a part, too. Its slot is shared as long as it has parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/match/offers.hpp"
#include "broker/core/match/part_index.hpp"
#include "broker/core/module.hpp"

namespace dibs::core {

struct Vectors : Module<Vectors> {
    explicit Vectors(const State& rows) : Module(rows), offer_changes(rows.pools.size()) {}

    // There if there is, or was, a pool whose slots have resources.
    std::unique_ptr<PartIndex> parts_index;
    bool lacked_slot_row = false;         // a claim that waits has found none
    std::vector<uint64_t> offer_changes;  // by pool: of what offers are computed from
    // In a pass: what claims want at least that wait before the one that is looked at.
    std::vector<Vector> held_back;

    // Why the pool's slots cannot have these resources; empty: they can.
    [[nodiscard]] static std::string refusal_of(const PoolConfig& config);
    [[nodiscard]] bool differs(uint32_t pool, const PoolConfig& config) const;
    void open_pool(uint32_t pool, const PoolConfig& config);
    void close_pool(uint32_t pool);
    void open_part_index();

    // By the pool's order of its resources. False: they are no vector of these.
    [[nodiscard]] bool read(uint32_t pool, std::span<const Amount> amounts, Vector* vector) const;
    // kOk, or why the claim's vectors are none; of kUnavailable the place of the first resource.
    [[nodiscard]] Reason refusal(const Claim& command, uint64_t* resource) const;
    void bring(uint32_t claim, const Claim& command);

    // A slot that the claim can have a part of in this pass; kNoRow: none.
    [[nodiscard]] uint32_t slot_for(uint32_t claim);
    // The same for a placeholder: no worker is asked, and no lease row is needed.
    [[nodiscard]] uint32_t slot_for_placeholder(uint32_t claim);
    // Returns the part: leased, or of a worker's slot reserved, its holder to be set.
    uint32_t cut_part(uint32_t claim, uint32_t slot);
    uint32_t cut_part(uint32_t claim, uint32_t slot, SlotState to);
    // The part of a placeholder becomes as large as the claim that replaces it wants.
    void shrink_part(uint32_t claim, uint32_t part);
    void join_part(uint32_t part);
    // Of a placeholder's part what the claim will have of it.
    void list_part(Decision* told, uint32_t part, uint32_t claim = kNoRow);
    // Of a slot of a pool whose slots have resources.
    void slot_changes(uint32_t slot) {
        if (state.slots[slot].part_of != kNoRow) {
            if (state.slots[slot].session != kNoRow) part_changes(slot);
            return;
        }
        parts_index->change(slot);
        ++offer_changes[state.slots[slot].pool];
    }
    void whole_slot_begins(uint32_t slot);
    void slot_row_comes();

    // worker_parts.cpp
    [[nodiscard]] Reason announce_refusal(const Announce& command, uint32_t existing) const;
    // kOk was the answer to that.
    void fill_announced(uint32_t slot, const Announce& command);
    // The worker of an order has come: until it says so it has what the pool says.
    void order_comes(uint32_t slot);
    // The parts of the slot that no claim and no lease has.
    void join_unheld(uint32_t slot);
    // A claim waits that no slot serves: whether the pass goes on, with slots that it cannot use.
    [[nodiscard]] bool hold_back(uint32_t claim);
    // Idle slots of the pool that nobody who waits before can use: so many, or too few.
    [[nodiscard]] std::span<const uint32_t> idle_for_others(uint32_t pool, uint32_t units);

    // Leases::collect() for a pool whose slots have resources.
    bool collect(uint32_t claim, uint32_t units);

    // offers.cpp
    // A lease has expired and stays, or lives again: so much room is offered more, or less.
    void expired_room_changes(uint32_t pool) {
        if (has_resources(state.pools[pool])) ++offer_changes[pool];
    }
    [[nodiscard]] uint64_t offers_stamp(uint32_t pool) const;
    Reason offers(const OffersQuery& query, std::vector<Offer>* found, uint64_t* resource) const;

    // For who looks.
    [[nodiscard]] std::vector<std::string> resource_names(uint32_t pool) const;
    // The resource of which the fewest slots have as much as the claim wants at least.
    [[nodiscard]] uint32_t scarcest(uint32_t claim) const;
    // Of one open slot.
    [[nodiscard]] uint64_t most_free(uint32_t pool, uint32_t resource) const;
    // Of leases with some of it, the oldest.
    [[nodiscard]] uint32_t holder_of(uint32_t pool, uint32_t resource) const;

  private:
    [[nodiscard]] uint32_t best_slot(uint32_t claim);
    [[nodiscard]] bool read_both(const Claim& command, Vector* least, Vector* most) const;
    [[nodiscard]] bool is_offered(uint32_t claim, uint32_t slot) const;
    [[nodiscard]] std::vector<Offer> all_offers(uint32_t pool) const;  // by slot number
    [[nodiscard]] bool fits(uint32_t claim, const Vector& free) const;
    [[nodiscard]] bool may_grant_part(uint32_t pool) const;
    [[nodiscard]] bool may_have_part(uint32_t pool);
    void set_capacity(uint32_t slot, const Vector& capacity);
    void join_worker(shm::SlotRow& part, uint32_t row, const shm::SlotRow& whole);
    void part_changes(uint32_t part);
    void count_collected(uint32_t claim, uint32_t lease);
    [[nodiscard]] bool is_on_made_slot(uint32_t lease) const;

    // Of collect().
    std::vector<uint32_t> made_;    // slots that would serve the claim
    std::vector<uint32_t> coming_;  // slots of what has expired,
    std::vector<Vector> free_;      // what would be free of each,
    std::vector<uint32_t> place_;   // slot → its place there + 1

    std::vector<uint32_t> idle_;  // of idle_for_others()
};

}  // namespace dibs::core
