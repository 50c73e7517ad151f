// shm/pool_name.hpp -- checks that a pool's name is valid.
//
// A letter, then letters, digits, ".", "_" and "-": so that POOL:N, POOL/SLOT, POOL=N, a list with
// commas, a variable's value and a line of a table are unambiguous, and no number is a pool.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "shm/layout.hpp"

namespace dibs::shm {

inline constexpr const char* kPoolNameRule =
    "a pool's name has 1 to 63 letters, digits, \".\", \"_\" and \"-\", a letter first";

inline bool is_pool_name(const char* name, size_t size) {
    if (size == 0 || size > kNameMax) return false;
    for (size_t at = 0; at < size; ++at) {
        const char c = name[at];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool other = (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (!letter && (at == 0 || !other)) return false;
    }
    return true;
}

}  // namespace dibs::shm
