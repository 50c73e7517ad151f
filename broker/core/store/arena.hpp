// broker/core/store/arena.hpp -- stores payloads and attributes in chains of 512-byte blocks.
//
// The free blocks of STATE are one chain; k blocks cut from its head are already linked, so taking
// any number of them edits the list's head alone. Blocks that a turn frees stay in a second list
// until it has committed: otherwise a turn that is taken back would find a waiting claim's bytes
// overwritten.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "broker/core/store/edit.hpp"

namespace dibs::core {

class Arena {
  public:
    Arena(State& state, Edit& edit) : state_(state), edit_(edit) {}

    static uint32_t blocks_for(size_t bytes) {
        return static_cast<uint32_t>((bytes + kBlockBytes - 1) / kBlockBytes);
    }
    // Blocks that could be taken now.
    [[nodiscard]] uint32_t available() const;
    [[nodiscard]] bool has_room(size_t bytes) const { return has_blocks(blocks_for(bytes)); }
    [[nodiscard]] bool has_blocks(uint32_t blocks) const {
        if (blocks <= available()) return true;
        was_short_ = true;
        return false;
    }
    // Has somebody found no room since this was last asked?
    [[nodiscard]] bool take_shortage() { return std::exchange(was_short_, false); }
    // From the next turn on.
    [[nodiscard]] bool will_have_room(size_t bytes) const {
        const shm::CountersRow& counters = *state_.counters;
        return blocks_for(bytes) <= counters.arena_free + counters.arena_freed;
    }
    // Copies the bytes in and returns the chain; kNoRow if there is no room or nothing to copy.
    uint32_t store(std::span<const uint8_t> bytes) {
        return bytes.empty() ? shm::kNoRow : keep(bytes);
    }
    void free(uint32_t chain, size_t bytes);
    void copy(uint32_t chain, uint32_t size, std::byte* out) const;
    void begin_turn() { freed_in_this_turn_ = false; }

  private:
    static constexpr size_t kBlockBytes = sizeof(shm::ArenaBlock::bytes);

    uint32_t keep(std::span<const uint8_t> bytes);
    void reclaim();

    State& state_;
    Edit& edit_;
    bool freed_in_this_turn_ = false;
    mutable bool was_short_ = false;
};

}  // namespace dibs::core
