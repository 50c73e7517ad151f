// shm/doorbell.hpp -- wakes the other side: the store-then-load pairs of client and broker.
//
// Each pair is Dekker's: both sides store their own word, then load the other's, all four
// sequentially consistent. At least one of the two then sees the other's store, so either the
// sleeper stays up or the other side wakes it.
//
//   client                                   broker
//   ──────────────────────────────────────   ──────────────────────────────────────────────
//   publish_submissions                      arm_submissions
//     submission_tail.store ──────┐  ┌──────── need_wakeup.store(1)
//     need_wakeup.load  ◄─────────┼──┘
//                                 └────────► published_submissions: submission_tail.load
//
//   arm_completions                          publish_completions
//     sleeping.store ─────────────┐  ┌──────── completion_tail.store (and events before it)
//     published_completions:      │  │
//       completion_tail.load ◄────┼──┘
//       events.load               └────────► sleeping.load
//
// Lines are stored before the tail that announces them, so a tail that is seen makes its lines
// visible: a submission_tail ahead of a line that is not there is a violation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/futex.hpp"
#include "shm/layout.hpp"

namespace dibs::shm {

// ---- client → broker

// Client: after a batch. True: ring the bell. Partner: arm_submissions, published_submissions.
[[nodiscard]] inline bool publish_submissions(UpHead& up, const DownHead& down, uint64_t tail) {
    up.submission_tail.store(tail, std::memory_order_seq_cst);
    return down.need_wakeup.load(std::memory_order_seq_cst) != 0;
}

// Broker: before it sleeps, or when it leaves a silent session. Partner: publish_submissions.
inline void arm_submissions(DownHead& down) {
    down.need_wakeup.store(1, std::memory_order_seq_cst);
}

// Broker: after arm_submissions. What the client says it has published: untrusted, good only for
// the comparison with the broker's own head. Partner: publish_submissions.
[[nodiscard]] inline uint64_t published_submissions(const UpHead& up) {
    return up.submission_tail.load(std::memory_order_seq_cst);
}

// Broker: it polls again. Needs no order: a client that still sees 1 rings once too often.
inline void disarm_submissions(DownHead& down) {
    down.need_wakeup.store(0, std::memory_order_relaxed);
}

// Broker: the entries below `index` are taken and committed. Partner: committed_submissions.
inline void commit_submissions(DownHead& down, uint64_t index) {
    down.submission_consumed.store(index, std::memory_order_release);
}

// Client: lines and payload of the entries below it may be written again. Partner:
// commit_submissions.
[[nodiscard]] inline uint64_t committed_submissions(const DownHead& down) {
    return down.submission_consumed.load(std::memory_order_acquire);
}

// ---- broker → client

// Broker: after a session's completions and event words. Returns a ClientSleep as the client
// wrote it (untrusted: anything but kFutex and kPoll means awake). Partner: arm_completions,
// published_completions.
[[nodiscard]] inline uint32_t publish_completions(DownHead& down, const UpHead& up, uint64_t tail) {
    down.completion_tail.store(tail, std::memory_order_seq_cst);
    return up.sleeping.load(std::memory_order_seq_cst);
}

// Broker: lease `tag` has ended or entered its grace. The word before the count: a client that
// sees the new count sees the word (count_event's partner: published_completions). A
// publish_completions follows.
inline void store_event(std::atomic<uint64_t>* words, uint32_t tag, uint64_t word) {
    words[tag].store(word, std::memory_order_release);
}
inline void count_event(DownHead& down) {
    down.events.fetch_add(1, std::memory_order_seq_cst);
}

// Broker: wakes a client whose ClientSleep is kFutex. Partner: sleep_on_completions.
inline void wake_client(DownHead& down) {
    down.wake.fetch_add(1, std::memory_order_release);
    futex_wake(down.wake, 1);
}

struct PublishedCompletions {
    uint64_t tail;
    uint32_t events;
};

// Client: what the broker has published. Partner: publish_completions, count_event.
[[nodiscard]] inline PublishedCompletions published_completions(const DownHead& down) {
    return {down.completion_tail.load(std::memory_order_seq_cst),
            down.events.load(std::memory_order_seq_cst)};
}

// Client: announces that it is about to sleep (kFutex, kPoll), and returns the futex word as it
// was before that, for sleep_on_completions. It must then look at published_completions, and
// sleep only if there is nothing new. Partner: publish_completions.
[[nodiscard]] inline uint32_t arm_completions(UpHead& up, const DownHead& down, uint32_t how) {
    const uint32_t seen = down.wake.load(std::memory_order_acquire);  // pairs with wake_client
    up.sleeping.store(how, std::memory_order_seq_cst);
    return seen;
}

// Client: awake. Needs no order: a broker that still sees it asleep makes one wake-up without a
// sleeper.
inline void disarm_completions(UpHead& up) {
    up.sleeping.store(ClientSleep::kAwake, std::memory_order_relaxed);
}

// Client: sleeps until wake_client, at most `timeout_ns`. Partner: wake_client.
inline FutexWait sleep_on_completions(const DownHead& down, uint32_t seen, uint64_t timeout_ns) {
    return futex_wait(down.wake, seen, timeout_ns);
}

// Client: entries below `index` have been read. Partner: read_completions.
inline void release_completions(UpHead& up, uint64_t index) {
    up.completion_head.store(index, std::memory_order_release);
}

// Broker: what the client says it has read: untrusted, RingProducer::release_to checks it.
// Partner: release_completions.
[[nodiscard]] inline uint64_t read_completions(const UpHead& up) {
    return up.completion_head.load(std::memory_order_acquire);
}

}  // namespace dibs::shm
