// tests/broker/takeover/keeper_socket_test.cpp -- what cannot leave a keeper's socket at once, and
// waits.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/keeper_socket.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

#include "broker/takeover/keeper_link.hpp"
#include "tests/process/child.hpp"
#include "tests/process/pushed.hpp"
#include "tests/process/user.hpp"

namespace {

int g_lack = 0;  // what sendmsg fails with, if it does

}  // namespace

extern "C" ssize_t __real_sendmsg(int socket, const struct msghdr* message, int flags);
extern "C" ssize_t __wrap_sendmsg(int socket, const struct msghdr* message, int flags);
ssize_t __wrap_sendmsg(int socket, const struct msghdr* message, int flags) {
    if (g_lack == 0) return __real_sendmsg(socket, message, flags);
    errno = g_lack;
    return -1;
}

namespace dibs::test {
namespace {

// A word that is lost may be the one with STATE.
TEST(KeeperSocket, WaitsForTimeWhereTheKernelLacksMemory) {
    for (const int lack : {ENOBUFS, ENOMEM}) {
        auto [near, far] = KeeperSocket::make_pair();
        KeeperSocket socket(std::move(near));
        const KeeperSocket other(std::move(far));
        g_lack = lack;
        socket.send({.row = 7});
        EXPECT_TRUE(socket.waits_for_time());
        EXPECT_FALSE(socket.waits_for_room());
        socket.flush();
        EXPECT_TRUE(socket.waits_for_time());
        g_lack = 0;
        socket.flush();
        EXPECT_FALSE(socket.waiting());
        KeeperPacket packet;
        EXPECT_EQ(other.receive(packet), KeeperSocket::Received::kPacket);
        EXPECT_EQ(packet.message.row, 7U);
    }
}

// There is none, as where one could not be started: nobody's death is waited for.
TEST(KeeperLink, RefusesNobody) {
    auto [near, far] = KeeperSocket::make_pair();
    KeeperLink link(std::move(near), OwnProgram());
    link.refuse();
    EXPECT_FALSE(link.lives());
}

TEST(KeeperSocket, WaitsForRoomWhereItsSocketIsFull) {
    auto [near, far] = KeeperSocket::make_pair();
    KeeperSocket socket(std::move(near));
    const KeeperSocket other(std::move(far));
    uint32_t sent = 0;
    for (; !socket.waiting(); ++sent)
        socket.send({.row = sent});
    EXPECT_TRUE(socket.waits_for_room());
    EXPECT_FALSE(socket.waits_for_time());
    KeeperPacket packet;
    for (uint32_t row = 0; row < sent; ++row) {
        while (other.receive(packet) != KeeperSocket::Received::kPacket)
            socket.flush();
        EXPECT_EQ(packet.message.row, row);
    }
    EXPECT_FALSE(socket.waiting());
}

// Of a user of its own, who may have 20: no other process is counted.
char wait_for_others_to_read() {
    if (geteuid() == 0) become_user(kBrokerUser, kBrokerUser);
    struct rlimit few = {};
    (void)getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = 20;
    (void)setrlimit(RLIMIT_NOFILE, &few);
    auto [unread, end] = KeeperSocket::make_pair();
    while (push(unread.get(), "x", 1, 1) == 1) {
    }
    if (errno != ETOOMANYREFS) return '1';
    auto [near, far] = KeeperSocket::make_pair();
    KeeperSocket socket(std::move(near));
    const KeeperSocket other(std::move(far));
    const int any = STDERR_FILENO;
    socket.send({.row = 7}, std::span(&any, 1));
    if (!socket.waits_for_time() || socket.waits_for_room()) return '2';
    socket.flush();
    if (!socket.waits_for_time()) return '3';
    end.reset();
    unread.reset();
    socket.flush();
    if (socket.waiting()) return '4';
    KeeperPacket packet;
    const bool there = other.receive(packet) == KeeperSocket::Received::kPacket;
    return there && packet.message.row == 7 && packet.count == 1 ? 'y' : '5';
}

TEST(KeeperSocket, WaitsForTimeWhereTooManyDescriptorsAreUnderWay) {
    const Child child([](const Child& self) { self.mark(wait_for_others_to_read()); });
    EXPECT_EQ(child.marked(), 'y');
}

}  // namespace
}  // namespace dibs::test
