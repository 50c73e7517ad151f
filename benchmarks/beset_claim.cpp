// benchmarks/beset_claim.cpp -- a claim on a counted pool while a hostile session is attached.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/beset_claim.hpp"

#include <unistd.h>

#include <cstring>

#include "benchmarks/bulk.hpp"
#include "clientlib/session.hpp"
#include "shm/doorbell.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kLines = 256;
constexpr uint32_t kTags = 8;

// An entry in good order with anything in it, but for the word that would end the session.
shm::Submission anything(std::mt19937_64& random) {
    shm::Submission entry;
    entry.user_data = random();
    entry.op = static_cast<shm::Op>(random() % static_cast<unsigned>(shm::Op::kClose));
    entry.flags = static_cast<uint8_t>(random() % 4 == 0 ? random() : 0);
    entry.pool = static_cast<uint16_t>(random() % 3);
    entry.units = static_cast<uint16_t>(random() % 4);
    entry.tag = static_cast<uint16_t>(random() % kTags);
    entry.id = random() % 2 == 0 ? random() : (random() % 4) << 32U | random() % 8;
    entry.fence = random() % 8;
    if (random() % 4 == 0) {
        entry.payload_offset = static_cast<uint32_t>(random() % 4096);
        entry.payload_size = static_cast<uint32_t>(random() % 300);
    }
    if (random() % 4 == 0) entry.key[0] = static_cast<uint8_t>(random() % 3);
    return entry;
}

}  // namespace

BesetClaim::BesetClaim(const std::string& socket, uint32_t entries)
    : socket_(socket),
      client_(ClientSetup{.socket = socket}),
      pool_(client_.pool("counted")),
      entries_(entries) {
    attach();
}

BesetClaim::~BesetClaim() {
    dibs_close(hostile_);
}

void BesetClaim::attach() {
    if (hostile_ != nullptr) dibs_close(hostile_);
    hostile_ = nullptr;
    dibs_connect_options options = {};
    options.size = sizeof options;
    options.socket_path = socket_.c_str();
    options.submission_entries = kLines;
    options.completion_entries = 4 * kLines;
    options.leases_max = kTags;
    must(dibs_connect(&options, &hostile_), "dibs_connect of the hostile session");
    for (uint64_t at = 0; at + 8 <= hostile_->sizes.up_payload; at += 8) {
        const uint64_t bytes = random_();
        std::memcpy(hostile_->up_payload + at, &bytes, sizeof bytes);
    }
}

void BesetClaim::trouble() {
    shm::UpHead& up = *hostile_->up;
    up.sleeping.store(static_cast<uint32_t>(random_() % 4));
    up.cpu.store(static_cast<uint32_t>(random_() % 4));
    up.net_rings.store(random_());
    for (uint32_t i = 0; i < entries_ && hostile_->submissions.room() != 0; ++i)
        hostile_->submissions.push(anything(random_));
    up.submission_tail.store(hostile_->submissions.tail());
    const uint64_t one = 1;
    (void)!write(hostile_->bell, &one, sizeof one);
}

// Not in the figure: the broker's answers are thrown away, and it takes from what is left whenever
// it likes.
void BesetClaim::recover() {
    const shm::DownHead& down = *hostile_->down;
    if (down.session_state.load(std::memory_order_acquire) !=
        static_cast<uint32_t>(shm::SessionState::kOpen)) {
        return attach();
    }
    (void)hostile_->submissions.release_to(shm::committed_submissions(down));
    shm::release_completions(*hostile_->up, down.completion_tail.load(std::memory_order_acquire));
}

void BesetClaim::measure(uint32_t operations, Samples& out) {
    for (uint32_t i = 0; i < operations + kFirst; ++i) {
        client_.pace(Pace::kPaced, false);
        trouble();
        const double ns = client_.claim(pool_, nullptr);
        recover();
        if (i >= kFirst) out.add(ns);
    }
    client_.pace(Pace::kAsleep, false);
}

}  // namespace dibs::bench
