// tests/hostile/lease_word_test.cpp -- a client that writes whatever it likes into the words of its
// leases, whenever it likes: it may lose its slots and its session, and nobody else anything.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/segments/mapping.hpp"
#include "shm/memfd.hpp"
#include "tests/hostile/stranger.hpp"
#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/parked.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/repeats.hpp"

namespace dibs::test {
namespace {

constexpr uint32_t kSlots = 6;
constexpr uint16_t kTags = 3;  // and as many slots: there is always one left

// What a word may say, or almost: of this claim or one near it, free, wanted, both; anything.
uint64_t any_word(Random& random, uint64_t claim) {
    const uint64_t near = claim + random() % 3 - 1;
    return random() % 8 == 0 ? random() : near << 2U | random() % 4;
}
uint64_t any_fence(Random& random, uint64_t fence) {
    if (random() % 4096 == 0) return random();  // that ends its session
    switch (random() % 8) {
        case 1:
            return fence + random() % 100'000;
        case 2:
            return 0;
        default:
            return fence + random() % 16 - 4;
    }
}

// Claims and releases as it should, or not, while another thread writes its words.
void lie(const std::string& socket, uint64_t seed, int entries, const Child& self) {
    Random random(seed);
    RawClient client(socket);
    self.mark('b');
    if (!client.attached()) return;
    auto* words = reinterpret_cast<shm::LeaseWord*>(reinterpret_cast<std::byte*>(&client.up()) +
                                                    client.up().lease_word_offset);
    std::atomic<uint64_t> claim{1};
    std::atomic<uint64_t> fence{1};
    std::atomic<bool> done{false};
    std::thread liar([&, own = Random(random())]() mutable {
        while (!done.load(std::memory_order_relaxed)) {
            shm::LeaseWord& at = words[own() % kTags];
            if (own() % 4 == 0) at.fence.store(any_fence(own, fence));
            if (own() % 4 == 0) at.word.fetch_xor(1 + own() % 3);
            if (own() % 4 == 0) at.word.store(any_word(own, claim));
        }
    });
    std::vector<shm::Completion> held;
    for (int i = 0; i < entries && !ended(client); ++i) {
        const auto tag = static_cast<uint16_t>(random() % kTags);
        shm::Submission entry;
        entry.tag = tag;
        entry.units = 1;
        entry.op = shm::Op::kClaim;
        entry.id = random() % 2 == 0 ? 0 : shm::kNever;
        if (!held.empty() && random() % 2 == 0) {
            const shm::Completion& old = held[random() % held.size()];
            constexpr shm::Op kOps[] = {shm::Op::kRelease,
                                        shm::Op::kRelease,
                                        shm::Op::kFail,
                                        shm::Op::kKeepalive,
                                        shm::Op::kCancel,
                                        shm::Op::kAdopt};
            entry.op = kOps[random() % std::size(kOps)];
            entry.id = old.id;
            entry.fence = any_fence(random, old.fence);
            entry.tag = random() % 4 == 0 ? tag : old.tag;
        }
        client.submit(entry);
        while (client.down().submission_consumed.load() + 4 <= static_cast<uint64_t>(i) &&
               !ended(client)) {
            sched_yield();
        }
        // What the lines say from the end of the ring: grants among them.
        const uint64_t tail = client.down().completion_tail.load();
        for (uint64_t at = client.up().completion_head.load(); at < tail; ++at) {
            const auto end = client.wait();
            if (!end) break;
            if (end->outcome != shm::Outcome::kGranted) continue;
            claim = end->claim;
            fence = end->fence;
            held.push_back(*end);
            if (held.size() > 8) held.erase(held.begin());
        }
    }
    done = true;
    liar.join();
}

// Each slot's user among the good ones, and the fence of its last use.
struct Places {
    std::atomic<int> user[kSlots];
    std::atomic<uint64_t> fence[kSlots];
    std::atomic<uint32_t> wrong;
};

void use(const Attached& client, int self, Places& places, int times) {
    for (int i = 0; i < times; ++i) {
        const dibs_lease lease = take(client);
        const uint32_t slot = number_of(client, lease);
        if (slot >= kSlots || places.user[slot].exchange(self) != 0) {
            places.wrong = 1;
            return;
        }
        if (places.fence[slot].exchange(lease.fence) >= lease.fence) places.wrong = 2;
        if (i % 16 == 0) sched_yield();
        if (places.user[slot].exchange(0) != self) places.wrong = 3;
        if (dibs_release(client, &lease, DIBS_NOWAIT) != DIBS_OK) places.wrong = 4;
    }
}

TEST(Hostile, LeaseWordsOfAnySortCostTheirWriterAlone) {
    const char* given = std::getenv("DIBS_SEED");
    const uint64_t seed = given != nullptr ? std::stoull(given) : 1;
    std::printf("seed %llu (DIBS_SEED)\n", static_cast<unsigned long long>(seed));
    const Folder folder;
    const shm::Descriptor state(memfd_create("state", MFD_ALLOW_SEALING));
    Dibsd dibsd(
        folder, "throttle = \"0us\"\n" + parking_pool("tokens", kSlots, "100us"), state.get());
    ASSERT_TRUE(dibsd.ready());
    const Attached one(dibsd.socket(), "tokens");
    const Attached two(dibsd.socket(), "tokens");
    Places places{};
    const uint64_t rounds = tests::repeats(20, 1000);
    for (uint64_t round = 0; round < rounds && places.wrong == 0; ++round) {
        // One session each: it lives until its process dies.
        const Child liar(
            [&](const Child& self) { lie(dibsd.socket(), seed * 1'000'000 + round, 3000, self); });
        ASSERT_EQ(liar.marked(), 'b');
        std::thread other([&] { use(two, 2, places, 2000); });
        use(one, 1, places, 2000);
        other.join();
        ASSERT_EQ(liar.marked(), 'e');
    }
    EXPECT_EQ(places.wrong, 0U);
    one.await([](const auto& pool) { return pool.idle + 2 >= kSlots && pool.queued == 0; });
    EXPECT_EQ(dibs_end_code(one), 0);
    EXPECT_EQ(dibs_end_code(two), 0);
    dibsd.signal(SIGKILL);
    (void)dibsd.wait();
    const Mapping mapping(state.get(), shm::size_of(state.get()));
    EXPECT_EQ(core::Core(mapping.bytes()).check_all(), std::vector<std::string>{});
}

}  // namespace
}  // namespace dibs::test
