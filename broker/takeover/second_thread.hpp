// broker/takeover/second_thread.hpp -- runs takeover work on a second CPU while clients wait.
//
// It runs only before a broker serves: from then on the broker has two threads, and ARCHITECTURE.md
// says what each of them may touch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace dibs {

class SecondThread {
  public:
    // Runs `body`, which throws nothing, on another CPU than this thread's. Without another CPU,
    // without a thread to be had, or without a body, it does not run.
    explicit SecondThread(std::function<void()> body);
    ~SecondThread() { join(); }
    SecondThread(const SecondThread&) = delete;
    SecondThread& operator=(const SecondThread&) = delete;

    [[nodiscard]] bool started() const { return started_; }
    // True: it has not begun, and will not: its CPU has had no time for it, say.
    bool take_back();
    // Once it has ended; what it has not begun is taken back. Where other threads keep it from its
    // CPU, it ends on this one.
    void join();

  private:
    // ready ── its CPU has come to it ──► begun
    //     └─ take_back() ──► taken back
    // By whichever thread comes first; relaxed: what the body needs came before the thread did.
    enum class Stage : uint8_t { kReady, kBegun, kTakenBack };

    void run();
    bool go_on_to(Stage stage);

    std::function<void()> body_;
    std::atomic<Stage> stage_ = Stage::kReady;
    std::mutex mutex_;
    std::condition_variable end_;
    bool ended_ = false;  // under the mutex
    pthread_t thread_ = {};
    bool started_ = false;
};

// Runs half(0) here and half(1) beside it where that is `worth` a thread, one is to be had and its
// CPU has time for it; else after it. Throws what either has thrown.
void in_two(bool worth, const std::function<void(unsigned)>& half);

}  // namespace dibs
