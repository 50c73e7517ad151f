// benchmarks/samples.hpp -- nanoseconds of single operations, and their percentiles.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dibs::bench {

struct Percentiles {
    double p50 = 0;
    double p99 = 0;
    double p999 = 0;
};

class Samples {
  public:
    void reserve(size_t count) { ns_.reserve(count); }
    void add(double ns) { ns_.push_back(static_cast<float>(ns)); }
    void append(const Samples& more);
    void clear() { ns_.clear(); }
    [[nodiscard]] size_t count() const { return ns_.size(); }
    [[nodiscard]] Percentiles percentiles() const;

  private:
    std::vector<float> ns_;
};

}  // namespace dibs::bench
