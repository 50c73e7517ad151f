// broker/core/store/state.hpp -- gives typed views over the bytes of a STATE segment.
//
// Rows are read through here as const; writing goes through Edit. This file allocates and owns
// nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "shm/layout.hpp"

namespace dibs::core {

// How many pieces ahead a thread that goes through a table in pieces prefetches, if another thread
// has every other piece (recovery/row_invariants.hpp).
inline constexpr uint32_t kPiecesAhead = 2;

template <class Row>
class Rows {
  public:
    Rows() = default;
    Rows(const Row* first, uint32_t count) : first_(first), count_(count) {}
    [[nodiscard]] const Row& operator[](uint32_t row) const {
        assert(row < count_);
        return first_[row];
    }
    [[nodiscard]] uint32_t size() const { return count_; }
    [[nodiscard]] uint32_t row_of(const Row& row) const {
        return static_cast<uint32_t>(&row - first_);
    }

    // Prefetches a row's first line, if there is such a row. Inline, because g++ 12 takes a
    // function that only prefetches for one that does nothing.
    [[gnu::always_inline]] void fetch(uint32_t row) const {
        if (row < count_) __builtin_prefetch(first_ + row);
    }
    // The same for another of its lines.
    template <size_t Line>
    [[gnu::always_inline]] void fetch_line(uint32_t row) const {
        static_assert(Line < sizeof(Row) / shm::kLineSize);
        if (row >= count_) return;
        __builtin_prefetch(reinterpret_cast<const std::byte*>(first_ + row) +
                           Line * shm::kLineSize);
    }
    // The same for all of its lines.
    [[gnu::always_inline]] void fetch_all(uint32_t row) const {
        if (row >= count_) return;
        for (size_t line = 0; line < sizeof(Row) / shm::kLineSize; ++line)
            __builtin_prefetch(reinterpret_cast<const std::byte*>(first_ + row) +
                               line * shm::kLineSize);
    }
    // Prefetches rows behind `row` for a loop over a table: the other lines of a row only once its
    // first one has come, and says that it is in use. The work on a row is longer than the
    // processor looks ahead.
    [[gnu::always_inline]] void fetch_behind(uint32_t row) const {
        constexpr uint32_t kFirst = 24;
        constexpr uint32_t kRest = 12;
        fetch(row + kFirst);
        if (count_ - row <= kRest || static_cast<int>(first_[row + kRest].state) == 0) return;
        for (size_t line = 1; line < sizeof(Row) / shm::kLineSize; ++line)
            __builtin_prefetch(reinterpret_cast<const std::byte*>(first_ + row + kRest) +
                               line * shm::kLineSize);
    }

  private:
    const Row* first_ = nullptr;
    uint32_t count_ = 0;
};

struct State {
    explicit State(std::span<std::byte> bytes);

    std::byte* base;
    uint64_t size;
    shm::StateHead* head;
    const shm::CountersRow* counters;
    Rows<shm::PoolRow> pools;
    Rows<shm::SessionRow> sessions;
    Rows<shm::SlotRow> slots;
    Rows<shm::ClaimRow> claims;
    Rows<shm::LeaseRow> leases;
    Rows<shm::AccountRow> accounts;
    Rows<shm::LabelSetRow> label_sets;
    Rows<shm::SlotVectorRow> slot_vectors;
    Rows<shm::ClaimVectorRow> claim_vectors;
    Rows<shm::TypeRow> types;
    Rows<shm::ElasticRow> elastics;
    Rows<shm::EntryRow> entries;
    Rows<shm::AppRow> apps;
    Rows<shm::GroupRow> groups;
    Rows<shm::TaskRow> tasks;
    Rows<shm::ArenaBlock> arena;
    uint64_t* log_offsets;
    shm::LogImage* log_images;
    shm::LogStore* log_stores;
    uint32_t log_images_max;
    uint32_t log_stores_max;

  private:
    [[nodiscard]] std::byte* place(shm::Table table) const;
    [[nodiscard]] uint32_t rows(shm::Table table) const;
    template <class Row>
    [[nodiscard]] Rows<Row> view(shm::Table table) const;
};

}  // namespace dibs::core
