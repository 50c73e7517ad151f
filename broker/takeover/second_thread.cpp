// broker/takeover/second_thread.cpp -- runs takeover work on a second CPU.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/second_thread.hpp"

#include <sched.h>

#include <chrono>
#include <exception>
#include <utility>

namespace dibs {

namespace {

// Those that this thread may run on, but for the one that it runs on.
cpu_set_t other_cpus() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) CPU_ZERO(&cpus);
    const int here = sched_getcpu();
    if (here >= 0) CPU_CLR(static_cast<size_t>(here), &cpus);
    return cpus;
}

}  // namespace

// Left to itself a new thread often begins where its starter runs, and helps it some milliseconds
// later.
SecondThread::SecondThread(std::function<void()> body) : body_(std::move(body)) {
    const cpu_set_t cpus = other_cpus();
    pthread_attr_t attributes;
    if (!body_ || CPU_COUNT(&cpus) == 0 || pthread_attr_init(&attributes) != 0) return;
    const auto begin = [](void* what) -> void* {
        static_cast<SecondThread*>(what)->run();
        return nullptr;
    };
    started_ = pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus) == 0 &&
               pthread_create(&thread_, &attributes, begin, this) == 0;
    (void)pthread_attr_destroy(&attributes);
}

void SecondThread::run() {
    if (go_on_to(Stage::kBegun)) body_();
    const std::lock_guard lock(mutex_);
    ended_ = true;
    end_.notify_one();
}

bool SecondThread::go_on_to(Stage stage) {
    Stage before = Stage::kReady;
    return stage_.compare_exchange_strong(before, stage, std::memory_order_relaxed);
}

bool SecondThread::take_back() {
    return go_on_to(Stage::kTakenBack);
}

// A thread that computes is not disturbed for as long as the rest of its work should take. Behind
// other threads on its CPU it would wait for their time slices, and behind real-time threads for
// ever: then it is moved to this CPU, which has nothing to do but to wait for it. This holds the
// lock, without which it cannot end: the number of a thread that has ended is 0, which means this
// thread.
void SecondThread::join() {
    if (!std::exchange(started_, false)) return;
    constexpr std::chrono::microseconds kAnswerTimeout(500);
    const bool begun = !take_back() && stage_.load(std::memory_order_relaxed) == Stage::kBegun;
    {
        std::unique_lock lock(mutex_);
        if (begun) (void)end_.wait_for(lock, kAnswerTimeout, [this] { return ended_; });
        const int here = sched_getcpu();
        if (!ended_ && here >= 0) {
            cpu_set_t cpu;
            CPU_ZERO(&cpu);
            CPU_SET(static_cast<size_t>(here), &cpu);
            (void)pthread_setaffinity_np(thread_, sizeof(cpu), &cpu);
        }
    }
    (void)pthread_join(thread_, nullptr);
}

void in_two(bool worth, const std::function<void(unsigned)>& half) {
    std::exception_ptr thrown;
    const auto second = [&] {
        try {
            half(1);
        } catch (...) {
            thrown = std::current_exception();
        }
    };
    {
        SecondThread thread(worth ? second : std::function<void()>());
        half(0);
        if (!thread.started() || thread.take_back()) second();
    }
    if (thrown) std::rethrow_exception(thrown);
}

}  // namespace dibs
