// broker/turn/time_slice.hpp -- shortens this process's time slice, so that it runs sooner.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace dibs {

// The shortest slice that a kernel gives.
inline constexpr uint64_t kShortSliceNs = 100'000;

// Asks for short slices: a process that wakes up runs before processes with longer ones, and gets
// no larger share of the CPU for it. This needs no privilege, and threads and processes started
// later inherit it. False: this process has another scheduling policy, or is not allowed to ask;
// before Linux 6.12 the call succeeds without effect.
bool shorten_time_slice();

// A process's slice; 0: its kernel has none. Nothing: it has another scheduling policy, or cannot
// be inspected.
[[nodiscard]] std::optional<uint64_t> time_slice_ns(pid_t pid);

}  // namespace dibs
