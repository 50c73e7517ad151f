// tests/broker/admin/subscriber_test.cpp -- what a subscriber sees, and that one which does not
// read is told how much it has missed.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/subscriber.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "shm/descriptor.hpp"

namespace dibs {
namespace {

constexpr uint32_t kAlice = 1001;
constexpr uint32_t kBob = 1002;

shm::Event event(uint64_t number, uint32_t uid) {
    shm::Event made = {};
    made.number = number;
    made.time_ns = 5000;
    made.kind = shm::EventKind::kGrant;
    made.uid = uid;
    made.pid = 77;
    made.claim = 12;
    made.fence = 3;
    std::strcpy(made.pool, "gpu");
    std::strcpy(made.account, "team");
    return made;
}

struct Packet {
    shm::EventHead head = {};
    std::vector<shm::Event> events;
};

class Wire {
  public:
    Wire() {
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
        near_ = shm::Descriptor(ends[0]);
        far_ = shm::Descriptor(ends[1]);
    }
    [[nodiscard]] int fd() const { return near_.get(); }
    void hang_up() { far_.reset(); }
    std::optional<Packet> read() {
        std::vector<uint8_t> bytes(65536);
        const ssize_t size = recv(far_.get(), bytes.data(), bytes.size(), 0);
        if (size <= 0) return std::nullopt;
        Packet packet;
        std::memcpy(&packet.head, bytes.data(), sizeof(packet.head));
        EXPECT_EQ(static_cast<size_t>(size),
                  sizeof(packet.head) + packet.head.count * sizeof(shm::Event));
        const auto* events =
            reinterpret_cast<const shm::Event*>(bytes.data() + sizeof(packet.head));
        packet.events.assign(events, events + packet.head.count);
        return packet;
    }

  private:
    shm::Descriptor near_;
    shm::Descriptor far_;
};

TEST(Subscriber, SeesItsOwnEventsWholeAndOfOthersWhatAndWhen) {
    Wire wire;
    Subscriber alice(kAlice, false);
    const std::vector<shm::Event> events = {event(1, kAlice), event(2, kBob)};
    alice.tell(events, 0);
    ASSERT_TRUE(alice.flush(wire.fd()));
    const std::optional<Packet> packet = wire.read();
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->head.magic, shm::kEventsMagic);
    EXPECT_EQ(packet->head.lost, 0U);
    ASSERT_EQ(packet->head.count, 2U);
    EXPECT_EQ(packet->events[0].flags, shm::EventFlag::kFull);
    EXPECT_EQ(packet->events[0].claim, 12U);
    const shm::Event& other = packet->events[1];
    EXPECT_EQ(other.flags, 0);
    EXPECT_EQ(other.number, 2U);
    EXPECT_EQ(other.time_ns, 5000U);
    EXPECT_EQ(other.kind, shm::EventKind::kGrant);
    EXPECT_STREQ(other.pool, "gpu");
    EXPECT_STREQ(other.account, "team");
    EXPECT_EQ(other.claim, 0U);
    EXPECT_EQ(other.fence, 0U);
    EXPECT_EQ(other.pid, 0U);
    EXPECT_EQ(other.uid, shm::kNoRow);
}

// A claim of its own that found all slots taken names who holds one.
TEST(Subscriber, DoesNotSeeInItsOwnEventsWhoElseHoldsALease) {
    const auto with_holder = [](uint32_t holder) {
        shm::Event made = event(1, kAlice);
        made.holder_uid = holder;
        made.holder_pid = 88;
        made.holder_claim = 9;
        made.holder_age_ns = 7000;
        return made;
    };
    const std::vector<shm::Event> events = {with_holder(kBob), with_holder(kAlice)};
    for (const bool is_admin : {false, true}) {
        Wire wire;
        Subscriber alice(kAlice, is_admin);
        alice.tell(events, 0);
        ASSERT_TRUE(alice.flush(wire.fd()));
        const std::optional<Packet> packet = wire.read();
        ASSERT_TRUE(packet);
        const shm::Event& other = packet->events[0];
        EXPECT_EQ(other.flags, shm::EventFlag::kFull);
        EXPECT_EQ(other.claim, 12U);
        EXPECT_EQ(other.holder_age_ns, 7000U);
        EXPECT_EQ(other.holder_uid, is_admin ? kBob : shm::kNoRow);
        EXPECT_EQ(other.holder_pid, is_admin ? 88U : 0U);
        EXPECT_EQ(other.holder_claim, is_admin ? 9U : 0U);
        EXPECT_EQ(packet->events[1].holder_uid, kAlice);
        EXPECT_EQ(packet->events[1].holder_pid, 88U);
        EXPECT_EQ(packet->events[1].holder_claim, 9U);
    }
}

TEST(Subscriber, SeesEverythingAsAnAdministrator) {
    Wire wire;
    Subscriber root(0, true);
    const std::vector<shm::Event> events = {event(1, kAlice)};
    root.tell(events, 0);
    ASSERT_TRUE(root.flush(wire.fd()));
    EXPECT_EQ(wire.read()->events[0].claim, 12U);
}

TEST(Subscriber, SeesTheCountersOfPoolsWhoeverItIs) {
    Wire wire;
    Subscriber alice(kAlice, false);
    std::vector<shm::Event> events = {event(1, shm::kNoRow)};
    events[0].kind = shm::EventKind::kDemand;
    events[0].value = 4;
    alice.tell(events, 0);
    ASSERT_TRUE(alice.flush(wire.fd()));
    EXPECT_EQ(wire.read()->events[0].value, 4U);
}

TEST(Subscriber, IsToldWhatWasLostBeforeItHeard) {
    Wire wire;
    Subscriber root(0, true);
    const std::vector<shm::Event> events = {event(8, kAlice)};
    root.tell(events, 7);
    ASSERT_TRUE(root.flush(wire.fd()));
    EXPECT_EQ(wire.read()->head.lost, 7U);
}

// Nothing is read, so the socket and then the queue fill up; every event after that is counted.
TEST(Subscriber, CountsWhatItDoesNotReadAndIsToldAsSoonAsItDoes) {
    Wire wire;
    Subscriber root(0, true);
    constexpr uint64_t kTold = 200000;
    for (uint64_t number = 1; number <= kTold; number += 100) {
        std::vector<shm::Event> events;
        for (uint64_t at = number; at < number + 100; ++at)
            events.push_back(event(at, kAlice));
        root.tell(events, 0);
        ASSERT_TRUE(root.flush(wire.fd()));
    }
    EXPECT_TRUE(root.waiting());
    uint64_t read = 0;
    uint64_t lost = 0;
    while (root.waiting()) {
        while (const std::optional<Packet> packet = wire.read()) {
            read += packet->head.count;
            lost += packet->head.lost;
        }
        ASSERT_TRUE(root.flush(wire.fd()));
    }
    while (const std::optional<Packet> packet = wire.read()) {
        read += packet->head.count;
        lost += packet->head.lost;
    }
    EXPECT_EQ(read + lost, kTold);
    EXPECT_GE(read, uint64_t{100} * Subscriber::kPackets);
    EXPECT_GT(lost, 0U);
}

TEST(Subscriber, IsGoneWhenItHangsUp) {
    Wire wire;
    Subscriber root(0, true);
    wire.hang_up();
    const std::vector<shm::Event> events = {event(1, kAlice)};
    root.tell(events, 0);
    EXPECT_FALSE(root.flush(wire.fd()));
}

}  // namespace
}  // namespace dibs
