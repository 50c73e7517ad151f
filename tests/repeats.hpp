// tests/repeats.hpp -- how often a test does what it repeats.
//
// DIBS_LONG asks for more, DIBS_FEWER divides: a sanitized build is several times as slow, and
// finds what it looks for on a way, not in the number of times that it is gone (tests/meson.build).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace dibs::tests {

// One of so many.
inline uint64_t one_of() {
    const char* given = std::getenv("DIBS_FEWER");
    return given != nullptr ? std::max<uint64_t>(std::strtoull(given, nullptr, 10), 1) : 1;
}

inline uint64_t repeats(uint64_t by_default, uint64_t in_long) {
    if (std::getenv("DIBS_LONG") != nullptr) return in_long;
    return std::max<uint64_t>(by_default / one_of(), 1);
}

}  // namespace dibs::tests
