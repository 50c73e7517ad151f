// broker/core/store/arena.cpp -- cuts chains from the free list and gives them back.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/store/arena.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace dibs::core {

using shm::kNoRow;

uint32_t Arena::available() const {
    const shm::CountersRow& counters = *state_.counters;
    return counters.arena_free + (freed_in_this_turn_ ? 0 : counters.arena_freed);
}

void Arena::reclaim() {
    const shm::CountersRow& counters = *state_.counters;
    if (freed_in_this_turn_ || counters.arena_freed == 0) return;
    shm::CountersRow& edited = edit_.counters(1U << 1U);
    put(edit_.line(state_.arena[counters.arena_freed_tail].next), counters.arena_free_head);
    put(edited.arena_free_head, counters.arena_freed_head);
    put(edited.arena_free, counters.arena_free + counters.arena_freed);
    put(edited.arena_freed, 0U);
    put(edited.arena_freed_head, kNoRow);
    put(edited.arena_freed_tail, kNoRow);
}

uint32_t Arena::keep(std::span<const uint8_t> bytes) {
    const uint32_t wanted = blocks_for(bytes.size());
    if (wanted > available()) return kNoRow;
    reclaim();
    shm::CountersRow& counters = edit_.counters(1U << 1U);
    const uint32_t chain = counters.arena_free_head;
    assert(counters.arena_free >= wanted);
    uint32_t block = chain;
    for (size_t at = 0; at < bytes.size(); at += kBlockBytes) {
        // A free block's bytes mean nothing, so they are not logged.
        auto& target = const_cast<shm::ArenaBlock&>(state_.arena[block]);
        std::memcpy(target.bytes, bytes.data() + at, std::min(kBlockBytes, bytes.size() - at));
        stored();
        block = target.next;
    }
    put(counters.arena_free_head, block);
    put(counters.arena_free, counters.arena_free - wanted);
    return chain;
}

void Arena::free(uint32_t chain, size_t bytes) {
    if (chain == kNoRow) return;
    const uint32_t count = blocks_for(bytes);
    assert(count != 0);
    uint32_t last = chain;
    for (uint32_t step = 1; step < count; ++step)
        last = state_.arena[last].next;
    // What earlier turns freed goes back first: the second list is this turn's alone.
    reclaim();
    shm::CountersRow& counters = edit_.counters(1U << 1U);
    assert(counters.arena_free + counters.arena_freed + count <= state_.arena.size());
    if (counters.arena_freed == 0) put(counters.arena_freed_tail, last);
    put(edit_.line(state_.arena[last].next), counters.arena_freed_head);
    put(counters.arena_freed_head, chain);
    put(counters.arena_freed, counters.arena_freed + count);
    freed_in_this_turn_ = true;
}

void Arena::copy(uint32_t chain, uint32_t size, std::byte* out) const {
    for (uint32_t at = 0; at < size; at += kBlockBytes) {
        const shm::ArenaBlock& block = state_.arena[chain];
        std::memcpy(out + at, block.bytes, std::min<size_t>(kBlockBytes, size - at));
        chain = block.next;
    }
}

}  // namespace dibs::core
