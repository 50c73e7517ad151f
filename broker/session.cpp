// broker/session.cpp -- the broker's private side of a session.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "shm/memfd.hpp"

namespace dibs {

namespace {

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Session::Session(Peer who, const shm::SessionSizes& chosen)
    : rooms(chosen.down_payload / shm::kLineSize),
      tags(chosen.tags),
      sizes(chosen),
      peer(std::move(who)),
      histogram_seen(shm::kHistogramBuckets, 0) {
    const shm::UpPlan up_plan = shm::plan_up(sizes);
    const shm::DownPlan down_plan = shm::plan_down(sizes);
    up_fd = shm::make_memfd("dibs-up", up_plan.size);
    down_fd = shm::make_memfd("dibs-down", down_plan.size);
    up_mapping = Mapping(up_fd.get(), up_plan.size);
    down_mapping = Mapping(down_fd.get(), down_plan.size);
    bell = shm::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bell.valid()) fail("eventfd");
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        fail("socketpair");
    }
    event_socket = shm::Descriptor(pair[0]);
    client_event_socket = shm::Descriptor(pair[1]);

    up = Upstream(up_mapping.bytes().data(), sizes);
    down = down_mapping.at<shm::DownHead>(0);
    completions = down_mapping.at<shm::CompletionEntry>(down_plan.completion);
    events = down_mapping.at<std::atomic<uint64_t>>(down_plan.event);
    payload = down_mapping.at<std::byte>(down_plan.payload);
    frees.reserve(sizes.tags);
}

bool Session::refresh_released() {
    const uint64_t read = up.completions_read();
    if (read < completions_released || read > completion_tail) return false;
    completions_released = read;
    return true;
}

uint32_t Session::take_room(uint32_t lines) {
    uint32_t first = rooms.take(lines);
    if (first != shm::kNoRow) return first;
    settle(frees_committed);
    first = rooms.take(lines);
    if (first != shm::kNoRow) return first;
    // Rooms of leases that others have ended: their holders had until now to look. What ended in
    // this very turn is not marked yet, so nothing is overwritten that a crash could bring back.
    for (TagRoom& tag : tags) {
        if (!tag.ended || tag.unread > completions_released) continue;
        rooms.free(tag.first, tag.lines);
        tag = TagRoom{};
    }
    return rooms.take(lines);
}

void Session::free_room(uint32_t first, uint32_t lines, uint64_t unread) {
    frees.push_back({first, lines, unread});
}

void Session::free_tag(uint16_t tag, uint64_t unread) {
    TagRoom& room = tags[tag];
    if (room.first == shm::kNoRow) return;
    free_room(room.first, room.lines, unread);
    room = TagRoom{};
}

void Session::keep_until_read(uint32_t first, uint64_t unread) {
    for (size_t i = frees_committed; i < frees.size(); ++i) {
        if (frees[i].first == first) frees[i].unread = unread;
    }
}

void Session::settle_rooms() {
    settle(frees.size());
    frees_committed = frees.size();
}

// Looks at the oldest `count` of what is to be freed.
void Session::settle(size_t count) {
    if (count == 0) return;
    bool looked = false;
    size_t kept = 0;
    for (size_t i = 0; i < frees.size(); ++i) {
        const PendingFree free = frees[i];
        if (free.unread > completions_released && !looked) {
            looked = true;  // an index that cannot be is found by the next answer
            (void)refresh_released();
        }
        if (i < count && free.unread <= completions_released) {
            rooms.free(free.first, free.lines);
        } else {
            frees[kept++] = free;
        }
    }
    frees_committed -= std::min(frees_committed, frees.size() - kept);
    frees.resize(kept);
}

}  // namespace dibs
