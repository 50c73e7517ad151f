// broker/admin/recording.cpp -- queues a turn's lines and sends them as packets.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/recording.hpp"

#include <sys/socket.h>
#include <algorithm>
#include <cassert>
#include <cerrno>
#include <memory>
#include <string>

#include "broker/journal/encoder.hpp"
#include "schemas/admin_generated.h"

namespace dibs {

class Recording::Tapped final : public Encoder {
  public:
    Tapped(const core::Core& core, Recording& recording) : Encoder(core), recording_(recording) {}
    void hear_of_commit() override {
        Encoder::hear_of_commit();
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

// False: there is nothing to send by now.
bool Recorder::prepare() {
    const Recording::End end = recording_->ended();
    while (bytes_.size() < kPacketBytes) {
        const std::unique_ptr<Recording::Lines> lines = recording_->next();
        if (lines == nullptr) break;
        bytes_.insert(bytes_.end(), lines->begin(), lines->end());
    }
    admin::AnswerT answer;
    answer.more = true;
    const size_t size = std::min(bytes_.size(), kPacketBytes);
    const auto cut = bytes_.begin() + static_cast<ptrdiff_t>(size);
    answer.bytes.assign(bytes_.begin(), cut);
    bytes_.erase(bytes_.begin(), cut);
    if (size == 0 && end == Recording::End::kNone) return false;
    if (size == 0) {
        last_ = true;
        answer.more = false;
        if (end == Recording::End::kOverrun) {
            answer.code = admin::Code::refused;
            answer.names.push_back(
                "the broker did more than was taken from it: what came behind "
                "turn " +
                std::to_string(recording_->turns()) + " is lost");
        }
    }
    flatbuffers::FlatBufferBuilder builder(kPacketBytes + 1024);
    builder.Finish(admin::Answer::Pack(builder, &answer));
    packet_.assign(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
    return true;
}

Recorder::Sent Recorder::flush(int socket) {
    for (int packets = 0; packets < kPacketsAtOnce; ++packets) {
        if (packet_.empty() && last_) return Sent::kFinished;
        if (packet_.empty() && !prepare()) return Sent::kAll;
        const ssize_t sent =
            send(socket, packet_.data(), packet_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) {
            return Sent::kWaits;
        }
        if (sent < 0) return Sent::kGone;
        packet_.clear();
    }
    return Sent::kWaits;
}

}  // namespace dibs
