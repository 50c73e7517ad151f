// broker/session/session.cpp -- implements the broker's private side of a session.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/session.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "broker/takeover/inheritance.hpp"
#include "shm/doorbell.hpp"
#include "shm/memfd.hpp"

namespace dibs {

namespace {

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

// Its groups are in no row; the handshake's socket still knows them.
Peer peer_of(const shm::SessionRow& session, InheritedSession& inherited) {
    Peer peer;
    std::string why;
    if (auto known = peer_credentials(inherited.at(SessionDescriptor::kSocket).get(), &why)) {
        static_cast<Credentials&>(peer) = std::move(*known);
    }
    peer.uid = session.uid;
    peer.gid = session.gid;
    peer.pid = session.pid;
    peer.start_time = session.start_time;
    peer.pidfd = std::move(inherited.at(SessionDescriptor::kProcess));
    peer.killable = may_kill(peer.pidfd.get());
    return peer;
}

}  // namespace

Session::Session(Peer who, const shm::SessionSizes& chosen)
    : rooms(chosen.down_payload / shm::kLineSize),
      tags(chosen.tags),
      sizes(chosen),
      peer(std::move(who)),
      histogram_seen(shm::kHistogramBuckets, 0) {
    up_fd = shm::make_memfd("dibs-up", shm::plan_up(sizes).size);
    down_fd = shm::make_memfd("dibs-down", shm::plan_down(sizes).size);
    map(0, Mapping::Pages::kAll);
    bell = shm::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bell.valid()) fail("eventfd");
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        fail("socketpair");
    }
    event_socket = shm::Descriptor(pair[0]);
    (void)shutdown(pair[0], SHUT_RD);  // what a client sends would not be read
    client_event_socket = shm::Descriptor(pair[1]);
}

Session::Session(const shm::SessionRow& session, InheritedSession& inherited)
    : consumed(session.submission_consumed),
      completion_tail(session.completion_tail),
      row(inherited.row),
      generation(inherited.generation),
      rooms(session.down_payload_size / shm::kLineSize),
      tags(session.tags_max),
      slots(session.slots),
      sizes({session.submission_entries,
             session.completion_entries,
             session.up_payload_size,
             session.down_payload_size,
             session.tags_max}),
      peer(peer_of(session, inherited)),
      socket(std::move(inherited.at(SessionDescriptor::kSocket))),
      bell(std::move(inherited.at(SessionDescriptor::kBell))),
      event_socket(std::move(inherited.at(SessionDescriptor::kEvents))),
      histogram_seen(shm::kHistogramBuckets, 0),
      up_fd(std::move(inherited.at(SessionDescriptor::kUp))),
      down_fd(std::move(inherited.at(SessionDescriptor::kDown))),
      taken_over(true),
      client_event_socket(std::move(inherited.at(SessionDescriptor::kClientEvents))) {
    if (!shm::valid_sizes(sizes) || shm::size_of(up_fd.get()) != shm::plan_up(sizes).size ||
        shm::size_of(down_fd.get()) != shm::plan_down(sizes).size) {
        throw std::runtime_error("a session's segments do not fit its row");
    }
    (void)shutdown(event_socket.get(), SHUT_RD);  // an older broker has left it open
    map(consumed, Mapping::Pages::kFew);
    if (session.tree != 0) {
        tree = inherited_tree(
            session.tree,
            std::move(inherited.at(SessionDescriptor::kTree)),
            "process " + std::to_string(session.pid) + " of user " + std::to_string(session.uid));
    }
    net_rings_seen = up.net_rings();
    for (uint32_t i = 0; i < shm::kHistogramBuckets; ++i)
        histogram_seen[i] = up.bucket(i);
    completions_harvested = completion_tail;
}

void Session::map(uint64_t submissions_taken, Mapping::Pages pages) {
    const shm::DownPlan down_plan = shm::plan_down(sizes);
    up_mapping = Mapping(up_fd.get(), shm::plan_up(sizes).size, pages);
    down_mapping = Mapping(down_fd.get(), down_plan.size, pages);
    up = Upstream(up_mapping.bytes().data(), sizes, submissions_taken);
    down = down_mapping.at<shm::DownHead>(0);
    completions = down_mapping.at<shm::CompletionEntry>(down_plan.completion);
    events = down_mapping.at<std::atomic<uint64_t>>(down_plan.event);
    payload = down_mapping.at<std::byte>(down_plan.payload);
    frees.reserve(sizes.tags);
}

void Session::announce(uint64_t tail) {
    const uint32_t sleeps = up.announce(*down, tail);
    if (sleeps == shm::ClientSleep::kFutex) shm::wake_client(*down);
    if (sleeps == shm::ClientSleep::kPoll) {
        // A full socket has woken its reader already.
        (void)send(event_socket.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

bool Session::refresh_released() {
    const uint64_t read = up.completions_read();
    if (read < completions_released || read > completion_tail) return false;
    completions_released = read;
    return true;
}

uint32_t Session::take_room(uint32_t lines) {
    const uint32_t first = rooms.take(lines);
    if (first != shm::kNoRow) return first;
    settle(frees_committed);
    return rooms.take(lines);
}

void Session::free_ended(uint16_t tag) {
    if (tag >= tags.size() || !tags[tag].ended()) return;
    TagRoom& room = tags[tag];
    if (room.unread > completions_released && !refresh_released()) return;
    // An end of this very turn is not marked yet, so nothing is overwritten that a crash could
    // bring back.
    if (room.unread > completions_released) return free_tag(tag, room.unread);
    rooms.free(room.first, room.lines);
    room = TagRoom{};
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
