// tests/sim/fiber.hpp -- a piece of the program with a stack of its own, on one thread.
//
// Whoever runs it gives it the thread by resume() and gets it back by its rest(), or its end. A
// fiber that must die gets an exception thrown where it rests, so that its stack is unwound.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <setjmp.h>

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
    static void enter();
    void begin();

    static Fiber* entering;  // by begin()

    std::function<void()> body_;
    void* stack_;
    jmp_buf inside_ = {};   // where it rests
    jmp_buf outside_ = {};  // where whoever runs it does
    bool begun_ = false;
    bool ended_ = false;
    // For the address sanitizer, which must know which stack is in use.
    [[maybe_unused]] void* fake_inside_ = nullptr;
    [[maybe_unused]] void* fake_outside_ = nullptr;
    [[maybe_unused]] const void* outside_bottom_ = nullptr;
    [[maybe_unused]] size_t outside_size_ = 0;
};

}  // namespace dibs::sim
