// broker/admin/recording.hpp -- what a live broker is given, on its way from the turn to whoever
// records.
//
//   turn ── the lines of a turn ──► queue ──► control thread ──► the recorder's socket
//
// While nobody records, the core compares a pointer with null. Else the turn copies what it is
// given, and goes on: it never waits. A journal with a hole is none, so if the queue is full the
// recording ends there, and what is in it still arrives.
//
//   off ── begin ──► on ── stop ──► off: kStopped
//                     └── no room ──► off: kOverrun
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "broker/control/attention.hpp"
#include "broker/core/core.hpp"

namespace dibs {

class Recording {
  public:
    using Lines = std::vector<uint8_t>;
    enum class End : uint32_t { kNone, kStopped, kOverrun };

    static constexpr uint64_t kBytesMax = 64 << 20;  // in the queue

    explicit Recording(uint64_t bytes_max = kBytesMax);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    // --- the turn's side
    // Between turns, when it is off. From the next turn on.
    void begin(core::Core& core);
    // It ends with the turn that is open. Nothing if it is off.
    void stop();
    // The turn was to begin one, and will not.
    void never_begin() { end(End::kStopped); }

    // --- the control thread's side
    [[nodiscard]] int fd() const { return attention_.fd(); }
    void heard() const { attention_.answer(); }
    // Null: none by now. Asked before next() says null, an end means that nothing more comes.
    [[nodiscard]] std::unique_ptr<Lines> next();
    [[nodiscard]] End ended() const { return end_.load(std::memory_order_acquire); }
    // Turns that were recorded; once it has ended.
    [[nodiscard]] uint64_t turns() const { return turns_; }
    // Its end has been seen: another one may begin.
    void reset() { end_.store(End::kNone, std::memory_order_relaxed); }

  private:
    static constexpr uint32_t kQueued = 65536;  // turns

    class Tapped;
    void turn_ends();
    // Pairs with ended(): what was queued before, and the number of turns, is seen with it.
    void end(End how);

    const uint64_t bytes_max_;
    std::unique_ptr<Tapped> tapped_;  // while it is on
    core::Core* core_ = nullptr;
    bool stopping_ = false;
    uint64_t turns_ = 0;  // the turn's until the end
    boost::lockfree::spsc_queue<Lines*> queue_{kQueued};
    std::atomic<uint64_t> queued_ = 0;  // bytes: the turn adds, control takes away
    std::atomic<End> end_ = End::kNone;
    Attention attention_;
};

}  // namespace dibs
