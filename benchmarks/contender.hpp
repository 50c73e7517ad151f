// benchmarks/contender.hpp -- one thing that is measured: a floor, or ourselves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "benchmarks/samples.hpp"

namespace dibs::bench {

class Contender {
  public:
    virtual ~Contender() = default;
    // Does so many operations and adds a sample for each, or for each bulk of them.
    virtual void measure(uint32_t operations, Samples& out) = 0;
};

}  // namespace dibs::bench
