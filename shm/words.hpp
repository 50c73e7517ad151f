// shm/words.hpp -- copies bytes that another process may be writing, eight at a time.
//
// Every word is a relaxed atomic access: no data race in the language's sense, one load or store of
// the machine each. Each use says what orders them against a sequence. The seven words of an entry
// are copied without a loop, a third of the instructions, where that is inlined.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace dibs::shm {

using SharedWord [[gnu::may_alias]] = uint64_t;

inline void load_words(const void* from, void* to, size_t words, int order = __ATOMIC_RELAXED) {
    const auto* source = static_cast<const SharedWord*>(from);
    auto* target = static_cast<SharedWord*>(to);
#pragma GCC unroll 8
    for (size_t i = 0; i < words; ++i) {
        target[i] = order == __ATOMIC_RELAXED ? __atomic_load_n(source + i, __ATOMIC_RELAXED)
                                              : __atomic_load_n(source + i, __ATOMIC_ACQUIRE);
    }
}

inline void store_words(void* to, const void* from, size_t words, int order = __ATOMIC_RELAXED) {
    const auto* source = static_cast<const SharedWord*>(from);
    auto* target = static_cast<SharedWord*>(to);
#pragma GCC unroll 8
    for (size_t i = 0; i < words; ++i) {
        if (order == __ATOMIC_RELAXED) {
            __atomic_store_n(target + i, source[i], __ATOMIC_RELAXED);
        } else {
            __atomic_store_n(target + i, source[i], __ATOMIC_RELEASE);
        }
    }
}

}  // namespace dibs::shm
