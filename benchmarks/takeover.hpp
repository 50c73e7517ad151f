// benchmarks/takeover.hpp -- deaths: of the broker to the next one's first answer, of a holder to
// its slot in another's hands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/races.hpp"

namespace dibs::bench {

void measure_takeovers(const Stage& stage);
void measure_deaths_of_holders(const Stage& stage);

}  // namespace dibs::bench
