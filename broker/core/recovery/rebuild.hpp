// broker/core/recovery/rebuild.hpp -- rebuilds all derived data in one scan over the rows.
//
// Slots and leases may come in pieces; the steps that need a whole table come last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "broker/core/parts.hpp"

namespace dibs::core {

// Rows and what orders them, side by side: a sort that went to the rows for each comparison would
// miss the cache in most of them. Often they stand in their order already.
template <class Number>
struct Ordered {
    using Place = std::pair<Number, uint32_t>;

    void sort() {
        if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
    }

    std::vector<Place> places = {};
};

class Rebuild {
  public:
    explicit Rebuild(Core::Parts& parts);

    // In this order; of slots and leases the rows in [begin, end).
    void claims();  // and what sessions and pools have of their own
    void slots(uint32_t begin, uint32_t end);
    void leases(uint32_t begin, uint32_t end);
    void finish();

  private:
    using Twice = std::pair<uint64_t, uint64_t>;
    // With the pool: to go back to the rows in this order would miss the cache in most of them.
    struct Aged {
        uint64_t fence;
        uint32_t row;
        uint32_t pool;
    };

    void sessions();
    void claim(uint32_t row);
    void collect_leases(uint32_t end);
    void leases_by_age();

    Core::Parts& parts_;
    const State& state_;
    std::vector<uint32_t> claims_;  // those in use, by number
    Ordered<Twice> expired_;
    bool in_order_ = true;  // leases stand as they were granted
    uint32_t slots_left_;   // in use, and not met yet
    uint32_t leases_left_;
    std::vector<uint64_t> last_fence_;  // by pool
    std::vector<Aged> by_age_;          // unless in_order_
};

}  // namespace dibs::core
