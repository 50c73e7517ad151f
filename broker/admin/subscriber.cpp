// broker/admin/subscriber.cpp -- bounds a subscriber's packets and hides other users' events.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/subscriber.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dibs {

// All users may read the counters of pools.
shm::Event Subscriber::seen(const shm::Event& event) const {
    const bool counts =
        event.kind == shm::EventKind::kDemand || event.kind == shm::EventKind::kDrained;
    shm::Event told = event;
    if (is_admin_ || counts || event.uid == uid_) {
        told.flags |= shm::EventFlag::kFull;
        if (!is_admin_ && event.holder_uid != uid_) {  // of another's lease its age
            told.holder_uid = shm::kNoRow;
            told.holder_pid = 0;
            told.holder_claim = 0;
        }
        return told;
    }
    told = {};
    told.number = event.number;
    told.time_ns = event.time_ns;
    told.kind = event.kind;
    told.uid = told.slot = told.holder_uid = told.session = shm::kNoRow;
    std::memcpy(told.pool, event.pool, sizeof(told.pool));
    std::memcpy(told.account, event.account, sizeof(told.account));
    return told;
}

Subscriber::Packet Subscriber::packet(std::span<const shm::Event> events) {
    const shm::EventHead head{
        shm::kEventsMagic, shm::kEventVersion, static_cast<uint32_t>(events.size()), lost_};
    lost_ = 0;
    Packet bytes(sizeof(head) + events.size() * sizeof(shm::Event));
    std::memcpy(bytes.data(), &head, sizeof(head));
    uint8_t* at = bytes.data() + sizeof(head);
    for (const shm::Event& event : events) {
        const shm::Event told = seen(event);
        std::memcpy(at, &told, sizeof(told));
        at += sizeof(told);
    }
    return bytes;
}

void Subscriber::add(std::span<const shm::Event> events) {
    if (packets_.size() >= kPackets) {
        lost_ += events.size();
    } else {
        packets_.push_back(packet(events));
    }
}

void Subscriber::tell(std::span<const shm::Event> events, uint64_t lost) {
    lost_ += lost;
    while (!events.empty()) {
        const size_t count = std::min<size_t>(events.size(), shm::kEventsOfPacket);
        add(events.first(count));
        events = events.subspan(count);
    }
}

bool Subscriber::flush(int socket) {
    while (waiting()) {
        if (packets_.empty()) packets_.push_back(packet({}));
        const Packet& next = packets_.front();
        const ssize_t sent = send(socket, next.data(), next.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS;
        packets_.pop_front();
    }
    return true;
}

}  // namespace dibs
