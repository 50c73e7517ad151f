// broker/admin/events.hpp -- sends the turn's events to subscribers, through the control thread.
//
//   turn ── batches of a turn's events ──► queue ──► control thread ──► each subscriber's socket
//
// One word tells the turn that there are no subscribers. If there are, it copies its decisions and
// goes on: it never waits. Events that find no room, in the queue or at a subscriber, are counted,
// and the next event that arrives carries the count.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "broker/admin/admin.hpp"
#include "broker/control/thread_wake.hpp"
#include "broker/core/core.hpp"
#include "shm/event.hpp"

namespace dibs {

struct EventBatch {
    uint64_t lost = 0;  // before the first of these
    std::vector<shm::Event> events;
};

class Events {
  public:
    Events() = default;
    ~Events();
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;

    // --- the turn's side Pairs with nothing: a subscriber that comes a turn too late gets the next
    // one.
    [[nodiscard]] bool wanted() const { return subscribers_.load(std::memory_order_relaxed) != 0; }
    // Between decide() and the next begin_turn.
    // `jobs`: those that this turn has done.
    void tell(const core::Core& core, std::span<AdminJob* const> jobs = {});
    void tell_session(const core::Core& core,
                      uint32_t session,
                      uint32_t generation,
                      shm::EventKind kind);
    void send();

    // --- the control thread's side
    [[nodiscard]] int fd() const { return attention_.fd(); }
    void subscribe(bool on) { subscribers_.fetch_add(on ? 1U : ~0U, std::memory_order_relaxed); }
    [[nodiscard]] std::unique_ptr<EventBatch> next();
    void acknowledge() const { attention_.answer(); }

  private:
    static constexpr uint32_t kQueued = 1024;      // batches
    static constexpr uint32_t kEventsMax = 65536;  // in the queue

    shm::Event& add(const core::Core& core, shm::EventKind kind);
    void name_releasers(std::span<AdminJob* const> jobs);
    static void name_application(const core::Core& core,
                                 const core::Decision& decision,
                                 shm::Event* event);
    void name_session(const core::Core& core, uint32_t session, shm::Event* event) const;
    void add_slots(const core::Core& core, const core::Decision& decision);

    std::atomic<uint32_t> subscribers_ = 0;
    std::atomic<uint32_t> queued_ = 0;  // events in the queue: the turn adds, control takes away
    boost::lockfree::spsc_queue<EventBatch*> queue_{kQueued};
    ThreadWake attention_;
    std::unique_ptr<EventBatch> batch_;  // of this turn
    uint64_t number_ = 0;
    uint64_t lost_ = 0;
};

}  // namespace dibs
