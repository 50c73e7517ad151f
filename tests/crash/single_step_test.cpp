// tests/crash/single_step_test.cpp -- a death behind any instruction of the core as it ships.
//
// As trapped_store_test.cpp, without a trap: a child process plays the workload over shared memory,
// stopped before and behind each turn. Within the turn it is run one instruction at a time by this
// one, and at random ones a copy of STATE is taken. That costs some hundred times as much for an
// image, and needs nothing of the processor. So it has the sample to itself where there is no trap,
// and a twentieth of it where there is one.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "broker/core/store/store.hpp"
#include "tests/crash/recovery.hpp"
#include "tests/crash/store_trap.hpp"

namespace dibs::tests {
namespace {

using core::Core;

constexpr uint64_t kApart = 600;  // instructions between two images, at most

static_assert(!core::kStoreHook, "this test is for the core as it ships");

// In the memory that both map, before STATE. Writer: the child, while the parent waits.
struct alignas(64) Place {
    std::atomic<uint64_t> turns;  // begun
    std::atomic<uint32_t> staged;
};

class SharedState {
  public:
    explicit SharedState(size_t size) : size_(sizeof(Place) + size) {
        memory_ = static_cast<std::byte*>(
            mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    }
    ~SharedState() { munmap(memory_, size_); }
    SharedState(const SharedState&) = delete;
    SharedState& operator=(const SharedState&) = delete;

    [[nodiscard]] bool there() const { return memory_ != MAP_FAILED; }
    [[nodiscard]] Place& place() const { return *reinterpret_cast<Place*>(memory_); }
    [[nodiscard]] std::span<std::byte> state() const {
        return {memory_ + sizeof(Place), size_ - sizeof(Place)};
    }

  private:
    std::byte* memory_;
    size_t size_;
};

// The child: stops itself where a turn begins and where it has ended.
[[noreturn]] void play(const SharedState& shared, uint64_t seed) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    Core core{shared.state()};
    Workload workload{core, seed};
    workload.set_up();
    Place& place = shared.place();
    for (;;) {
        const core::TimeNs now = workload.next_time();
        const uint64_t count = 1 + workload.below(3);
        ++place.turns;
        raise(SIGSTOP);
        core.begin_turn(now);
        for (uint64_t i = 0; i < count; ++i)
            (void)workload.apply(draw(&workload));
        core.decide();
        stage_one_per_decision(&core);
        place.staged = static_cast<uint32_t>(core.staged_stores().size());
        core.commit();
        core.clear();
        raise(SIGSTOP);
    }
}

class SingleStep : public testing::Test {
  protected:
    static uint64_t number(const char* name, uint64_t otherwise) {
        const char* given = std::getenv(name);
        return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
    }
    void SetUp() override {
        shared_ = std::make_unique<SharedState>(core::state_size(small()) + 64);
        ASSERT_TRUE(shared_->there());
        core::format_state(shared_->state(), small());
        child_ = fork();
        ASSERT_GE(child_, 0);
        if (child_ == 0) play(*shared_, seed_);
    }
    void TearDown() override {
        if (child_ > 0) {
            (void)kill(child_, SIGKILL);
            (void)waitpid(child_, nullptr, 0);
        }
    }
    // The signal that it stops with; 0 if it has ended.
    [[nodiscard]] int stopped() const {
        int status = 0;
        if (waitpid(child_, &status, 0) != child_ || !WIFSTOPPED(status)) return 0;
        return WSTOPSIG(status);
    }
    [[nodiscard]] int go_on() const {
        return ptrace(PTRACE_CONT, child_, nullptr, nullptr) == 0 ? stopped() : 0;
    }
    [[nodiscard]] int step() const {
        return ptrace(PTRACE_SINGLESTEP, child_, nullptr, nullptr) == 0 ? stopped() : 0;
    }

    uint64_t seed_ = number("DIBS_SEED", 20);
    std::unique_ptr<SharedState> shared_;
    pid_t child_ = -1;
};

TEST_F(SingleStep, LeavesTheWholeTurnOrNothingBehindAnyInstruction) {
    const uint64_t wanted =
        number("DIBS_STEPPED_IMAGES", std::getenv("DIBS_LONG") != nullptr ? 100'000 : 1000) /
        (kStoreTrap ? 20 : 1);
    std::printf("seed %llu (DIBS_SEED)\n", static_cast<unsigned long long>(seed_));
    std::mt19937_64 random(seed_);
    std::map<shm::LogPhase, uint64_t> phases;
    const auto& head = *reinterpret_cast<const shm::StateHead*>(shared_->state().data());
    uint64_t checked = 0;
    uint64_t steps = 0;
    uint64_t turns = 0;
    Images images;
    if (stopped() != SIGSTOP) GTEST_SKIP() << "this process may not trace a child of its own";
    while (checked < wanted) {
        // It stands where a turn begins.
        images.clear();
        const uint64_t before = digest_of(shared_->state());
        // Most instructions draw and look; a death there is one between turns.
        uint64_t next = random() % kApart;
        int signal = 0;
        for (; (signal = step()) == SIGTRAP; ++steps) {
            if (head.log.phase.load() == shm::LogPhase::kIdle || next-- != 0) continue;
            images.take(shared_->state());
            next = random() % kApart;
        }
        ASSERT_EQ(signal, SIGSTOP) << "the child dies in turn " << shared_->place().turns;
        const uint64_t after = digest_of(shared_->state());
        const uint32_t staged = shared_->place().staged;
        for (const Image& image : images.all()) {
            ++phases[image.phase];
            ASSERT_EQ(wrong_with(image, {before, after, staged}), "")
                << "turn " << shared_->place().turns << ", image "
                << (&image - images.all().data());
        }
        checked += images.all().size();
        ++turns;
        ASSERT_EQ(go_on(), SIGSTOP);  // to where the next turn begins
    }
    std::printf("%llu images of %llu turns, %llu instructions\n",
                static_cast<unsigned long long>(checked),
                static_cast<unsigned long long>(turns),
                static_cast<unsigned long long>(steps));
    EXPECT_GT(phases[shm::LogPhase::kOpen], 0U);
    if (checked >= 1000) {  // they are some hundredth
        EXPECT_GT(phases[shm::LogPhase::kCommitted], 0U);
    }
}

}  // namespace
}  // namespace dibs::tests
