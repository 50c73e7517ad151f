// broker/core/store/pool_set.hpp -- a set of pools, iterated in row order.
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

    void add(uint32_t pool) {
        words_[pool / 64] |= uint64_t{1} << (pool % 64);
        if (pool >= 64 * end_) end_ = pool / 64 + 1;
    }
    void remove(uint32_t pool) { words_[pool / 64] &= ~(uint64_t{1} << (pool % 64)); }
    void clear() {
        for (uint32_t at = 0; at < end_; ++at)
            words_[at] = 0;
        end_ = 0;
    }
    [[nodiscard]] bool empty() const { return first(0) == shm::kNoRow; }
    // The first member at or after `from`, or kNoRow.
    [[nodiscard]] uint32_t first(uint32_t from) const {
        uint64_t mask = ~uint64_t{0} << (from % 64);
        for (uint32_t at = from / 64; at < end_; ++at, mask = ~uint64_t{0}) {
            const uint64_t word = words_[at] & mask;
            if (word != 0) return at * 64 + static_cast<uint32_t>(std::countr_zero(word));
        }
        return shm::kNoRow;
    }

  private:
    std::vector<uint64_t> words_;
    uint32_t end_ = 0;  // words from here on have been zero since the last clear()
};

}  // namespace dibs::core
