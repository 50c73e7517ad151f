// broker/core/store/least_rows.hpp -- finds the row that has the least key.
//
// A row's key stands in a cache line with those of seven neighbours, the least of the line in a
// line above with seven others, and so on, up to the least of all: a key that changes costs as many
// lines as there are levels, five for 32,768 rows, and fewer where it was not its line's least. Of
// equal keys the first row's counts. Nothing is allocated after construction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shm/layout.hpp"

namespace dibs::core {

class LeastRows {
  public:
    static constexpr uint64_t kNoKey = UINT64_MAX;  // of a row that is not in it

    explicit LeastRows(uint32_t rows) {
        do {
            rows = (rows + kWidth - 1) / kWidth;
            levels_.emplace_back(rows, kNone);
        } while (rows > 1);
    }

    [[nodiscard]] uint64_t key(uint32_t row) const {
        return levels_.front()[row / kWidth].keys[row % kWidth];
    }

    void fetch(uint32_t row) const { __builtin_prefetch(&levels_.front()[row / kWidth]); }

    void set(uint32_t row, uint64_t key) {
        for (std::vector<Line>& level : levels_) {
            Line& line = level[row / kWidth];
            if (line.keys[row % kWidth] == key) return;
            line.keys[row % kWidth] = key;
            key = *std::min_element(line.keys.begin(), line.keys.end());
            row /= kWidth;
        }
    }

    // kNoRow: none is in it.
    [[nodiscard]] uint32_t first() const {
        uint32_t row = 0;
        for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
            const std::array<uint64_t, kWidth>& keys = (*level)[row].keys;
            const auto least = std::min_element(keys.begin(), keys.end());
            if (*least == kNoKey) return shm::kNoRow;
            row = row * kWidth + static_cast<uint32_t>(least - keys.begin());
        }
        return row;
    }

    void clear() {
        for (std::vector<Line>& level : levels_)
            std::fill(level.begin(), level.end(), kNone);
    }

  private:
    static constexpr uint32_t kWidth = shm::kLineSize / sizeof(uint64_t);
    struct alignas(shm::kLineSize) Line {
        std::array<uint64_t, kWidth> keys;
    };
    static constexpr Line kNone = {
        {kNoKey, kNoKey, kNoKey, kNoKey, kNoKey, kNoKey, kNoKey, kNoKey}};

    std::vector<std::vector<Line>> levels_;  // the rows' first
};

}  // namespace dibs::core
