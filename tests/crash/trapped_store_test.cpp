// tests/crash/trapped_store_test.cpp -- a death behind any store of the core as it ships.
//
// The hooked build of the other test is not what runs: a compiler may order the stores of the real
// one differently, or split and join them. Here the shipped core plays the workload over memory
// that traps each instruction which writes (store_trap.hpp), and behind random ones a copy of STATE
// is taken, as a kill would leave it there; recovery.hpp says what must be true of it. Behind any
// other instruction the memory is what it was behind the last store.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "broker/core/store/store.hpp"
#include "tests/crash/recovery.hpp"
#include "tests/crash/store_trap.hpp"

namespace dibs::tests {
namespace {

using core::Core;

static_assert(!core::kStoreHook, "this test is for the core as it ships");

constexpr uint64_t kStoresApart = 16;  // stores between two images, at most
constexpr size_t kImagesMax = 200;
constexpr size_t kStoresMax = 100'000;
constexpr size_t kPage = 4096;

uint64_t number(const char* name, uint64_t otherwise) {
    const char* given = std::getenv(name);
    return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

class Pages {
  public:
    explicit Pages(size_t size) : size_((size + kPage - 1) / kPage * kPage) {
        memory_ = static_cast<std::byte*>(
            mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    }
    ~Pages() { munmap(memory_, size_); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    [[nodiscard]] std::span<std::byte> bytes() const { return {memory_, size_}; }

  private:
    std::byte* memory_;
    size_t size_;
};

// What a turn's stores leave; all of the room is there before, since a signal handler fills it.
struct Taken {
    Taken(std::span<const std::byte> of, uint64_t seed) : state(of), random(seed) {
        for (Image& image : images)
            image.bytes.resize(of.size());
        stores.resize(kStoresMax);
        next = random() % kStoresApart;
    }
    void begin() { image_count = store_count = 0; }
    void store(const void* instruction) {
        if (store_count < kStoresMax) stores[store_count++] = instruction;
        if (next-- != 0) return;
        next = random() % kStoresApart;
        if (image_count == kImagesMax) return;
        behind[image_count] = instruction;
        Image& image = images[image_count++];
        const auto& log = reinterpret_cast<const shm::StateHead*>(state.data())->log;
        std::memcpy(image.bytes.data(), state.data(), state.size());
        image.phase = log.phase.load();
        image.pledged_turn = log.pledged_turn;
    }

    std::span<const std::byte> state;
    std::mt19937_64 random;
    std::vector<Image> images{kImagesMax};
    std::vector<const void*> behind = std::vector<const void*>(kImagesMax);
    size_t image_count = 0;
    std::vector<const void*> stores;
    size_t store_count = 0;
    uint64_t next = 0;
};

Taken* taken = nullptr;  // a handler has no argument

class TrappedStore : public testing::Test {
  protected:
    void SetUp() override {
        if (!kStoreTrap) GTEST_SKIP() << "this processor's programs cannot trace themselves";
    }
};

TEST_F(TrappedStore, LeavesTheWholeTurnOrNothing) {
    const uint64_t seed = number("DIBS_SEED", 20);
    const uint64_t wanted =
        number("DIBS_STEPPED_IMAGES", std::getenv("DIBS_LONG") != nullptr ? 100'000 : 1000);
    std::printf("seed %llu (DIBS_SEED)\n", static_cast<unsigned long long>(seed));
    const Pages memory(core::state_size(small()));
    core::format_state(memory.bytes(), small());
    Core core{memory.bytes()};
    Workload workload{core, seed};
    workload.set_up();
    Taken here(memory.bytes(), seed);
    taken = &here;
    const StoreTrap trap(memory.bytes(),
                         [](const void* instruction) { taken->store(instruction); });
    std::map<shm::LogPhase, uint64_t> phases;
    std::set<const void*> storing;
    std::set<const void*> imaged;
    uint64_t checked = 0;
    uint64_t turns = 0;
    uint64_t stores = 0;
    for (; checked < wanted; ++turns) {
        here.begin();
        const uint64_t before = digest_of(memory.bytes());
        const core::TimeNs now = workload.next_time();
        uint64_t pledged = 0;
        StoreTrap::arm();
        core.begin_turn(now);
        if (workload.below(4) == 0 && workload.pledge()) {
            pledged = core.counters().turns;  // the turn's own number: it has changed a row
        } else {
            for (uint64_t count = 1 + workload.below(3); count > 0; --count)
                (void)workload.apply(draw(&workload));
        }
        core.decide();
        stage_one_per_decision(&core);
        const auto staged = static_cast<uint32_t>(core.staged_stores().size());
        core.commit();
        core.clear();
        StoreTrap::disarm();
        const uint64_t after = digest_of(memory.bytes());
        for (size_t i = 0; i < here.image_count; ++i) {
            ++phases[here.images[i].phase];
            imaged.insert(here.behind[i]);
            ASSERT_EQ(wrong_with(here.images[i], {before, after, staged, pledged}), "")
                << "turn " << turns << ", image " << i << ", behind " << here.behind[i];
        }
        storing.insert(here.stores.begin(),
                       here.stores.begin() + static_cast<ptrdiff_t>(here.store_count));
        stores += here.store_count;
        checked += here.image_count;
    }
    std::printf(
        "%llu images of %llu turns, %llu stores; behind %zu of %zu storing instructions; "
        "%llu idle, %llu open, %llu committed\n",
        static_cast<unsigned long long>(checked),
        static_cast<unsigned long long>(turns),
        static_cast<unsigned long long>(stores),
        imaged.size(),
        storing.size(),
        static_cast<unsigned long long>(phases[shm::LogPhase::kIdle]),
        static_cast<unsigned long long>(phases[shm::LogPhase::kOpen]),
        static_cast<unsigned long long>(phases[shm::LogPhase::kCommitted]));
    EXPECT_GT(phases[shm::LogPhase::kOpen], 0U);
    EXPECT_GT(phases[shm::LogPhase::kCommitted], 0U);
    EXPECT_GE(imaged.size(), storing.size() / 3);
}

}  // namespace
}  // namespace dibs::tests
