// broker/core/limits.hpp -- sizes the tables of a STATE, formats one, and refuses one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dibs::core {

// Whether one set covers another is kept as a byte for each pair: 64 MiB for so many sets.
inline constexpr uint32_t kLabelSetsMax = 8192;

// Rows to preallocate. All are at least 1.
struct Limits {
    uint32_t pools = 64;
    uint32_t sessions = 1024;
    uint32_t slots = 4096;
    uint32_t claims = 65536;
    uint32_t leases = 16384;
    uint32_t arena_blocks = 8192;  // of 512 bytes
    uint32_t log_images = 6144;    // at least 6144, else raised; a turn ends at three quarters
    uint32_t log_stores = 2048;    // at least 2048, else raised
    uint32_t accounts = 1024;
    uint32_t label_sets = 512;
    uint32_t types = 64;     // of workers, over all elastic pools
    uint32_t entries = 512;  // of queues, over all dispatched pools
    uint32_t applications = 1024;
    uint32_t groups = 2048;  // of applications
    uint32_t tasks = 8192;   // of applications
};

// Bytes of a STATE segment with these limits.
uint64_t state_size(const Limits& limits);

// Lays out an empty STATE over zeroed memory of state_size(limits) bytes, 64-byte aligned.
void format_state(std::span<std::byte> state, const Limits& limits);

// What is wrong with a STATE that cannot be served from; empty if it can. Looks at the head only.
std::string state_refusal(std::span<const std::byte> state);

// The same for its rows and log, once the head is good: whether a Core can attach to it and
// check_all() can find the rest. Takes back an uncommitted turn first, as attaching does.
std::string rows_refusal(std::span<std::byte> state);

}  // namespace dibs::core
