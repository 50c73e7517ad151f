// clientlib/events.cpp -- subscribes to events over a connection of its own and parses packets.
// Its memory begins with a page that is wiped in a forked child, as a session's does.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include <new>

#include "clientlib/admin_connection.hpp"
#include "clientlib/admin_tables.hpp"
#include "clientlib/clock.hpp"
#include "shm/event.hpp"

using dibs::shm::kEventKinds;

struct dibs_events {
    dibs::client::AdminConnection connection;
    const volatile uint64_t* mark = nullptr;
    size_t size = 0;  // of the packet, in bytes
    uint32_t next = 0;
    uint32_t count = 0;
    alignas(8) uint8_t packet[sizeof(dibs::shm::EventHead) +
                              dibs::shm::kEventsOfPacket * sizeof(dibs::shm::Event)];
};

namespace dibs::client {
namespace {

constexpr uint8_t kAskEvents = 22;
constexpr size_t kMemory = shm::kPageSize + sizeof(dibs_events);

int check_mark(const dibs_events* events) {
    return *events->mark == kForkMark ? DIBS_OK : DIBS_EFORK;
}

void give_memory_back(dibs_events* events) {
    events->~dibs_events();
    munmap(reinterpret_cast<uint8_t*>(events) - shm::kPageSize, kMemory);
}

constexpr const char* kNames[] = {
    "result",      "announced",      "assign",        "revoke",      "answer",    "grant",
    "end",         "adopted",        "lease_grace",   "kill_holder", "lease_end", "slot_gone",
    "demand",      "drained",        "promote",       "demote",      "preempt",   "refund",
    "pulled",      "session_opened", "session_ended", "more_slots",  "lost",      "create",
    "stop",        "lock",           "unlock",        "start",       "kill",      "forget",
    "application", "task",           "placeholder"};
static_assert(sizeof kNames / sizeof *kNames == kEventKinds);
static_assert(DIBS_EVENT_LOST == static_cast<int>(shm::EventKind::kLost));
static_assert(DIBS_EVENT_PLACEHOLDER + 1 == kEventKinds);
static_assert(DIBS_EVENT_SLOTS == shm::kEventSlots);

int subscribe(const dibs_connect_options* options, dibs_events* events) {
    dibs_connect_options known;
    const int code = open_conversation(events->connection, options, &known);
    if (code != DIBS_OK) return code;
    PlainRequest request;
    request.ask = kAskEvents;
    const int size =
        events->connection.ask(&request, sizeof request, events->packet, sizeof events->packet);
    if (size < 0) return size;
    SliceAnswer answer;
    if (!read_slice(events->packet, static_cast<size_t>(size), &answer)) return DIBS_EHANDSHAKE;
    return answer.code == 0 ? DIBS_OK : DIBS_EVERSION;
}

// 1: a packet is there; 0: none came in time.
int wait_for_packet(dibs_events* events, int64_t timeout_ns) {
    const uint64_t begun = monotonic_ns();
    for (;;) {
        pollfd ready = {events->connection.fd(), POLLIN, 0};
        timespec left = {};
        const uint64_t passed = monotonic_ns() - begun;
        const auto timeout = static_cast<uint64_t>(timeout_ns);
        const uint64_t rest = passed < timeout ? timeout - passed : 0;
        left.tv_sec = static_cast<time_t>(rest / 1'000'000'000);
        left.tv_nsec = static_cast<long>(rest % 1'000'000'000);
        const int found = ppoll(&ready, 1, timeout_ns == DIBS_FOREVER ? nullptr : &left, nullptr);
        if (found < 0 && errno == EINTR) continue;
        if (found <= 0) return found < 0 ? DIBS_ESYSTEM : 0;
        const ssize_t size =
            ::recv(events->connection.fd(), events->packet, sizeof events->packet, MSG_DONTWAIT);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (size <= 0) return DIBS_EBROKERLOST;
        events->size = static_cast<size_t>(size);
        return 1;
    }
}

void tell(const shm::Event& from, dibs_event* to) {
    to->number = from.number;
    to->time_ns = static_cast<int64_t>(from.time_ns);
    to->kind = static_cast<int32_t>(from.kind);
    to->full = (from.flags & shm::EventFlag::kFull) != 0 ? 1 : 0;
    to->provision = (from.flags & shm::EventFlag::kProvision) != 0 ? 1 : 0;
    to->is_void = (from.flags & shm::EventFlag::kVoid) != 0 ? 1 : 0;
    to->outcome = static_cast<int32_t>(from.outcome);
    to->code = static_cast<int32_t>(from.reason);
    to->uid = from.uid;
    to->pid = from.pid;
    to->session = from.session;
    to->session_generation = from.session_generation;
    to->units = from.units;
    to->slot = from.slot;
    to->round = from.round;
    to->hit_permille = from.hit_permille;
    to->from_class = from.from_class;
    to->to_class = from.to_class;
    to->claim = from.claim;
    to->id = from.id;
    to->fence = from.fence;
    to->value = from.value;
    to->holder.uid = from.holder_uid;
    to->holder.pid = from.holder_pid;
    to->holder.claim = from.holder_claim;
    to->holder.age_ns = static_cast<int64_t>(from.holder_age_ns);
    memcpy(to->cost_micros, from.cost, sizeof to->cost_micros);
    to->slot_count = from.slots_count <= DIBS_EVENT_SLOTS ? from.slots_count : 0;
    const bool of_entry =
        to->kind == DIBS_EVENT_END ? from.slots_count == 0 : to->kind > DIBS_EVENT_LOST;
    if (of_entry) memcpy(to->entry, from.entry, DIBS_NAME_MAX);
    if (!of_entry) memcpy(to->slots, from.slots, sizeof to->slots);
    memcpy(to->pool, from.pool, DIBS_NAME_MAX);
    memcpy(to->account, from.account, DIBS_NAME_MAX);
    memcpy(to->type, from.type, DIBS_NAME_MAX);
}

// True: the head says that events were lost, and the caller gets that first.
bool open_packet(dibs_events* events, dibs_event* event, bool* sound) {
    shm::EventHead head;
    *sound = events->size >= sizeof head;
    if (!*sound) return false;
    memcpy(&head, events->packet, sizeof head);
    *sound = head.magic == shm::kEventsMagic && head.version == shm::kEventVersion &&
             events->size == sizeof head + size_t{head.count} * sizeof(shm::Event);
    if (!*sound) return false;
    events->next = 0;
    events->count = head.count;
    if (head.lost == 0) return false;
    event->kind = DIBS_EVENT_LOST;
    event->value = head.lost;
    return true;
}

int next(dibs_events* events, int64_t timeout_ns, dibs_event* event) {
    const size_t size = event->size;
    memset(event, 0, sizeof *event);
    event->size = size;
    while (events->next == events->count) {
        const int found = wait_for_packet(events, timeout_ns);
        if (found <= 0) return found < 0 ? found : DIBS_ETIMEDOUT;
        bool sound = false;
        if (open_packet(events, event, &sound)) return DIBS_OK;
        if (!sound) return DIBS_EHANDSHAKE;
    }
    shm::Event told;
    memcpy(
        &told, events->packet + sizeof(shm::EventHead) + events->next++ * sizeof told, sizeof told);
    tell(told, event);
    return DIBS_OK;
}

}  // namespace
}  // namespace dibs::client

int dibs_events_open(const dibs_connect_options* options, dibs_events** opened) {
    if (opened == nullptr) return DIBS_EARGUMENT;
    *opened = nullptr;
    void* memory = dibs::client::take_marked(dibs::client::kMemory);
    if (memory == nullptr) return DIBS_ESYSTEM;
    auto* events = new (static_cast<uint8_t*>(memory) + dibs::shm::kPageSize) dibs_events;
    events->mark = static_cast<uint64_t*>(memory);
    const int code = dibs::client::subscribe(options, events);
    if (code != DIBS_OK) {
        dibs::client::give_memory_back(events);
        return code;
    }
    *opened = events;
    return DIBS_OK;
}

int dibs_events_next(dibs_events* events, int64_t timeout_ns, dibs_event* event) {
    if (events == nullptr || event == nullptr) return DIBS_EARGUMENT;
    if (event->size < sizeof *event) return DIBS_ESIZE;
    if (timeout_ns < 0) return DIBS_ENEGATIVE;
    if (dibs::client::check_mark(events) != DIBS_OK) return DIBS_EFORK;
    return dibs::client::next(events, timeout_ns, event);
}

int dibs_events_fd(dibs_events* events) {
    if (events == nullptr) return DIBS_EARGUMENT;
    const int code = dibs::client::check_mark(events);
    return code != DIBS_OK ? code : events->connection.fd();
}

int dibs_events_close(dibs_events* events) {
    if (events == nullptr) return DIBS_OK;
    const int code = dibs::client::check_mark(events);
    dibs::client::give_memory_back(events);
    return code;
}

const char* dibs_event_name(int kind) {
    return kind >= 0 && kind < kEventKinds ? dibs::client::kNames[kind] : "unknown";
}
