// tests/crash/store_trap.hpp -- a call behind each instruction that writes to a piece of memory.
//
// The memory is read-only while the trap is armed. What writes there faults; the page opens for
// that one instruction, the processor's trace flag stops behind it, and the page closes. Whatever
// does not write there runs at full speed, and nothing that runs need know of it. A copy that the
// processor repeats by itself (rep movs) stops behind each part.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace dibs::tests {

#if defined(__x86_64__)
inline constexpr bool kStoreTrap = true;
#else
inline constexpr bool kStoreTrap = false;  // a program cannot set the flag
#endif

class StoreTrap {
  public:
    // `stored` is called inside a signal handler, with the instruction's address.
    using Stored = void (*)(const void* instruction);
    // One at a time. Whole pages.
    StoreTrap(std::span<std::byte> memory, Stored stored);
    ~StoreTrap();
    StoreTrap(const StoreTrap&) = delete;
    StoreTrap& operator=(const StoreTrap&) = delete;

    static void arm();
    static void disarm();
};

}  // namespace dibs::tests
