// tests/sim/wakeup_test.cpp -- the real broker and the real library asleep and awake, in two
// threads, with delays of random length at every critical point: no wake-up may be lost.
//
// Both sleep whenever there is nothing to do; neither spins. Each claim and each release wakes the
// broker, each grant its client. A wake-up that is lost is found by the client's net a tenth of a
// second later, and counted.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "broker/broker.hpp"
#include "clientlib/session.hpp"
#include "dibs/dibs.h"
#include "tests/process/dibsd.hpp"
#include "tests/sim/seam.hpp"

namespace dibs::seam {

namespace {

// Of this thread: xorshift, so that a delay costs nothing but itself.
thread_local uint64_t drawn = 0x9e3779b97f4a7c15ULL ^ static_cast<uint64_t>(gettid());
std::atomic<bool> one_cpu{false};
std::atomic<uint64_t> moments{0};

uint64_t draw() {
    drawn ^= drawn << 13U;
    drawn ^= drawn >> 7U;
    drawn ^= drawn << 17U;
    return drawn;
}

}  // namespace

// Nothing, some tens of nanoseconds, some microseconds; on one CPU the other goes on instead.
void moment() {
    moments.fetch_add(1, std::memory_order_relaxed);
    const uint64_t what = draw() % 8;
    if (what < 4) return;
    if (one_cpu.load(std::memory_order_relaxed)) {
        if (what == 7) sched_yield();
        return;
    }
    for (uint64_t left = draw() % (what == 7 ? 2000 : 100); left > 0; --left)
        __asm__ __volatile__("" ::: "memory");
}

uint64_t ticks() {
    return client::monotonic_ns();
}

uint32_t cpu() {
    return static_cast<uint32_t>(sched_getcpu());
}

}  // namespace dibs::seam

namespace dibs::test {
namespace {

// Binds this thread to the n-th CPU that the process may use; false if there is none.
bool stay_on(int n, const cpu_set_t& allowed) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed) || n-- != 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        return sched_setaffinity(0, sizeof one, &one) == 0;
    }
    return false;
}

struct Found {
    uint64_t sleeps = 0;
    uint64_t net_rings = 0;
    uint64_t net_found_work = 0;
};

// `cycles` times asleep on either side, and awake again.
Found sleep_and_wake(uint64_t cycles, bool across) {
    cpu_set_t allowed;
    EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    seam::one_cpu = !across;
    const Folder folder;
    Config config;
    config.socket = folder.path() + "/dibs.sock";
    config.spin_ns = 0;
    PoolSettings pool;
    pool.name = "token";
    pool.values.slots = 1;
    config.pools.push_back(pool);
    Broker broker(config, shm::Descriptor(), false);
    std::thread serving([&] {
        EXPECT_TRUE(stay_on(0, allowed));
        broker.run();
    });
    Found found;
    std::thread asking([&] {
        EXPECT_TRUE(stay_on(across ? 1 : 0, allowed));
        dibs_session* session = nullptr;
        dibs_connect_options options = {};
        options.size = sizeof options;
        options.socket_path = config.socket.c_str();
        options.spin_us = -1;
        EXPECT_EQ(dibs_connect(&options, &session), DIBS_OK);
        for (uint64_t i = 0; i < cycles; ++i) {
            dibs_completion end = {};
            EXPECT_EQ(dibs_claim(session, 0, nullptr, &end), DIBS_OK);
            if (end.outcome != DIBS_GRANTED) break;
            EXPECT_EQ(dibs_release(session, &end.lease, DIBS_FOREVER), DIBS_OK);
            ++found.sleeps;
        }
        dibs_totals totals = {};
        totals.size = sizeof totals;
        EXPECT_EQ(dibs_pool_totals(session, 0, &totals), DIBS_OK);
        found.net_found_work = totals.net_found_work;
        found.net_rings = session->up->net_rings.load();
        dibs_close(session);
    });
    asking.join();
    broker.stop();
    broker.stop();
    serving.join();
    return found;
}

uint64_t cycles(uint64_t otherwise, uint64_t in_long) {
    const char* given = std::getenv("DIBS_CYCLES");
    if (given != nullptr) return std::strtoull(given, nullptr, 10);
    return std::getenv("DIBS_LONG") != nullptr ? in_long : otherwise;
}

void expect_none_lost(const Found& found, uint64_t wanted) {
    std::printf("%llu claims and releases, %llu critical points\n",
                static_cast<unsigned long long>(found.sleeps),
                static_cast<unsigned long long>(seam::moments.load()));
    EXPECT_EQ(found.sleeps, wanted);
    EXPECT_EQ(found.net_found_work, 0U);
}

TEST(WakeUp, IsNeverLostAcrossCpus) {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "there is one CPU";
    const uint64_t wanted = cycles(50'000, 1'000'000);  // twice asleep each
    expect_none_lost(sleep_and_wake(wanted, true), wanted);
}

TEST(WakeUp, IsNeverLostOnOneCpu) {
    const uint64_t wanted = cycles(500'000, 50'000'000);
    expect_none_lost(sleep_and_wake(wanted, false), wanted);
}

}  // namespace
}  // namespace dibs::test
