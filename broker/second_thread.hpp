// broker/second_thread.hpp -- work of a takeover, which clients wait for, on another CPU besides.
//
// Only before a broker serves: from then on it has two threads, and what each of them may touch is
// written down (ARCHITECTURE.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <functional>

namespace dibs {

class SecondThread {
  public:
    // Runs `body`, which throws nothing, on another CPU than this thread's. Where there is none, or
    // no thread is to be had, or no body, nobody runs it.
    explicit SecondThread(std::function<void()> body);
    ~SecondThread() { join(); }
    SecondThread(const SecondThread&) = delete;
    SecondThread& operator=(const SecondThread&) = delete;

    [[nodiscard]] bool started() const { return started_; }
    void join();  // it has ended, if it ever began

  private:
    std::function<void()> body_;
    pthread_t thread_ = {};
    bool started_ = false;
};

// Runs half(0) here and half(1) beside it where that is `worth` a thread and one is to be had, else
// after it. Throws what either has thrown.
void in_two(bool worth, const std::function<void(unsigned)>& half);

}  // namespace dibs
