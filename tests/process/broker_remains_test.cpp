// tests/process/broker_remains_test.cpp -- sessions that have ended and whose memory a client has
// not let go: they stay counted against its user.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "tests/process/dibsd.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

const std::string kTwoSessions =
    std::string(kCounted) + "[[policy]]\ndefault = true\nsessions = 2\n";
const char* const kOneEnded = "(of 1 that ended somebody still has the memory)";

void end_session(RawClient& client) {
    client.worker_word(shm::Op::kClose, 0, 0);
    (void)client.wait_end();
}

// Refused until the refusal says so: the broker's control thread hears of an end a moment after the
// client. False if somebody was let in.
bool is_refused_with(const std::string& socket, const std::string& words) {
    for (;;) {
        const RawClient late(socket);
        if (late.attached()) return false;
        if (text_of(late.farewell()).find(words) != std::string::npos) return true;
    }
}

TEST(Leftovers, CountUntilTheClientHasLetGoOfBothSegments) {
    const Folder folder;
    const Dibsd dibsd(folder, kTwoSessions);
    const RawClient one(dibsd.socket());
    for (const bool up : {true, false}) {
        std::unique_ptr<RawClient> two;
        do {  // until the control thread has heard of the last one's end
            two = std::make_unique<RawClient>(dibsd.socket());
        } while (!two->attached());
        end_session(*two);
        ASSERT_TRUE(is_refused_with(dibsd.socket(), kOneEnded));
        shm::Descriptor last(dup(up ? two->up_fd() : two->down_fd()));
        two.reset();
        EXPECT_FALSE(RawClient(dibsd.socket()).attached());
        last.reset();
        RawClient three(dibsd.socket());
        ASSERT_TRUE(three.attached());
        ASSERT_TRUE(is_refused_with(dibsd.socket(), " has 2 sessions, as many"));
        end_session(three);
    }
}

// Whatever is open for nothing, in a way that the kernel does not count, has no pages.
TEST(Leftovers, OfANameAloneAreNothing) {
    const Folder folder;
    const Dibsd dibsd(folder, kTwoSessions);
    const RawClient one(dibsd.socket());
    auto two = std::make_unique<RawClient>(dibsd.socket());
    ASSERT_TRUE(two->attached());
    const std::string path = "/proc/self/fd/" + std::to_string(two->up_fd());
    const shm::Descriptor name(open(path.c_str(), O_PATH | O_CLOEXEC));
    ASSERT_TRUE(name.valid());
    end_session(*two);
    ASSERT_TRUE(is_refused_with(dibsd.socket(), kOneEnded));
    two.reset();
    const RawClient three(dibsd.socket());
    EXPECT_TRUE(three.attached());
    struct stat about = {};
    ASSERT_EQ(fstat(name.get(), &about), 0);
    EXPECT_EQ(about.st_blocks, 0);
}

// What lies in a socket that nobody reads is descriptors of the broker's that are under way.
TEST(Leftovers, AreThoseOfAWelcomeThatNobodyReads) {
    const Folder folder;
    const Dibsd dibsd(folder, kTwoSessions);
    const RawClient one(dibsd.socket());
    shm::Descriptor unread(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const pid_t client = fork();
    if (client == 0) {  // the session is this process's, its socket everybody's
        struct sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        dibsd.socket().copy(address.sun_path, sizeof(address.sun_path) - 1);
        const shm::Hello hello;
        struct pollfd welcome = {unread.get(), POLLIN, 0};
        const bool asked = connect(unread.get(),
                                   reinterpret_cast<const struct sockaddr*>(&address),
                                   sizeof(address)) == 0 &&
                           send(unread.get(), &hello, sizeof(hello), 0) > 0;
        _exit(asked && poll(&welcome, 1, -1) == 1 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(client, &status, 0), client);
    ASSERT_EQ(status, 0);
    ASSERT_TRUE(is_refused_with(dibsd.socket(), kOneEnded));
    unread.reset();
    const RawClient three(dibsd.socket());
    EXPECT_TRUE(three.attached());
}

// The next broker, and the one after a new keeper, know of them.
TEST(Leftovers, OutliveBrokerAndKeeper) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kTwoSessions);
    const RawClient one(dibsd.socket());
    auto two = std::make_unique<RawClient>(dibsd.socket());
    ASSERT_TRUE(two->attached());
    end_session(*two);
    ASSERT_TRUE(is_refused_with(dibsd.socket(), kOneEnded));
    dibsd.kill_broker();
    await_epoch(one, 2);
    ASSERT_TRUE(is_refused_with(dibsd.socket(), kOneEnded));
    const pid_t keeper = dibsd.keeper();
    dibsd.kill_keeper();
    (void)dibsd.keeper(keeper);
    ASSERT_TRUE(is_refused_with(dibsd.socket(), kOneEnded));  // the new one has all by now
    dibsd.kill_broker();
    await_epoch(one, 3);
    ASSERT_TRUE(is_refused_with(dibsd.socket(), kOneEnded));
    two.reset();
    const RawClient three(dibsd.socket());
    EXPECT_TRUE(three.attached());
}

}  // namespace
}  // namespace dibs::test
