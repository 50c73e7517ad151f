// tests/sim/fiber.cpp -- stacks, switched by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

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

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
    stack_ = mmap(
        nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack_ == MAP_FAILED) std::abort();
    getcontext(&inside_);
    inside_.uc_stack.ss_sp = stack_;
    inside_.uc_stack.ss_size = kStack;
    inside_.uc_link = nullptr;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&inside_,
                reinterpret_cast<void (*)()>(&Fiber::enter),
                2,
                static_cast<unsigned>(self >> 32U),
                static_cast<unsigned>(self));
}

Fiber::~Fiber() {
    munmap(stack_, kStack);
}

void Fiber::enter(unsigned high, unsigned low) {
    auto* self = reinterpret_cast<Fiber*>(uintptr_t{high} << 32U | low);
#ifdef DIBS_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &self->outside_bottom_, &self->outside_size_);
#endif
    self->body_();
    self->ended_ = true;
#ifdef DIBS_ASAN
    __sanitizer_start_switch_fiber(nullptr, self->outside_bottom_, self->outside_size_);
#endif
    setcontext(&self->outside_);
}

void Fiber::switch_to(ucontext_t& from, ucontext_t& to, bool inside) {
#ifdef DIBS_ASAN
    if (inside) {
        __sanitizer_start_switch_fiber(&fake_inside_, outside_bottom_, outside_size_);
    } else {
        __sanitizer_start_switch_fiber(&fake_outside_, stack_, kStack);
    }
#endif
    swapcontext(&from, &to);
#ifdef DIBS_ASAN
    if (inside) {
        __sanitizer_finish_switch_fiber(fake_inside_, &outside_bottom_, &outside_size_);
    } else {
        __sanitizer_finish_switch_fiber(fake_outside_, nullptr, nullptr);
    }
#else
    (void)inside;
#endif
}

void Fiber::resume() {
    switch_to(outside_, inside_, false);
}

void Fiber::rest() {
    switch_to(inside_, outside_, true);
}

}  // namespace dibs::sim
