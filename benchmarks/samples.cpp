// benchmarks/samples.cpp -- nanoseconds of single operations, and their percentiles.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/samples.hpp"

#include <algorithm>

namespace dibs::bench {

void Samples::append(const Samples& more) {
    ns_.insert(ns_.end(), more.ns_.begin(), more.ns_.end());
}

Percentiles Samples::percentiles() const {
    if (ns_.empty()) return {};
    std::vector<float> sorted = ns_;
    std::sort(sorted.begin(), sorted.end());
    // The smallest sample that so many per mille do not exceed.
    const auto at = [&](size_t per_mille) {
        const size_t rank = (sorted.size() * per_mille + 999) / 1000;
        return static_cast<double>(sorted[rank == 0 ? 0 : rank - 1]);
    };
    return {at(500), at(990), at(999)};
}

}  // namespace dibs::bench
