// broker/core/store/index.hpp -- finds a row by its contents; a hash index derived from the rows.
//
// Open addressing with linear probing and backward-shift deletion, sized once to at most four
// fifths full: no allocation, no tombstones. The contents stay in the row; the index compares
// through the caller's predicate and keeps 32 bits of hash to skip most comparisons. A hash's home
// is its part of the range of cells, so that their number need not be a power of two.
//
// An index whose size is not known beforehand grows where its owner says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "shm/layout.hpp"

namespace dibs::core {

// Mixes bytes into 64 bits. Keys are chosen by clients: `seed` keeps collisions from being worth
// computing.
inline uint64_t hash_bytes(const void* bytes, size_t size, uint64_t seed) {
    const auto* in = static_cast<const unsigned char*>(bytes);
    uint64_t hash = seed ^ (size * 0x9e3779b97f4a7c15ULL);
    for (size_t i = 0; i < size; ++i) {
        hash = (hash ^ in[i]) * 0xff51afd7ed558ccdULL;
        hash ^= hash >> 32U;
    }
    return hash;
}

// The same for texts, eight bytes at a time: another number than hash_bytes() makes of them.
inline uint64_t text_hash(std::string_view text, uint64_t seed) {
    constexpr uint64_t kOdd = 0xff51afd7ed558ccdULL;
    uint64_t hash = seed ^ (text.size() * 0x9e3779b97f4a7c15ULL);
    const auto mix = [&](uint64_t word) {
        hash = (hash ^ word) * kOdd;
        hash ^= hash >> 32U;
    };
    const auto word_at = [&](size_t at) {
        uint64_t word;
        std::memcpy(&word, text.data() + at, sizeof(word));
        return word;
    };
    size_t at = 0;
    for (; text.size() - at >= sizeof(uint64_t); at += sizeof(uint64_t))
        mix(word_at(at));
    if (at == text.size()) return hash;
    if (text.size() > sizeof(uint64_t)) {  // the last eight: some of them a second time
        mix(word_at(text.size() - sizeof(uint64_t)));
        return hash;
    }
    uint64_t rest = 0;
    for (; at < text.size(); ++at)
        rest = rest << 8U | static_cast<unsigned char>(text[at]);
    mix(rest);
    return hash;
}

// What an account holds of a label in a pool is counted under this.
inline uint64_t label_key(uint32_t pool, std::string_view label) {
    return hash_bytes(label.data(), label.size(), pool);
}

// Numbers grow one by one; they are spread, so that a long run of numbers does not fill a long run
// of cells.
inline uint64_t number_hash(uint64_t number) {
    return (number * 0x9e3779b97f4a7c15ULL) >> 32U;
}

// Of a few numbers of our own.
template <class... Numbers>
uint64_t numbers_hash(Numbers... numbers) {
    uint64_t hash = 0;
    ((hash = (hash ^ uint64_t{numbers}) * 0x9e3779b97f4a7c15ULL, hash ^= hash >> 29U), ...);
    return hash >> 32U ^ hash;
}

class Index {
  public:
    explicit Index(uint32_t rows) : cells_(room_for(rows)) {}

    template <class Same>
    [[nodiscard]] uint32_t find(uint64_t hash, const Same& same) const {
        for (size_t at = home(hash);; at = next(at)) {
            const Cell& cell = cells_[at];
            if (cell.row == shm::kNoRow) return shm::kNoRow;
            if (cell.hash == static_cast<uint32_t>(hash) && same(cell.row)) return cell.row;
        }
    }

    void insert(uint64_t hash, uint32_t row) {
        assert(used_ + 1 < cells_.size());
        size_t at = home(hash);
        while (cells_[at].row != shm::kNoRow)
            at = next(at);
        cells_[at] = {row, static_cast<uint32_t>(hash)};
        ++used_;
    }

    // Twice as large once it is four fifths full.
    void grow() {
        if (room_for(static_cast<uint32_t>(used_) + 1) <= cells_.size()) return;
        Index larger(static_cast<uint32_t>(used_) * 2 + 2);
        for (const Cell& cell : cells_) {
            if (cell.row != shm::kNoRow) larger.insert(cell.hash, cell.row);
        }
        *this = std::move(larger);
    }

    void remove(uint64_t hash, uint32_t row) {
        size_t at = home(hash);
        while (cells_[at].row != row) {
            assert(cells_[at].row != shm::kNoRow);
            at = next(at);
        }
        --used_;
        for (size_t hole = at;;) {
            cells_[hole].row = shm::kNoRow;
            size_t from = next(hole);
            for (;; from = next(from)) {
                if (cells_[from].row == shm::kNoRow) return;
                if (distance(home(cells_[from].hash), from) >= distance(hole, from)) break;
            }
            cells_[hole] = cells_[from];
            hole = from;
        }
    }

    [[nodiscard]] size_t size() const { return used_; }

  private:
    struct Cell {
        uint32_t row = shm::kNoRow;
        uint32_t hash = 0;
    };
    static size_t room_for(uint32_t rows) { return size_t{rows} + size_t{rows} / 4 + 2; }
    // The home is taken from the 32 bits that a cell keeps.
    [[nodiscard]] size_t home(uint64_t hash) const {
        return (uint64_t{static_cast<uint32_t>(hash)} * cells_.size()) >> 32U;
    }
    [[nodiscard]] size_t next(size_t at) const { return at + 1 == cells_.size() ? 0 : at + 1; }
    [[nodiscard]] size_t distance(size_t from, size_t to) const {
        return to >= from ? to - from : to + cells_.size() - from;
    }

    std::vector<Cell> cells_;
    size_t used_ = 0;
};

}  // namespace dibs::core
