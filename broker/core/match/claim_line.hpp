// broker/core/match/claim_line.hpp -- keeps claims that are alike by number, with positions.
//
// The entries are a ring in order of number. Removing the first one moves the ring's start;
// removing another one leaves a hole, and the holes of every 512 entries are counted, so that "how
// many stand before this number" is a binary search, a sum of counts and a look at one block. The
// ring doubles when it is full of claims and is packed when it is full of holes.
//
// Only the lower half of a number is kept: the last number gives the rest, as long as the first is
// less than 2³² below it. A line in which a claim has waited longer keeps the upper halves too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shm/layout.hpp"

namespace dibs::core {

class ClaimLine {
  public:
    // `number` must not stand in it.
    void insert(uint64_t number, uint32_t row) {
        const bool is_last = size_ == 0 || (last_ < number && reach(number, number_at(0)));
        if (size_ == rows_.size() || !is_last) return insert_slowly(number, row);
        store(place(size_++), number, row);
        last_ = number;
    }
    void remove(uint64_t number);

    // The claim with the smallest number, or kNoRow.
    [[nodiscard]] uint32_t head() const { return size_ == 0 ? shm::kNoRow : rows_[first_]; }
    [[nodiscard]] uint64_t head_number() const { return number_at(0); }  // of one that is there
    [[nodiscard]] uint32_t count_before(uint64_t number) const;
    [[nodiscard]] uint32_t count() const { return size_ - holes_; }

    // In order.
    template <class Visit>
    void each(const Visit& visit) const {
        for (uint32_t at = 0; at < size_; ++at) {
            const uint32_t row = rows_[place(at)];
            if (row != shm::kNoRow) visit(row);
        }
    }

  private:
    static constexpr uint32_t kBlock = 512;

    [[nodiscard]] uint32_t place(uint32_t at) const {
        const auto room = static_cast<uint32_t>(rows_.size());
        return first_ + at < room ? first_ + at : first_ + at - room;
    }
    [[nodiscard]] uint64_t number_at(uint32_t at) const {
        const uint32_t lower = lower_[place(at)];
        if (!upper_.empty()) return uint64_t{upper_[place(at)]} << 32U | lower;
        return last_ - static_cast<uint32_t>(last_ - lower);
    }
    // Can `last` stand at the end of a line whose head is `first`?
    [[nodiscard]] bool reach(uint64_t last, uint64_t first) const {
        return !upper_.empty() || last - first < uint64_t{1} << 32U;
    }
    void store(uint32_t at, uint64_t number, uint32_t row) {
        rows_[at] = row;
        lower_[at] = static_cast<uint32_t>(number);
        if (!upper_.empty()) upper_[at] = static_cast<uint32_t>(number >> 32U);
    }
    [[nodiscard]] uint32_t first_from(uint64_t number) const;
    void drop_first();
    void insert_slowly(uint64_t number, uint32_t row);

    std::vector<uint32_t> lower_;        // halves of numbers
    std::vector<uint32_t> upper_;        // empty: they follow from last_
    uint64_t last_ = 0;                  // the last entry's number
    std::vector<uint32_t> rows_;         // kNoRow = a hole
    std::vector<uint16_t> hole_counts_;  // of each block of the ring
    uint32_t first_ = 0;
    uint32_t size_ = 0;  // counts holes; the first entry is never a hole
    uint32_t holes_ = 0;
};

}  // namespace dibs::core
