// broker/core/match/claim_line.cpp -- implements the rare paths:
// removal, insertion inside, growth.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/claim_line.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace dibs::core {

using shm::kNoRow;

namespace {

constexpr size_t kLeast = 8;  // entries of a ring

}  // namespace

// The first place whose number is not smaller.
uint32_t ClaimLine::first_from(uint64_t number) const {
    uint32_t low = 0;
    uint32_t high = size_;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (number_at(middle) < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void ClaimLine::drop_first() {
    if (rows_[first_] == kNoRow) {
        --hole_counts_[first_ / kBlock];
        --holes_;
    }
    first_ = place(1);
    --size_;
}

void ClaimLine::remove(uint64_t number) {
    assert(size_ != 0);
    if (number_at(0) == number) {
        do {
            drop_first();
        } while (size_ != 0 && rows_[first_] == kNoRow);
        return;
    }
    const uint32_t from = first_from(number);
    const uint32_t at = place(from);
    assert(number_at(from) == number && rows_[at] != kNoRow);
    rows_[at] = kNoRow;
    ++hole_counts_[at / kBlock];
    ++holes_;
}

uint32_t ClaimLine::count_before(uint64_t number) const {
    const uint32_t end = first_from(number);
    if (holes_ == 0) return end;
    uint32_t holes = 0;
    for (uint32_t at = 0; at < end;) {
        const uint32_t from = place(at);
        if (from % kBlock == 0 && end - at >= kBlock && rows_.size() - from >= kBlock) {
            holes += hole_counts_[from / kBlock];
            at += kBlock;
        } else {
            holes += rows_[from] == kNoRow ? 1 : 0;
            ++at;
        }
    }
    return end - holes;
}

// Laid out anew, without holes, with the claim in its place and half as much room again.
void ClaimLine::insert_slowly(uint64_t number, uint32_t row) {
    if (size_ != 0 && size_ < rows_.size() && number < number_at(0) && reach(last_, number)) {
        first_ = first_ == 0 ? static_cast<uint32_t>(rows_.size()) - 1 : first_ - 1;
        ++size_;
        return store(first_, number, row);
    }
    const uint32_t living = count() + 1;
    const size_t room = std::max({kLeast, rows_.size(), size_t{living} + living / 2});
    ClaimLine anew;
    const uint64_t least = size_ == 0 ? number : std::min(number, number_at(0));
    anew.last_ = size_ == 0 ? number : std::max(number, last_);
    anew.lower_.resize(room);
    if (!anew.reach(anew.last_, least)) anew.upper_.resize(room);
    anew.rows_.resize(room);
    anew.hole_counts_.resize(room / kBlock + 1);
    bool inserted = false;
    const auto add = [&](uint64_t other, uint32_t claim) {
        anew.store(anew.size_++, other, claim);
    };
    for (uint32_t at = 0; at < size_; ++at) {
        if (!inserted && number_at(at) > number) {
            add(number, row);
            inserted = true;
        }
        if (rows_[place(at)] != kNoRow) add(number_at(at), rows_[place(at)]);
    }
    if (!inserted) add(number, row);
    assert(anew.count() == living);
    *this = std::move(anew);
}

}  // namespace dibs::core
