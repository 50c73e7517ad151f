// tests/process/stall.hpp -- stops a broker, and lets time pass that it does not see.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>

#include "shm/descriptor.hpp"
#include "tests/process/proc_text.hpp"

namespace dibs::test {

// That much time goes by: what such tests are about.
inline void let_pass(uint64_t ns) {
    const shm::Descriptor timer(timerfd_create(CLOCK_MONOTONIC, 0));
    struct itimerspec later = {};
    later.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    later.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000);
    timerfd_settime(timer.get(), 0, &later, nullptr);
    uint64_t rings = 0;
    ASSERT_EQ(read(timer.get(), &rings, sizeof rings), 8);
}

inline void stop(pid_t broker) {
    kill(broker, SIGSTOP);
    while (!is_stopped(broker))
        sched_yield();
}

}  // namespace dibs::test
