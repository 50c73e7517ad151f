// broker/core/pool_set.hpp -- a set of pools that is walked in order of row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "shm/layout.hpp"

namespace dibs::core {

class PoolSet {
  public:
    explicit PoolSet(uint32_t pools) : words_((pools + 63) / 64) {}

    void add(uint32_t pool) { words_[pool / 64] |= uint64_t{1} << (pool % 64); }
    void remove(uint32_t pool) { words_[pool / 64] &= ~(uint64_t{1} << (pool % 64)); }
    void clear() {
        for (uint64_t& word : words_)
            word = 0;
    }
    [[nodiscard]] bool empty() const { return first(0) == shm::kNoRow; }
    // The first member at or after `from`, kNoRow if there is none.
    [[nodiscard]] uint32_t first(uint32_t from) const {
        size_t at = from / 64;
        if (at >= words_.size()) return shm::kNoRow;
        uint64_t word = words_[at] & (~uint64_t{0} << (from % 64));
        while (word == 0) {
            if (++at == words_.size()) return shm::kNoRow;
            word = words_[at];
        }
        return static_cast<uint32_t>(at * 64) + static_cast<uint32_t>(std::countr_zero(word));
    }

  private:
    std::vector<uint64_t> words_;
};

}  // namespace dibs::core
