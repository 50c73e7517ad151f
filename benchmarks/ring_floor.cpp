// benchmarks/ring_floor.cpp -- a 64-byte entry there, one back.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/ring_floor.hpp"

#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kThere = 128;  // entries, as a session has by default
constexpr uint32_t kBack = 256;
constexpr int kPollsPerLook = 64;  // at whether to go on

// The peer's side. Its cursors outlive a pause: they are the child's own copy.
class Echo {
  public:
    Echo(const shm::SubmissionEntry* there, shm::CompletionEntry* back)
        : consumer_(there, kThere, 0), producer_(back, kBack, 0) {}

    void operator()(const Peer::Running& running) {
        shm::Submission asked;
        shm::Completion answer;
        while (running) {
            for (int i = 0; i < kPollsPerLook; ++i) {
                if (consumer_.pop(asked) != shm::Poll::kEntry) {
                    shm::pause();
                    continue;
                }
                answer.user_data = asked.user_data;
                // One is under way at a time: what was pushed before has been read.
                (void)producer_.release_to(producer_.tail());
                producer_.push(answer);
            }
        }
    }

  private:
    shm::SubmissionConsumer consumer_;
    shm::CompletionProducer producer_;
};

}  // namespace

RingFloor::RingFloor(int peer_cpu, uint32_t bulk)
    : bulk_(bulk),
      memory_((kThere + kBack) * shm::kLineSize),
      there_(memory_.at<shm::SubmissionEntry>(0)),
      back_(memory_.at<shm::CompletionEntry>(kThere * shm::kLineSize)),
      producer_(there_, kThere, 0),
      consumer_(back_, kBack, 0),
      peer_(peer_cpu, Echo(there_, back_)) {}

void RingFloor::there_and_back() {
    (void)producer_.release_to(producer_.tail());
    producer_.push(ask_);
    while (consumer_.pop(answer_) != shm::Poll::kEntry)
        shm::pause();
}

void RingFloor::measure(uint32_t operations, Samples& out) {
    peer_.start();
    for (uint32_t done = 0; done < operations; done += bulk_) {
        const uint64_t first = ticks();
        for (uint32_t i = 0; i < bulk_; ++i)
            there_and_back();
        out.add(elapsed_ns(first, ticks()) / bulk_);
        short_gap();
    }
    peer_.stop();
}

}  // namespace dibs::bench
