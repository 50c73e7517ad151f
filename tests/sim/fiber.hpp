// tests/sim/fiber.hpp -- a piece of the program with a stack of its own, on one thread.
//
// Whoever runs it gives it the thread by resume() and gets it back by its rest(), or its end. A
// fiber that must die gets an exception thrown where it rests, so that its stack is unwound.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace dibs::sim {

class Fiber {
  public:
    explicit Fiber(std::function<void()> body);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    void resume();  // from outside
    void rest();    // from inside
    [[nodiscard]] bool ended() const { return ended_; }

  private:
    static void enter(unsigned high, unsigned low);
    void switch_to(ucontext_t& from, ucontext_t& to, bool inside);

    static constexpr size_t kStack = 512 * 1024;

    std::function<void()> body_;
    ucontext_t inside_ = {};
    ucontext_t outside_ = {};
    void* stack_ = nullptr;
    // For the address sanitizer, which must know which stack is in use.
    [[maybe_unused]] void* fake_inside_ = nullptr;
    [[maybe_unused]] void* fake_outside_ = nullptr;
    [[maybe_unused]] const void* outside_bottom_ = nullptr;
    [[maybe_unused]] size_t outside_size_ = 0;
    bool ended_ = false;
};

}  // namespace dibs::sim
