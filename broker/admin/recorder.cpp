// broker/admin/recorder.cpp -- bytes of a journal as packets.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/recorder.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include "schemas/admin_generated.h"

namespace dibs {

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
