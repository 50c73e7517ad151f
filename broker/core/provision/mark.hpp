// broker/core/provision/mark.hpp -- names what slots of elastic pools count as.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dibs::core {

// What a slot of an elastic pool counts as.
using Marks = uint16_t;
namespace Mark {
inline constexpr uint16_t kRuns = 1;          // a claim or a lease holds it
inline constexpr uint16_t kUnallocated = 2;   // nothing holds it, and no mark keeps it from a grant
inline constexpr uint16_t kAsked = 4;         // an order without an answer
inline constexpr uint16_t kBoots = 8;         // of an order, with a boot time-out that goes on
inline constexpr uint16_t kIdles = 16;        // of an order, and idle
inline constexpr uint16_t kUntold = 32;       // its provisioner has not been told to make it, or,
                                              // drained and free, to stop it
inline constexpr uint16_t kUnderway = 64;     // unallocated and not idle
inline constexpr uint16_t kGoes = 128;        // of an order, and drained
inline constexpr uint16_t kTakesParts = 256;  // shared, and no mark keeps it from more parts
// Of dispatched pools:
inline constexpr uint16_t kStarts = 512;     // booting, and unallocated
inline constexpr uint16_t kStopping = 1024;  // drained, and no process is alive on it
}  // namespace Mark

}  // namespace dibs::core
