// tests/process/broker_handshake_test.cpp -- dibsd and those who connect, well or badly.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/pushed.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/user.hpp"

namespace dibs::test {
namespace {

using shm::FarewellCode;

TEST(Handshake, NamesBothVersionsWhenTheyDiffer) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    shm::Hello hello;
    hello.layout_version = 9;
    const RawClient client(dibsd.socket(), hello);
    EXPECT_FALSE(client.attached());
    EXPECT_EQ(client.farewell().code, FarewellCode::kVersion);
    EXPECT_EQ(client.farewell().client_layout, 9U);
    EXPECT_EQ(client.farewell().broker_layout, 1U);
    EXPECT_EQ(text_of(client.farewell()),
              "the client speaks layout 9, this broker layout 1: one of the two must be brought up "
              "to date");
}

TEST(Handshake, RefusesHalfAHello) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    const shm::Descriptor socket = connect_to(dibsd.socket());
    const shm::Hello hello;
    ASSERT_EQ(send(socket.get(), &hello, 20, 0), 20);
    const Answer answer = receive_answer(socket.get());
    ASSERT_TRUE(answer.farewell);
    EXPECT_EQ(answer.farewell->code, FarewellCode::kMalformed);
    EXPECT_EQ(text_of(*answer.farewell), "a Hello has 40 bytes, this one 20");
}

TEST(Handshake, DropsWhoSaysNothingAfterOneSecond) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    const shm::Descriptor silent = connect_to(dibsd.socket());
    const Answer answer = receive_answer(silent.get());
    ASSERT_TRUE(answer.farewell);
    EXPECT_EQ(text_of(*answer.farewell), "no Hello within one second");
}

TEST(Handshake, RefusesSizesThatAreNoPowersOfTwo) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    shm::Hello hello;
    hello.tags = 100;
    const RawClient client(dibsd.socket(), hello);
    EXPECT_EQ(client.farewell().code, FarewellCode::kSizes);
}

TEST(Handshake, RefusesDescriptorsThatArePushed) {
    const Folder folder;
    // Kernels before 6.16 let them in.
    const Dibsd dibsd(folder, std::string("hardening = \"off\"\n") + kCounted);
    const shm::Descriptor socket = connect_to(dibsd.socket());
    const shm::Hello hello;
    ASSERT_EQ(push(socket.get(), &hello, sizeof(hello), 1), static_cast<ssize_t>(sizeof(hello)));
    const Answer answer = receive_answer(socket.get());
    ASSERT_TRUE(answer.farewell);
    EXPECT_EQ(text_of(*answer.farewell), "a client passes no descriptors; these have been dropped");
}

TEST(Handshake, TakesNothingMoreOnTheSocketAfterTheWelcome) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1);  // once it is answered, the control thread has long been done
    ASSERT_TRUE(client.wait());
    while (send(client.socket(), "x", 1, MSG_NOSIGNAL) >= 0)
        sched_yield();
    EXPECT_EQ(errno, EPIPE);
}

TEST(Handshake, ServesAGoodClientWhileHundredsSayNothing) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    std::vector<shm::Descriptor> silent;
    for (int i = 0; i < 600; ++i) {
        silent.push_back(connect_to(dibsd.socket()));
        ASSERT_TRUE(silent.back().valid());
    }
    RawClient client(dibsd.socket());
    EXPECT_TRUE(client.attached());
}

TEST(Handshake, EndsASessionThatDoesNotWaitForItsWelcome) {
    const Folder folder;
    const Dibsd dibsd(folder, std::string("[limits]\nsessions = 1\n") + kCounted);
    for (int i = 0; i < 20; ++i) {
        const shm::Descriptor hasty = connect_to(dibsd.socket());
        const shm::Hello hello;
        ASSERT_EQ(shutdown(hasty.get(), SHUT_RD), 0);  // no Welcome can reach it any more
        (void)send(hasty.get(), &hello, sizeof(hello), MSG_NOSIGNAL);
    }
    // Its row is free again, though its process lives on.
    for (bool attached = false; !attached;) {
        const RawClient client(dibsd.socket());
        attached = client.attached();
    }
}

TEST(Handshake, WatchesAClientThroughItsPidOnOlderKernels) {
    const Folder folder;
    const Dibsd dibsd(folder, std::string("peer_pidfd = false\n") + kCounted);
    RawClient client(dibsd.socket());
    EXPECT_TRUE(client.attached());
}

TEST(Handshake, RefusesASessionBeyondTheConfiguredRows) {
    const Folder folder;
    const Dibsd dibsd(folder, std::string("[limits]\nsessions = 1\n") + kCounted);
    const RawClient first(dibsd.socket());
    EXPECT_TRUE(first.attached());
    const RawClient second(dibsd.socket());
    EXPECT_FALSE(second.attached());
    EXPECT_EQ(second.farewell().code, FarewellCode::kFull);
}

TEST(Segments, OfTheBrokerCannotBeWrittenByAClient) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    const RawClient client(dibsd.socket());
    for (const int fd : {client.down_fd(), client.board_fd()}) {
        EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
        EXPECT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
        EXPECT_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
        EXPECT_NE(ftruncate(fd, 0), 0);
    }
}

// The errno of opening a descriptor of this process once more, to read and write; 0 if it opens.
int reopened_to_write(int fd) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const shm::Descriptor again(open(path.c_str(), O_RDWR | O_CLOEXEC));
    return again.valid() ? 0 : errno;
}

TEST(Segments, OfTheBrokerCannotBeOpenedForWritingByAnotherUser) {
    DIBS_NEEDS_ROOT();
    const Folder folder;
    open_folder(folder.path());
    const Dibsd dibsd(folder, std::string("socket_mode = \"0666\"\n") + kCounted);
    Child nobody([&](const Child& self) {
        become_user(65534, 65534);
        const RawClient client(dibsd.socket());
        self.mark(client.attached() ? 'a' : '-');
        // What is not forbidden to him does open: it is not /proc that refuses.
        const shm::Descriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
        self.mark(reopened_to_write(null.get()) == 0 ? 'o' : 'x');
        for (const int fd : {client.down_fd(), client.board_fd()})
            self.mark(reopened_to_write(fd) == EACCES ? 'n' : 'w');
    });
    std::string marks;
    for (int i = 0; i < 4; ++i)
        marks += nobody.marked();
    EXPECT_EQ(marks, "aonn");
    // The broker's own user may: so its successor can map them again.
    const RawClient own(dibsd.socket());
    EXPECT_EQ(reopened_to_write(own.down_fd()), 0);
    EXPECT_EQ(reopened_to_write(own.board_fd()), 0);
}

TEST(Segments, OfTheClientAndOfTheStateAreSealedAndItsUsersAlone) {
    const Folder folder;
    const shm::Descriptor state(memfd_create("state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_TRUE(state.valid());
    const Dibsd dibsd(folder, kCounted, state.get());
    ASSERT_TRUE(dibsd.ready());
    const RawClient client(dibsd.socket());
    ASSERT_TRUE(client.attached());
    for (const int fd : {client.up_fd(), state.get()}) {
        // Writing is not sealed: the client writes UP, the next broker STATE.
        EXPECT_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
        EXPECT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
        struct stat about = {};
        ASSERT_EQ(fstat(fd, &about), 0);
        EXPECT_EQ(about.st_mode & 0777U, 0600U);
        EXPECT_GT(about.st_size, 0);
        EXPECT_NE(ftruncate(fd, 0), 0);
        EXPECT_NE(ftruncate(fd, about.st_size + 4096), 0);
        EXPECT_NE(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    }
}

TEST(Segments, OfADefaultSessionFitInto192KiB) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    const RawClient client(dibsd.socket());
    EXPECT_LE(client.welcome().up_size + client.welcome().down_size, 192U * 1024);
}

}  // namespace
}  // namespace dibs::test
