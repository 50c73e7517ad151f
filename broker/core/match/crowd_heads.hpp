// broker/core/match/crowd_heads.hpp -- orders the crowds that a pass may serve by next claim.
//
// A few crowds stand in order, and a served crowd moves back to the place of its next claim; many
// are a heap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dibs::core {

// A crowd by its first claim: the best quality first, then the oldest claim.
struct CrowdAtHead {
    uint32_t quality;
    uint32_t crowd;
    uint64_t number;
    bool operator<(const CrowdAtHead& other) const {  // for heaps: the first is the largest
        if (quality != other.quality) return quality < other.quality;
        return number > other.number;
    }
};

class CrowdHeads {
  public:
    void clear() {
        heads_.clear();
        first_ = 0;
    }
    void add(const CrowdAtHead& head) { heads_.push_back(head); }
    // Once all are there.
    void arrange() {
        is_heap_ = heads_.size() > kFew;
        if (is_heap_) {
            std::make_heap(heads_.begin(), heads_.end());
        } else {
            for (size_t at = 1; at < heads_.size(); ++at)
                stand(at);
        }
    }
    [[nodiscard]] bool empty() const { return first_ == heads_.size(); }
    [[nodiscard]] const CrowdAtHead& first() const { return heads_[first_]; }
    void drop_first() {
        if (!is_heap_) {
            ++first_;
            return;
        }
        std::pop_heap(heads_.begin(), heads_.end());
        heads_.pop_back();
    }
    // The number of its next claim: a larger one.
    void renew_first(uint64_t number) {
        if (is_heap_) {
            std::pop_heap(heads_.begin(), heads_.end());
            heads_.back().number = number;
            std::push_heap(heads_.begin(), heads_.end());
            return;
        }
        CrowdAtHead moved = heads_[first_];
        moved.number = number;
        size_t at = first_;
        for (; at + 1 < heads_.size() && moved < heads_[at + 1]; ++at)
            heads_[at] = heads_[at + 1];
        heads_[at] = moved;
    }

  private:
    static constexpr size_t kFew = 16;

    // Into its place among those before it.
    void stand(size_t at) {
        const CrowdAtHead moved = heads_[at];
        for (; at > 0 && heads_[at - 1] < moved; --at)
            heads_[at] = heads_[at - 1];
        heads_[at] = moved;
    }

    std::vector<CrowdAtHead> heads_;
    size_t first_ = 0;  // while they stand in order
    bool is_heap_ = false;
};

}  // namespace dibs::core
