// shm/spin_gauge.hpp -- says whether a wait should spin: it has paid lately, and nobody wants the
// CPU.
//
// Spinning is worth its time where the other side answers meanwhile, on a CPU that nobody else
// needs. Two signs say that it is not: waits that spun and went to sleep all the same, and
// involuntary context switches of this thread, which mean that another one had to push it aside.
// The client and the broker have one each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace dibs::shm {

class SpinGauge {
  public:
    // Before a wait, at any clock's `now`: reads the switches at most once a window.
    void look(uint64_t now, uint64_t window) {
        if (now - looked_ < window) [[likely]]
            return;
        read(now, window);
    }
    [[nodiscard]] bool pays() {
        if (contended_) return false;
        // Now and then it is tried again: what did not pay may have been somebody else's work.
        return paid_ >= kLeast || ++left_out_ % kTryEvery == 0;
    }
    // A wait has spun, and what it waited for came before it slept, or did not.
    void spun(bool came) {
        paid_ += ((came ? kAll : 0) - paid_) / kWeight;
        paid_ += came ? 1 : -1;  // what the division leaves
        if (paid_ < 0) paid_ = 0;
        if (paid_ > kAll) paid_ = kAll;
    }

  private:
    static constexpr int32_t kAll = 1024;
    static constexpr int32_t kLeast = kAll / 4;
    static constexpr int32_t kWeight = 8;
    static constexpr uint32_t kTryEvery = 32;

    [[gnu::noinline]] void read(uint64_t now, uint64_t window) {
        struct rusage usage = {};
        if (getrusage(RUSAGE_THREAD, &usage) != 0) return;
        const auto switches = static_cast<uint64_t>(usage.ru_nivcsw);
        // One a window or more: a stray one in a long time means nothing.
        contended_ = (switches - switches_) * window >= now - looked_ && switches != switches_;
        switches_ = switches;
        looked_ = now;
    }

    uint64_t looked_ = 0;
    uint64_t switches_ = 0;
    int32_t paid_ = kAll;
    uint32_t left_out_ = 0;
    bool contended_ = false;
};

}  // namespace dibs::shm
