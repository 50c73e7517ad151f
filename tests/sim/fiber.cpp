// tests/sim/fiber.cpp -- stacks, switched by hand.
//
// A fiber gets its stack by swapcontext(), once; all later switches are _setjmp() and _longjmp(),
// which make no system call, where swapcontext() makes one each time.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fiber.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdlib>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define DIBS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DIBS_ASAN 1
#endif
#endif

#ifdef DIBS_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace dibs::sim {

namespace {

constexpr size_t kStack = size_t{512} * 1024;

// Stacks of fibers that have ended, for the next ones: a play starts thousands.
std::vector<void*> spare_stacks;

void* take_stack() {
    if (!spare_stacks.empty()) {
        void* stack = spare_stacks.back();
        spare_stacks.pop_back();
        return stack;
    }
    void* stack = mmap(
        nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) std::abort();
    return stack;
}

}  // namespace

Fiber* Fiber::entering = nullptr;

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {}

Fiber::~Fiber() {
    spare_stacks.push_back(stack_);
}

// On a stack of its own for the first time.
void Fiber::begin() {
    begun_ = true;
    // Not on the stack, which the address sanitizer would guard for ever: nobody returns from here.
    static ucontext_t here;
    static ucontext_t inside;
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack_;
    inside.uc_stack.ss_size = kStack;
    inside.uc_link = nullptr;
    entering = this;
    makecontext(&inside, &Fiber::enter, 0);
    swapcontext(&here, &inside);  // comes back by _longjmp() only
}

void Fiber::enter() {
    Fiber* self = entering;
#ifdef DIBS_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &self->outside_bottom_, &self->outside_size_);
#endif
    self->body_();
    self->ended_ = true;
#ifdef DIBS_ASAN
    __sanitizer_start_switch_fiber(nullptr, self->outside_bottom_, self->outside_size_);
#endif
    _longjmp(self->outside_, 1);
}

void Fiber::resume() {
#ifdef DIBS_ASAN
    __sanitizer_start_switch_fiber(&fake_outside_, stack_, kStack);
#endif
    if (_setjmp(outside_) == 0) {
        if (!begun_) begin();
        _longjmp(inside_, 1);
    }
#ifdef DIBS_ASAN
    __sanitizer_finish_switch_fiber(fake_outside_, nullptr, nullptr);
#endif
}

void Fiber::rest() {
#ifdef DIBS_ASAN
    __sanitizer_start_switch_fiber(&fake_inside_, outside_bottom_, outside_size_);
#endif
    if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
#ifdef DIBS_ASAN
    __sanitizer_finish_switch_fiber(fake_inside_, &outside_bottom_, &outside_size_);
#endif
}

}  // namespace dibs::sim
