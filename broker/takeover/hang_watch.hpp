// broker/takeover/hang_watch.hpp -- a timer shared with the keeper, which rings if the turn hangs.
//
//   asleep ── wakes: arm ──► awake ── every quarter of a second: arm again ──► awake
//      ▲                       │
//      └── rest, then sleep ───┘        rings: a turn has not ended for more than a second,
//                                              or one has not begun so long after it was due
//
// The broker arms it when it wakes; before it sleeps, it puts the timer off until what comes due
// next is late, or disarms it where nothing is due: idle stays idle. If the timer rings, and still
// does at some more looks, the keeper kills the broker: a process that hangs cannot be asked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/timerfd.h>

#include <cstdint>

#include "shm/descriptor.hpp"

namespace dibs {

class HangWatch {
  public:
    static constexpr uint64_t kRingsAfterNs = 1'250'000'000;
    static constexpr uint64_t kArmEveryNs = 250'000'000;            // so a second at least
    static constexpr uint64_t kLongestRestNs = uint64_t{1} << 62U;  // longer is for ever
    static constexpr uint64_t kServesWithinNs =
        30'000'000'000;  // of a start: it looks at every row
    // Another program than the keeper's: until it sets the time above, or serves.
    static constexpr uint64_t kOtherBeginsWithinNs = 5'000'000'000;

    HangWatch() = default;
    // Without a descriptor it does nothing.
    explicit HangWatch(shm::Descriptor timer) : timer_(std::move(timer)) {}

    [[nodiscard]] int fd() const { return timer_.get(); }
    void arm(uint64_t now_ns) {
        armed_ns_ = now_ns;
        set(kRingsAfterNs);
    }
    // While there is always work. Nothing but a comparison, nearly always.
    void keep(uint64_t now_ns) {
        if (now_ns - armed_ns_ >= kArmEveryNs) arm(now_ns);
    }
    void disarm() { set(0); }
    // It sleeps for so long, kNever: until it is woken.
    void rest(uint64_t wait_ns) const {
        set(wait_ns >= kLongestRestNs ? 0 : wait_ns + kRingsAfterNs);
    }
    void set(uint64_t ns) const { set(timer_.get(), ns); }
    static void set(int timer, uint64_t ns) {
        if (timer < 0) return;
        struct itimerspec when = {};
        when.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
        when.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000);
        (void)timerfd_settime(timer, 0, &when, nullptr);
    }

  private:
    shm::Descriptor timer_;
    uint64_t armed_ns_ = 0;
};

}  // namespace dibs
