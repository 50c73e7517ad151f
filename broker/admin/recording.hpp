// broker/admin/recording.hpp -- records a live broker's commands for one client that asked.
//
//   turn ── the lines of a turn ──► queue ──► control thread ──► the recorder's socket
//
// While no recording runs, the core compares a pointer with null. While one runs, the turn copies
// its commands, and goes on: it never waits. A journal with a hole is useless, so if the queue is
// full the recording ends there, and what is in it still arrives.
//
//   off ── begin ──► on ── stop ──► off: kStopped
//                     └── no room ──► off: kOverrun
//
// The client gets answers with bytes of the journal: first the snapshot, slice by slice as it asks,
// then lines as they come, cut anywhere. The last answer has no `more`: it says whether the
// recording was stopped or has a hole from here on. Only as much is taken from the queue as the
// socket takes: the rest waits in the queue, which is bounded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "broker/control/thread_wake.hpp"
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
    void acknowledge() const { attention_.answer(); }
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
    ThreadWake attention_;
};

class Recorder {
  public:
    explicit Recorder(Recording& recording) : recording_(&recording) {}

    enum class Sent : uint8_t { kAll, kWaits, kFinished, kGone };
    // Sends what there is and the socket takes. kFinished: the last answer has left.
    [[nodiscard]] Sent flush(int socket);

  private:
    static constexpr size_t kPacketBytes = 65536;  // of the journal
    static constexpr int kPacketsAtOnce = 16;      // then other descriptors are served

    [[nodiscard]] bool prepare();

    Recording* recording_;
    std::vector<uint8_t> bytes_;   // taken from the recording, in no packet yet
    std::vector<uint8_t> packet_;  // that the socket did not take
    bool last_ = false;            // and nothing follows it
};

}  // namespace dibs
