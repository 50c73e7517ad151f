// benchmarks/instructions.cpp -- instructions that this thread executes outside the kernel.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/instructions.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dibs::bench {

InstructionCounter::InstructionCounter() {
    struct perf_event_attr wanted = {};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_HARDWARE;
    wanted.config = PERF_COUNT_HW_INSTRUCTIONS;
    wanted.exclude_kernel = 1;
    wanted.exclude_hv = 1;
    event_ = shm::Descriptor(
        static_cast<int>(syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event_.valid()) absent_ = std::string("perf_event_open: ") + std::strerror(errno);
}

uint64_t InstructionCounter::count() const {
    uint64_t value = 0;
    return read(event_.get(), &value, sizeof value) == sizeof value ? value : 0;
}

}  // namespace dibs::bench
