// tests/sim/world.hpp -- one thread, a clock that only the world moves, and who runs next.
//
// Everybody is a task on a fiber: the broker's turn, its control, each process of a client or
// worker. A task runs until it asks the world for something: it may then be put aside at any
// moment(), it sleeps until an instant or a notice, or it dies. Whatever is drawn is drawn from one
// seed, so the same seed plays the same story.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/fiber.hpp"

namespace dibs::sim {

inline constexpr uint64_t kForever = ~uint64_t{0};

class Dice {
  public:
    explicit Dice(uint64_t seed) : random_(seed) {}
    uint64_t below(uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }
    bool one_in(uint64_t chances) { return chances != 0 && below(chances) == 0; }
    uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }

  private:
    std::mt19937_64 random_;
};

// Thrown in a task that is killed.
struct Killed {};

// What a world does to those who live in it; chances are one in so many, 0 = never.
struct Weather {
    uint64_t switch_one_in = 4;    // of moments
    uint64_t step_ns = 1000;       // at most, between two moments
    uint64_t stall_one_in = 0;     // of switches
    uint64_t stall_ns = 0;         // at most
    uint64_t lose_one_in = 0;      // of bells and wakes
    uint64_t double_one_in = 0;    // of bells and wakes
    uint64_t spurious_one_in = 0;  // of switches: somebody wakes for nothing
    uint64_t spare_one_in = 0;     // of kills: the kernel refuses
};

struct Task {
    std::string name;
    std::unique_ptr<Fiber> fiber;
    uint64_t until_ns = 0;        // does not run before
    const void* word = nullptr;   // the futex word that it sleeps on
    bool on_descriptors = false;  // any write may concern it
    bool notified = false;        // what it sleeps on has spoken
    bool doomed = false;          // is thrown Killed where it stands
    bool shielded = false;        // not while this is set
    uint64_t dies_in = 0;         // moments; 0 = not yet
    uint32_t cpu = 0;
    uint32_t uid = 0;
    int lifeline = -1;  // of its process: a pipe, which hangs up when that is dead
    uint64_t lifeline_inode = 0;
};

class World {
  public:
    World(uint64_t seed, const Weather& weather);
    ~World();

    // --- for whoever plays
    std::shared_ptr<Task> start(std::string name, uint32_t cpu, std::function<void()> body);
    // Runs the next task; false if nobody will ever run again.
    bool step();
    void kill(Task& task);
    // The task of the process that a copy of a lifeline is of; null if it is gone.
    [[nodiscard]] Task* owner(int lifeline) const;
    void end();  // whoever still lives is unwound

    // --- for tasks
    [[nodiscard]] uint64_t now() const { return now_ns_; }
    void moment();
    void pass(uint64_t duration_ns);  // sleeps
    // Sleeps until notified, or that instant; false if it was the instant.
    bool wait_word(const void* word, uint64_t until_ns);
    bool wait_descriptors(uint64_t until_ns);
    // --- notices
    void stir();                             // something was written to a descriptor
    uint32_t wake(const void* word, int n);  // of those who sleep on the word
    [[nodiscard]] Task* running() const { return running_; }

    Dice dice;
    Weather weather;
    uint64_t faults = 0;
    uint64_t kills = 0;  // by the broker

    // The world that this thread is in, if any.
    static World* here;

  private:
    void leave();
    [[nodiscard]] bool can_run(const Task& task) const;

    std::vector<std::shared_ptr<Task>> tasks_;
    std::vector<Task*> ready_;
    Task* running_ = nullptr;
    uint64_t now_ns_ = 1'000'000'000;
};

}  // namespace dibs::sim
