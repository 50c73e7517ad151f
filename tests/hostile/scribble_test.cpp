// tests/hostile/scribble_test.cpp -- clients that write whatever they like into their own segment:
// each may end its own session, and nothing else may happen.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/segments/mapping.hpp"
#include "shm/memfd.hpp"
#include "tests/hostile/stranger.hpp"
#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

using shm::Op;
using shm::Outcome;

// Without a penalty: what it says is to be looked at, not left alone.
const char* const kSmallPools =
    "throttle = \"0us\"\n"
    "[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 4\n"
    "[[pool]]\nname = \"web\"\nkind = \"worker\"\npayload_max = 128\nanswer_max = 16\n"
    "attributes_max = 32\nreservation_ttl = \"1ms\"\n";

// Entries in good order with anything in them; sometimes all completions are read, as they come.
void operate(const std::string& path, uint64_t seed, int entries) {
    Random random(seed);
    RawClient client(path);
    if (!client.attached()) return;
    for (size_t i = 0; i < client.welcome().up_payload; i += 8) {
        const uint64_t bytes = random();
        std::memcpy(client.payload() + i, &bytes, 8);
    }
    for (int i = 0; i < entries && !ended(client); ++i) {
        client.submit(anything(random));
        while (client.down().submission_consumed.load() + 64 <= static_cast<uint64_t>(i) &&
               !ended(client)) {
            sched_yield();
        }
        client.up().completion_head.store(client.down().completion_tail.load());
    }
}

// Claims as it should, all the while.
void expect_service(RawClient& client, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        client.claim(1);
        const auto granted = client.wait();
        ASSERT_TRUE(granted);
        ASSERT_EQ(granted->outcome, Outcome::kGranted);
        client.release(*granted);
        ASSERT_EQ(client.wait()->reason, shm::Reason::kOk);
    }
}

TEST(Hostile, OperationsChangeNothingForOthersAndLeaveNothingBehind) {
    const char* given = std::getenv("DIBS_SEED");
    const uint64_t seed = given != nullptr ? std::stoull(given) : 1;
    std::printf("seed %llu (DIBS_SEED)\n", static_cast<unsigned long long>(seed));
    const Folder folder;
    const shm::Descriptor state(memfd_create("state", MFD_ALLOW_SEALING));
    Dibsd dibsd(folder, kSmallPools, state.get());
    ASSERT_TRUE(dibsd.ready());
    RawClient good(dibsd.socket());
    const uint64_t rounds = std::getenv("DIBS_LONG") != nullptr ? 1000 : 20;
    for (uint64_t round = 0; round < rounds; ++round) {
        Child two([&](const Child&) {
            operate(dibsd.socket(), seed * 1000 + round * 2, 3000);
            operate(dibsd.socket(), seed * 1000 + round * 2 + 1, 3000);
        });
        Child scribbler([&](const Child&) {
            std::atomic<uint64_t> entries{0};
            Stranger{dibsd.socket(), Random(seed * 1000 + round), &entries}.scribble();
        });
        ASSERT_EQ(two.marked(), 'e');
        ASSERT_EQ(scribbler.marked(), 'e');
        two.kill();
        scribbler.kill();
        expect_service(good, 5);
    }
    good.await_pool(0, [](const auto& pool) { return pool.idle == 4 && pool.queued == 0; });
    good.await_pool(1, [](const auto& pool) { return pool.slots == 0 && pool.queued == 0; });
    EXPECT_FALSE(ended(good));
    dibsd.signal(SIGKILL);
    (void)dibsd.wait();
    const uint64_t size = shm::size_of(state.get());
    const Mapping mapping(state.get(), size);
    const core::Core core(mapping.bytes());
    EXPECT_EQ(core.check_all(), std::vector<std::string>{});
}

}  // namespace
}  // namespace dibs::test
