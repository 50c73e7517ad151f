// broker/turn/time_slice.hpp -- how soon this process runs where others want its CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace dibs {

// The shortest that a kernel gives.
inline constexpr uint64_t kShortSliceNs = 100'000;

// Asks for short slices: whoever wakes up runs before processes with longer ones, and gets no
// larger share of the CPU for it. No privilege is asked for, and threads and processes started
// behind it inherit it. False: this process is scheduled in another way, or nobody lets it ask;
// before Linux 6.12 it is no error, and nothing.
bool shorten_time_slice();

// A process's; 0: its kernel has none. Nothing: it is scheduled in another way, or not to be seen.
[[nodiscard]] std::optional<uint64_t> time_slice_ns(pid_t pid);

}  // namespace dibs
