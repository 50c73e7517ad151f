// broker/core/store/row_index.hpp -- finds a row by its contents, at four bytes a cell.
//
// Like index.hpp, for tables of a million rows, where a cell's size counts. A cell holds the row
// and, in the bits that rows leave free, its distance from its home and a few bits of its hash. The
// entry farther from its home comes first (Robin Hood hashing), so distances stay short, a search
// ends early, and moving back the entries behind a hole needs no hash. A row whose distance does
// not fit its cell's bits goes to a list that is searched from end to end: that takes dozens of
// rows with one home, which no client can aim at without the seed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

#include "shm/layout.hpp"

namespace dibs::core {

class RowIndex {
  public:
    // Rows below `rows`, each at most once.
    explicit RowIndex(uint32_t rows)
        : row_bits_(static_cast<uint32_t>(std::bit_width(rows))),
          distance_bits_(std::min(kDistanceBits, 32 - row_bits_)),
          cells_(size_t{rows} + size_t{rows} / 4 + 2, kEmpty) {
        assert(row_bits_ + kDistanceBits / 2 <= 32);
    }

    template <class Same>
    [[nodiscard]] uint32_t find(uint64_t hash, const Same& same) const {
        size_t at = home(hash);
        for (uint32_t distance = 0; distance <= distance_max(); ++distance, at = next(at)) {
            const uint32_t cell = cells_[at];
            if (cell == kEmpty || distance_of(cell) < distance) break;
            if (cell >> row_bits_ != mark(hash, distance)) continue;
            if (same(row_of(cell))) return row_of(cell);
        }
        for (const uint32_t row : strays_) {
            if (same(row)) return row;
        }
        return shm::kNoRow;
    }

    void insert(uint64_t hash, uint32_t row) {
        assert(row < row_mask());
        ++used_;
        uint32_t distance = 0;
        uint32_t cell = mark(hash, distance) << row_bits_ | row;
        for (size_t at = home(hash);; at = next(at)) {
            if (cells_[at] == kEmpty) {
                cells_[at] = cell;
                return;
            }
            if (distance_of(cells_[at]) < distance) {
                std::swap(cells_[at], cell);
                distance = distance_of(cell);
            }
            if (distance == distance_max()) return strays_.push_back(row_of(cell));
            ++distance;
            cell += 1U << row_bits_;
        }
    }

    void remove(uint64_t hash, uint32_t row) {
        assert(used_ != 0);
        --used_;
        size_t at = home(hash);
        for (uint32_t distance = 0;; ++distance, at = next(at)) {
            const bool gone = distance > distance_max() || cells_[at] == kEmpty ||
                              distance_of(cells_[at]) < distance;
            if (gone) return remove_stray(row);
            if (row_of(cells_[at]) == row) break;
        }
        for (size_t hole = at;;) {
            const size_t from = next(hole);
            if (cells_[from] == kEmpty || distance_of(cells_[from]) == 0) {
                cells_[hole] = kEmpty;
                return;
            }
            cells_[hole] = cells_[from] - (1U << row_bits_);
            hole = from;
        }
    }

    [[nodiscard]] size_t size() const { return used_; }

  private:
    static constexpr uint32_t kDistanceBits = 7;
    static constexpr uint32_t kEmpty = 0xffffffffU;

    // A cell: bits of the hash, the distance, the row; from the top.
    [[nodiscard]] uint32_t row_mask() const { return (uint32_t{1} << row_bits_) - 1; }
    [[nodiscard]] uint32_t distance_max() const { return (uint32_t{1} << distance_bits_) - 1; }
    [[nodiscard]] uint32_t row_of(uint32_t cell) const { return cell & row_mask(); }
    [[nodiscard]] uint32_t distance_of(uint32_t cell) const {
        return cell >> row_bits_ & distance_max();
    }
    [[nodiscard]] uint32_t mark(uint64_t hash, uint32_t distance) const {
        const uint64_t all = hash << distance_bits_ | distance;
        return static_cast<uint32_t>(all) & ((uint32_t{1} << (32 - row_bits_)) - 1);
    }
    [[nodiscard]] size_t home(uint64_t hash) const {
        return (uint64_t{static_cast<uint32_t>(hash)} * cells_.size()) >> 32U;
    }
    [[nodiscard]] size_t next(size_t at) const { return at + 1 == cells_.size() ? 0 : at + 1; }

    void remove_stray(uint32_t row) {
        const auto found = std::find(strays_.begin(), strays_.end(), row);
        assert(found != strays_.end());
        *found = strays_.back();
        strays_.pop_back();
    }

    uint32_t row_bits_;
    uint32_t distance_bits_;
    std::vector<uint32_t> cells_;
    std::vector<uint32_t> strays_;
    size_t used_ = 0;
};

}  // namespace dibs::core
