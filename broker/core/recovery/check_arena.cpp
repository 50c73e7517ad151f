// broker/core/recovery/check_arena.cpp -- checks that a block belongs to one text or free list.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/check.hpp"

namespace dibs::core {

// Returns the chain's last block.
template <class Whose>
uint32_t Check::mark_chain(uint32_t chain, uint32_t bytes, const Whose& whose) {
    uint32_t last = kNoRow;
    for (uint32_t left = chain == kNoRow ? 0 : Arena::blocks_for(bytes); left > 0; --left) {
        if (chain >= state_.arena.size()) {
            wrongs_.push_back(whose() + " leaves the arena");
            return kNoRow;
        }
        last = chain;
        state_.arena.fetch(chain + kCheckAhead);
        expect(
            &wrongs_, block_used_[chain] == 0, [&] { return whose() + " shares an arena block"; });
        block_used_[chain] = 1;
        chain = state_.arena[chain].next;
    }
    return last;
}

void Check::arena() {
    const shm::CountersRow& counters = *state_.counters;
    block_used_.assign(state_.arena.size(), 0);
    constexpr uint32_t kBlock = sizeof(shm::ArenaBlock::bytes);
    const auto named = [](const char* list) { return [list] { return std::string(list); }; };
    mark_chain(counters.arena_free_head, counters.arena_free * kBlock, named("the free list"));
    const uint32_t last = mark_chain(
        counters.arena_freed_head, counters.arena_freed * kBlock, named("the freed list"));
    expect(&wrongs_, counters.arena_freed == 0 || last == counters.arena_freed_tail, [] {
        return std::string("the freed list ends at another block");
    });
    const bool free_counted = (counters.arena_free == 0) == (counters.arena_free_head == kNoRow);
    const bool freed_counted = (counters.arena_freed == 0) == (counters.arena_freed_head == kNoRow);
    expect(&wrongs_, free_counted && freed_counted, [] {
        return std::string(
            "the arena counts free blocks that no list has, or none of one that does");
    });
    std::vector<uint32_t> held(state_.sessions.size());
    const auto add = [&](uint32_t session, uint32_t bytes) {
        if (session < held.size()) held[session] += Arena::blocks_for(bytes);
    };
    for (const uint32_t row : live_claims_) {
        const shm::ClaimRow& claim = state_.claims[row];
        add(claim.session, claim.payload_size);
        mark_chain(claim.payload, claim.payload_size, [&] {
            return "claim " + std::to_string(claim.arrival);
        });
        if (!parts_.by_account(claim.pool)) continue;
        mark_chain(claim.carried_cost, sizeof(Cost), [&] {
            return "cost of " + std::to_string(claim.arrival);
        });
    }
    for (const uint32_t row : counts_.slots_with_text) {
        const shm::SlotRow& slot = state_.slots[row];
        add(slot.session, slot.attributes_size);
        mark_chain(slot.attributes, slot.attributes_size, [&] {
            return "slot row " + std::to_string(row);
        });
    }
    expect(&wrongs_, held == parts_.arena_held, [] {
        return std::string("sessions hold other parts of the arena than are counted for them");
    });
    for (uint32_t row = 0; row < state_.accounts.size(); ++row) {
        const shm::AccountRow& account = state_.accounts[row];
        if (account.state == 0) continue;
        mark_chain(account.label_limits, account.label_limits_size, [] {
            return std::string("an account's limits");
        });
    }
    for (uint32_t row = 0; row < state_.label_sets.size(); ++row) {
        const shm::LabelSetRow& set = state_.label_sets[row];
        if (set.references == 0) continue;
        mark_chain(set.text, set.text_size, [] { return std::string("a label set"); });
    }
    uint64_t used = 0;
    for (const uint8_t block : block_used_)
        used += block;
    expect_count(
        &wrongs_, [] { return std::string("arena blocks"); }, used, state_.arena.size());
}

}  // namespace dibs::core
