// benchmarks/peers/peer_races.hpp -- races of dibs against what programs use in its place.
//
// One synchronous client that takes a slot and returns it, then up to 64 of them at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/races.hpp"

namespace dibs::bench {

void race_peers(const Stage& stage);

}  // namespace dibs::bench
