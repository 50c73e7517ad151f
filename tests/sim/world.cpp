// tests/sim/world.cpp -- who runs next, and when it is.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "tests/sim/seam.hpp"

namespace dibs::sim {

World* World::here = nullptr;

World::World(uint64_t seed, const Weather& wanted) : dice(seed), weather(wanted) {
    assert(here == nullptr);
    here = this;
}

World::~World() {
    end();
    here = nullptr;
}

void World::end() {
    for (const auto& task : tasks_) {
        task->shielded = false;
        task->doomed = true;
        running_ = task.get();
        while (!task->fiber->ended())
            task->fiber->resume();
    }
    tasks_.clear();
    running_ = nullptr;
}

std::shared_ptr<Task> World::start(std::string name, uint32_t cpu, std::function<void()> body) {
    auto task = std::make_shared<Task>();
    task->name = std::move(name);
    task->cpu = cpu;
    task->fiber = std::make_unique<Fiber>([body = std::move(body)] {
        try {
            body();
        } catch (const Killed&) {
        }
    });
    tasks_.push_back(task);
    return task;
}

bool World::can_run(const Task& task) const {
    return task.until_ns <= now_ns_ || task.notified || (task.doomed && !task.shielded);
}

bool World::step() {
    ready_.clear();
    uint64_t next = kForever;
    for (const auto& task : tasks_) {
        if (can_run(*task)) ready_.push_back(task.get());
        next = std::min(next, task->until_ns);
    }
    if (ready_.empty()) {
        if (next == kForever) return false;
        now_ns_ = next;
        return true;
    }
    Task* task = ready_[dice.below(ready_.size())];
    now_ns_ += dice.below(weather.step_ns + 1);
    running_ = task;
    task->fiber->resume();
    running_ = nullptr;
    if (task->fiber->ended()) {
        std::erase_if(tasks_, [task](const auto& other) { return other.get() == task; });
    }
    return true;
}

void World::kill(Task& task) {
    task.doomed = true;
}

Task* World::owner(int lifeline) const {
    struct stat wanted = {};
    if (fstat(lifeline, &wanted) != 0) return nullptr;
    for (const auto& task : tasks_) {
        if (task->lifeline_inode == wanted.st_ino) return task.get();
    }
    return nullptr;
}

// Back to step(); here again when it is this task's turn.
void World::leave() {
    Task* task = running_;
    task->fiber->rest();
    if (task->doomed && !task->shielded) throw Killed{};
}

void World::moment() {
    Task* task = running_;
    if (task == nullptr) return;
    if (task->dies_in != 0 && --task->dies_in == 0) task->doomed = true;
    if (task->doomed && !task->shielded) throw Killed{};
    now_ns_ += dice.below(64);
    if (!dice.one_in(weather.switch_one_in)) return;
    task->until_ns = now_ns_;
    if (dice.one_in(weather.stall_one_in)) {
        ++faults;
        task->until_ns += dice.below(weather.stall_ns);
    }
    if (dice.one_in(weather.spurious_one_in) && !tasks_.empty()) {
        ++faults;
        tasks_[dice.below(tasks_.size())]->notified = true;
    }
    task->notified = false;
    leave();
    task->notified = false;
}

void World::pass(uint64_t duration_ns) {
    const uint64_t until = now_ns_ + duration_ns;
    while (now_ns_ < until) {
        running_->until_ns = until;
        running_->notified = false;
        leave();
    }
}

bool World::wait_word(const void* word, uint64_t until_ns) {
    Task* task = running_;
    task->word = word;
    task->until_ns = until_ns;
    task->notified = false;
    try {
        leave();
    } catch (const Killed&) {
        task->word = nullptr;
        throw;
    }
    task->word = nullptr;
    const bool notified = task->notified;
    task->notified = false;
    return notified;
}

bool World::wait_descriptors(uint64_t until_ns) {
    Task* task = running_;
    task->on_descriptors = true;
    task->until_ns = until_ns;
    task->notified = false;
    try {
        leave();
    } catch (const Killed&) {
        task->on_descriptors = false;
        throw;
    }
    task->on_descriptors = false;
    const bool notified = task->notified;
    task->notified = false;
    return notified;
}

void World::stir() {
    for (const auto& task : tasks_) {
        if (task->on_descriptors) task->notified = true;
    }
}

uint32_t World::wake(const void* word, int n) {
    uint32_t woken = 0;
    for (const auto& task : tasks_) {
        if (task->word != word || task->notified || static_cast<int>(woken) >= n) continue;
        task->notified = true;
        ++woken;
    }
    return woken;
}

}  // namespace dibs::sim

namespace dibs::seam {

void moment() {
    if (sim::World::here != nullptr) sim::World::here->moment();
}

uint64_t ticks() {
    return sim::World::here->now();
}

uint32_t cpu() {
    const sim::Task* task = sim::World::here->running();
    return task == nullptr ? 0 : task->cpu;
}

}  // namespace dibs::seam
