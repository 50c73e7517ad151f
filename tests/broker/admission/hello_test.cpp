// tests/broker/admission/hello_test.cpp -- packets that should be a Hello.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "broker/admission/client_socket.hpp"
#include "broker/admission/handshake.hpp"
#include "broker/admission/peer.hpp"
#include "tests/process/pushed.hpp"

namespace dibs {
namespace {

using shm::FarewellCode;

std::optional<Refusal> check(const shm::Hello& hello, size_t size = sizeof(shm::Hello)) {
    std::array<std::byte, 64> packet = {};
    std::memcpy(packet.data(), &hello, sizeof(hello));
    shm::SessionSizes sizes;
    bool has_tree = false;
    return check_hello({packet.data(), size}, &sizes, &has_tree);
}

TEST(Hello, IsGoodWithDefaults) {
    EXPECT_FALSE(check({}));
}

TEST(Hello, IsRefusedAtEveryOtherSize) {
    for (size_t size = 0; size <= 64; ++size)
        EXPECT_EQ(check({}, size).has_value(), size != sizeof(shm::Hello)) << size;
}

TEST(Hello, IsToldTheVersionsEvenWhenItsSizeIsAnotherLayouts) {
    shm::Hello hello;
    hello.layout_version = 2;
    const auto refusal = check(hello, 64);
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code, FarewellCode::kVersion);
    EXPECT_EQ(refusal->client_layout, 2U);
}

TEST(Hello, IsRefusedWithFlagsOrSizesOutOfRange) {
    shm::Hello hello;
    hello.flags = 2;
    EXPECT_EQ(check(hello)->code, FarewellCode::kMalformed);
    hello = {};
    hello.completion_entries = 128;  // less than twice the submission ring
    EXPECT_EQ(check(hello)->code, FarewellCode::kSizes);
    hello = {};
    hello.up_payload = 0x80000000U;
    EXPECT_EQ(check(hello)->code, FarewellCode::kSizes);
    hello = {};
    hello.tags = 2048;
    EXPECT_EQ(check(hello)->code, FarewellCode::kSizes);
}

// As when a client connects and speaks before the broker looks, which then lets it not in.
TEST(Farewell, ReachesAClientWhosePacketsNobodyHasRead) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const shm::Hello hello;
    for (const size_t size : {sizeof(hello), size_t{0}, size_t{0}, sizeof(hello)})
        ASSERT_EQ(send(ends[0], &hello, size, 0), static_cast<ssize_t>(size));
    send_farewell(ends[1], {FarewellCode::kLimit, 0, "too often"});
    EXPECT_EQ(send(ends[0], &hello, sizeof(hello), MSG_NOSIGNAL), -1);
    EXPECT_EQ(errno, EPIPE);
    ASSERT_EQ(close(ends[1]), 0);
    shm::Farewell farewell;
    ASSERT_EQ(recv(ends[0], &farewell, sizeof(farewell), 0),
              static_cast<ssize_t>(sizeof(farewell)));
    EXPECT_EQ(farewell.code, FarewellCode::kLimit);
    ASSERT_EQ(close(ends[0]), 0);
}

// A client that goes and leaves something unread resets the connection, which is said before what
// it has sent.
TEST(ClientSocket, SeesDescriptorsBehindAReset) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const ClientSocket near{shm::Descriptor(ends[1])};
    ASSERT_EQ(send(near.get(), "x", 1, 0), 1);
    ASSERT_EQ(send(ends[0], "plain", 5, 0), 5);
    ASSERT_EQ(test::push(ends[0], "x", 1, 1), 1);
    ASSERT_EQ(close(ends[0]), 0);
    EXPECT_EQ(next_packet(near.get()), Packet::kPlain);
    EXPECT_FALSE(end_reading(near.get()));
    EXPECT_EQ(next_packet(near.get()), Packet::kDescriptors);
}

size_t listed(const char* folder) {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// Each would keep whoever closes it last waiting for an hour.
TEST(ClientSocket, EndsWithConnectionsThatLinger) {
    std::vector<test::Lingering> kept(8);
    const size_t threads = listed("/proc/self/task");
    const size_t descriptors = listed("/proc/self/fd");
    for (test::Lingering& one : kept) {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        const ClientSocket near{shm::Descriptor(ends[1])};
        const shm::Descriptor far(ends[0]);
        ASSERT_TRUE(one.push_to(far.get(), "x", 1));
    }
    while (listed("/proc/self/fd") > descriptors - kept.size() ||
           listed("/proc/self/task") > threads + 1)
        sched_yield();
}

TEST(Peer, StartTimeTellsAProcessFromNone) {
    EXPECT_NE(process_start_time(static_cast<uint32_t>(getpid())), 0U);
    EXPECT_EQ(process_start_time(0x7ffffffeU), 0U);
}

// Two ends of a connection, and what the kernel said of the far one when it was made.
struct Connection {
    Connection() {
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        credentials = *peer_credentials(ends[1], &why);
        credentials.start_time = process_start_time(credentials.pid);
    }
    ~Connection() {
        close(ends[1]);
        if (ends[0] >= 0) close(ends[0]);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    int ends[2];
    std::string why;
    Credentials credentials;
};

TEST(Peer, IsFoundByItsPidWhileItIsConnected) {
    Connection connection;
    const auto peer =
        identify_peer(connection.ends[1], connection.credentials, false, &connection.why);
    ASSERT_TRUE(peer) << connection.why;
    EXPECT_EQ(peer->pid, static_cast<uint32_t>(getpid()));
    EXPECT_TRUE(peer->killable);
}

TEST(Peer, IsFoundByTheHandleThatTheKernelGives) {
    if (!gives_peer_pidfd()) GTEST_SKIP() << "no SO_PEERPIDFD (Linux 6.5 has it)";
    Connection connection;
    const auto peer =
        identify_peer(connection.ends[1], connection.credentials, true, &connection.why);
    ASSERT_TRUE(peer) << connection.why;
    EXPECT_EQ(peer->start_time, process_start_time(peer->pid));
}

// Linux 6.5 to 6.15 refuse the handle of a process that has been waited for; a pipe, which has no
// peer, is refused anywhere.
TEST(Peer, IsNotLookedForByItsPidWhereTheKernelRefusesItsHandle) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const shm::Descriptor reading(ends[0]);
    const shm::Descriptor writing(ends[1]);
    Connection connection;
    EXPECT_FALSE(identify_peer(writing.get(), connection.credentials, true, &connection.why));
    EXPECT_TRUE(identify_peer(writing.get(), connection.credentials, false, &connection.why));
}

// It has the pid of the credentials, and began after the caller was let in.
TEST(Peer, IsNotTakenForWhoHasBegunWithItsPidSince) {
    Connection connection;
    connection.credentials.start_time -= 1;
    EXPECT_FALSE(identify_peer(connection.ends[1], connection.credentials, false, &connection.why));
}

// Its pid names a living process all the same: another one by now, for all that is known.
TEST(Peer, IsNotTakenForWhoHasItsPidOnceItHasHungUp) {
    Connection connection;
    ASSERT_EQ(close(connection.ends[0]), 0);
    connection.ends[0] = -1;
    EXPECT_FALSE(identify_peer(connection.ends[1], connection.credentials, false, &connection.why));
    EXPECT_EQ(connection.why,
              "process " + std::to_string(getpid()) +
                  " cannot be watched: it is gone, or not in sight of this broker");
}

}  // namespace
}  // namespace dibs
