// broker/admin/conversations_record.cpp -- serves the one conversation that records.
//
//   asks ──► gets the snapshot, slice by slice ──► gets lines as they come ──► asks again: the
//                                                                             last ones, the end
//
// The turn records from the snapshot's instant on; its lines wait in its queue until the last slice
// has left. If the conversation ends early, later lines are thrown away until the turn has stopped.
// SPDX-License-Identifier: Apache-2.0
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>

#include "broker/admin/conversations.hpp"
#include "broker/text/log.hpp"

namespace dibs {

bool Conversations::record(uint64_t number, Conversation& conversation, uint64_t from) {
    if (!conversation.is_admin) return deny(conversation);
    if (number == recorder_) {
        if (from == 0 || from >= conversation.dump.size()) {
            return refuse(conversation, "it does not ask for the next slice");
        }
        if (!send_slice(conversation, from)) return false;
        begin_telling(number, conversation);
        return true;
    }
    if (recorder_ != 0) return refuse(conversation, "another recording goes on: one at a time");
    const std::string why = dumps_.begin(number, true);
    if (!why.empty()) return refuse(conversation, why);
    recorder_ = number;
    conversation.busy = true;
    listen(number, conversation, false);
    return true;
}

// With the last slice the snapshot is gone from here.
void Conversations::begin_telling(uint64_t number, Conversation& conversation) {
    if (!conversation.dump.empty()) return;
    conversation.busy = true;
    conversation.recorder.emplace(exchange_.recording());
    log::info("a recording has begun");
    look_for_stop(number, conversation, false);
    tell_recorder();
}

// Whatever it says from here on means: stop.
void Conversations::hear_recorder(uint64_t number, Conversation& conversation) {
    const Packet next = next_packet(conversation.socket.get());
    if (next == Packet::kDescriptors || next == Packet::kGone) return forget(all_.find(number));
    std::array<uint8_t, kRequestSize> packet;
    const ssize_t size =
        recv(conversation.socket.get(), packet.data(), packet.size(), MSG_DONTWAIT);
    const bool nothing = size < 0 && (errno == EAGAIN || errno == EINTR);
    if (!nothing && size <= 0) return forget(all_.find(number));
    if (size > 0) unrecord();
    tell_recorder();
}

void Conversations::tell_recorder() {
    Recording& recording = exchange_.recording();
    const auto found = all_.find(recorder_);
    if (found == all_.end()) {
        const bool ended = recording.ended() != Recording::End::kNone;
        while (recording.next() != nullptr) {
        }
        if (!ended) return;
        recorder_ = 0;
        return recording.reset();
    }
    Conversation& conversation = found->second;
    if (!conversation.recorder) return;
    switch (conversation.recorder->flush(conversation.socket.get())) {
        case Recorder::Sent::kAll:
            return look_for_stop(found->first, conversation, false);
        case Recorder::Sent::kWaits:
            return look_for_stop(found->first, conversation, true);
        case Recorder::Sent::kGone:
            return forget(found);
        case Recorder::Sent::kFinished:
            log::info("a recording has ended");
            recorder_ = 0;
            recording.reset();
            return forget(found);
    }
}

// The turn is ordered to stop recording. If it has stopped by itself, it sends nothing more.
void Conversations::recorder_gone() {
    unrecord();
    tell_recorder();
}

void Conversations::look_for_stop(uint64_t number,
                                  const Conversation& conversation,
                                  bool waits) const {
    struct epoll_event event = {};
    event.events = uint32_t{EPOLLIN} | (waits ? uint32_t{EPOLLOUT} : 0);
    event.data.u64 = number;
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, conversation.socket.get(), &event);
}

// Too much asked of the broker: what comes next tries again, or nothing does.
void Conversations::unrecord() {
    Request request;
    request.kind = Request::Kind::kUnrecord;
    (void)exchange_.ask(request);
}

}  // namespace dibs
