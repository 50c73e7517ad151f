// shm/cpu.hpp -- reads the number of the current CPU in about a nanosecond.
//
// glibc registers a restartable-sequence area for every thread, and the kernel keeps the CPU's
// number in it. Reading it is one load; where the area is not registered (older kernel, or
// switched off), sched_getcpu() answers. The number is a hint: it may be old when it is used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/rseq.h>

#include <cstdint>

namespace dibs::shm {

inline constexpr uint32_t kNoCpu = 0xffffffffU;

inline uint32_t current_cpu() {
    if (__rseq_size != 0) {
        const char* area = static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset;
        const auto* rseq = reinterpret_cast<const struct rseq*>(area);
        // The kernel writes it behind the compiler's back; negative values mean "not registered".
        const auto cpu = static_cast<int32_t>(__atomic_load_n(&rseq->cpu_id, __ATOMIC_RELAXED));
        if (cpu >= 0) return static_cast<uint32_t>(cpu);
    }
    const int cpu = sched_getcpu();
    return cpu < 0 ? kNoCpu : static_cast<uint32_t>(cpu);
}

}  // namespace dibs::shm
