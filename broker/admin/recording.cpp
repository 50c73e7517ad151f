// broker/admin/recording.cpp -- a turn's lines are queued, or the recording is over.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/recording.hpp"

#include <cassert>

#include "broker/journal/tape.hpp"

namespace dibs {

class Recording::Tapped final : public Tape {
  public:
    Tapped(const core::Core& core, Recording& recording) : Tape(core), recording_(recording) {}
    void hear_of_commit() override {
        Tape::hear_of_commit();
        recording_.turn_ends();
    }

  private:
    Recording& recording_;
};

Recording::Recording(uint64_t bytes_max) : bytes_max_(bytes_max) {}

Recording::~Recording() {
    while (next() != nullptr) {
    }
}

void Recording::begin(core::Core& core) {
    assert(core_ == nullptr);
    core_ = &core;
    stopping_ = false;
    turns_ = 0;
    tapped_ = std::make_unique<Tapped>(core, *this);
    core.set_tap(tapped_.get());
}

void Recording::stop() {
    stopping_ = true;
}

// Called by the tap itself, which stays until the next recording.
void Recording::turn_ends() {
    auto lines = std::make_unique<Lines>(tapped_->take());
    const uint64_t size = lines->size();
    const bool room = queued_.load(std::memory_order_relaxed) + size <= bytes_max_;
    if (!room || !queue_.push(lines.get())) return end(End::kOverrun);
    (void)lines.release();
    queued_.fetch_add(size, std::memory_order_relaxed);
    ++turns_;
    if (stopping_) return end(End::kStopped);
    attention_.call();
}

void Recording::end(End how) {
    if (core_ != nullptr) core_->set_tap(nullptr);
    core_ = nullptr;
    end_.store(how, std::memory_order_release);
    attention_.call();
}

std::unique_ptr<Recording::Lines> Recording::next() {
    Lines* lines = nullptr;
    if (!queue_.pop(lines)) return nullptr;
    queued_.fetch_sub(lines->size(), std::memory_order_relaxed);
    return std::unique_ptr<Lines>(lines);
}

}  // namespace dibs
