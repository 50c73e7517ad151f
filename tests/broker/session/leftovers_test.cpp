// tests/broker/session/leftovers_test.cpp -- what clients keep of sessions that have ended: who has
// it, and when that is looked at again.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/leftovers.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "broker/broker.hpp"
#include "broker/session/session.hpp"
#include "broker/takeover/inheritance.hpp"
#include "broker/takeover/keeper_child.hpp"
#include "shm/layout.hpp"
#include "shm/memfd.hpp"
#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/pushed.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

constexpr uint64_t kSize = 65536;
constexpr uint64_t kMs = 1'000'000;

long pages_of(int fd) {
    struct stat about = {};
    EXPECT_EQ(fstat(fd, &about), 0);
    return about.st_blocks / 8;
}

TEST(TakeBack, TakesThePagesOfWhatNobodyHas) {
    const shm::Descriptor memfd = shm::make_memfd("it", kSize);
    const shm::Descriptor stored(fcntl(memfd.get(), F_DUPFD_CLOEXEC, 0));  // a keeper's, say
    EXPECT_EQ(pages_of(memfd.get()), 16);
    EXPECT_EQ(take_back(memfd.get()), Holders::kNone);
    EXPECT_EQ(pages_of(memfd.get()), 0);
    EXPECT_EQ(take_back(memfd.get()), Holders::kNone);
    EXPECT_EQ(fcntl(memfd.get(), F_GETLEASE), F_UNLCK);
}

TEST(TakeBack, LeavesWhatSomebodyHasInWhateverWay) {
    const shm::Descriptor memfd = shm::make_memfd("it", kSize);
    for (const bool writable : {false, true}) {
        shm::Descriptor given =
            writable ? shm::reopen_for_writing(memfd.get()) : shm::reopen_read_only(memfd.get());
        EXPECT_EQ(take_back(memfd.get()), Holders::kSome);
        void* mapped = mmap(nullptr, kSize, PROT_READ, MAP_SHARED, given.get(), 0);
        ASSERT_NE(mapped, MAP_FAILED);
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        const shm::Descriptor near(ends[0]);
        shm::Descriptor far(ends[1]);
        ASSERT_EQ(push(near.get(), "x", 1, 1, given.get()), 1);
        given.reset();
        EXPECT_EQ(take_back(memfd.get()), Holders::kSome);
        ASSERT_EQ(munmap(mapped, kSize), 0);
        EXPECT_EQ(take_back(memfd.get()), Holders::kSome);  // under way in the socket
        EXPECT_EQ(pages_of(memfd.get()), 16);
        far.reset();
        EXPECT_EQ(take_back(memfd.get()), Holders::kNone);
        ASSERT_EQ(fallocate(memfd.get(), 0, 0, kSize), 0);
    }
}

// A descriptor for nothing is not seen; but it has no pages left.
TEST(TakeBack, LeavesNothingToADescriptorThatWasOpenedForNothing) {
    const shm::Descriptor memfd = shm::make_memfd("it", kSize);
    const std::string path = "/proc/self/fd/" + std::to_string(memfd.get());
    const shm::Descriptor name(open(path.c_str(), O_PATH | O_CLOEXEC));
    ASSERT_TRUE(name.valid());
    EXPECT_EQ(take_back(memfd.get()), Holders::kNone);
    EXPECT_EQ(pages_of(name.get()), 0);
}

TEST(TakeBack, IsKnownToWorkHere) {
    const TakeBack way = way_to_take_back();
    const shm::Descriptor memfd = shm::make_memfd("it", kSize);
    EXPECT_EQ(way(memfd.get()), Holders::kNone);
}

// With room for the look's own segment and no more it would seem that somebody has it.
TEST(TakeBack, IsFoundOutOnceThereAreDescriptors) {
    constexpr rlim_t kFew = 256;
    const shm::Descriptor memfd = shm::make_memfd("it", kSize);
    // The sanitizer looks at a class once, and needs a descriptor for it.
    EXPECT_NE(std::string(std::system_error(EMFILE, std::generic_category(), "x").what()), "");
    struct rlimit old = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    const struct rlimit small = {std::min(kFew, old.rlim_cur), old.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
    std::vector<shm::Descriptor> all;
    for (;;) {
        shm::Descriptor copy(fcntl(memfd.get(), F_DUPFD_CLOEXEC, 0));
        if (!copy.valid()) break;
        all.push_back(std::move(copy));
    }
    EXPECT_FALSE(all.empty());
    all.pop_back();
    TakeBack way = way_to_take_back();
    const Holders with_one_left = way(memfd.get());
    all.clear();
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    EXPECT_EQ(with_one_left, Holders::kSome);
    EXPECT_EQ(way(memfd.get()), Holders::kNone);
}

class LeftoversTest : public testing::Test {
  protected:
    // Of a user, whose UP and DOWN are one here.
    void keep(uint32_t uid, uint64_t now_ns, shm::Descriptor process = {}) {
        Leftover leftover{.number = leftovers_.new_number(),
                          .uid = uid,
                          .memory = kSize,
                          .up = shm::make_memfd("up", 4096),
                          .down = shm::make_memfd("down", 4096),
                          .process = std::move(process)};
        uid_of_[leftover.up.get()] = uid;
        leftovers_.keep(std::move(leftover), now_ns);
    }

    Holders holders_ = Holders::kSome;
    std::map<int, Holders> segment_holders_;  // else holders_
    std::map<int, uint32_t> uid_of_;          // by UP
    std::vector<uint32_t> looked_;            // at whose
    std::vector<uint32_t> gone_;
    Leftovers leftovers_{[this](int fd) {
                             if (uid_of_.count(fd) != 0) looked_.push_back(uid_of_[fd]);
                             const auto its_own = segment_holders_.find(fd);
                             return its_own != segment_holders_.end() ? its_own->second : holders_;
                         },
                         [this](const Leftover& leftover) { gone_.push_back(leftover.uid); }};
};

TEST_F(LeftoversTest, AreLookedAtAgainAfterTwiceAsLongUpToAMinute) {
    EXPECT_EQ(leftovers_.next_due(), shm::kNever);
    keep(5, 0);
    uint64_t now = 0;
    for (const uint64_t pause : std::vector<uint64_t>{
             50, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200, 60000, 60000}) {
        EXPECT_EQ(leftovers_.next_due(), now + pause * kMs);
        const size_t looks = looked_.size();
        leftovers_.look_due(now + pause * kMs - 1);
        EXPECT_EQ(looked_.size(), looks);
        now += pause * kMs;
        leftovers_.look_due(now);
        EXPECT_EQ(looked_.size(), looks + 1);
    }
    holders_ = Holders::kNone;
    leftovers_.look_due(now + 60000 * kMs);
    EXPECT_EQ(gone_, std::vector<uint32_t>{5});
    EXPECT_EQ(leftovers_.size(), 0U);
    EXPECT_EQ(leftovers_.next_due(), shm::kNever);
}

TEST_F(LeftoversTest, OfAUserAreLookedAtWhenItIsRefusedSomeAtATime) {
    for (int i = 0; i < 20; ++i)
        keep(5, 0);
    keep(6, 0);
    EXPECT_FALSE(leftovers_.look(5, 0));
    EXPECT_EQ(looked_, std::vector<uint32_t>(16, 5));
    holders_ = Holders::kNone;
    EXPECT_TRUE(leftovers_.look(6, 0));
    EXPECT_EQ(gone_, std::vector<uint32_t>{6});
    EXPECT_TRUE(leftovers_.look(5, 0));
    EXPECT_EQ(gone_.size(), 17U);
    EXPECT_TRUE(leftovers_.look(std::nullopt, 0));
    EXPECT_EQ(gone_.size(), 21U);
    EXPECT_FALSE(leftovers_.look(std::nullopt, 0));
}

TEST_F(LeftoversTest, ThatWereLookedAtComeBehindTheOthers) {
    for (int i = 0; i < 16; ++i)
        keep(5, 0);
    keep(6, 0);
    EXPECT_FALSE(leftovers_.look(std::nullopt, 0));
    looked_.clear();
    EXPECT_FALSE(leftovers_.look(std::nullopt, 0));
    EXPECT_EQ(looked_.front(), 6U);
}

// Whoever is refused in a loop does not keep the broker looking.
TEST_F(LeftoversTest, AreNotLookedAtForEachRefusal) {
    keep(5, 0);
    for (int i = 0; i < 100; ++i)
        EXPECT_FALSE(leftovers_.look(5, 0));
    EXPECT_EQ(looked_.size(), 8U);
    uint64_t now = kMs;
    EXPECT_FALSE(leftovers_.look(5, now - 1));
    EXPECT_EQ(looked_.size(), 8U);
    for (const uint64_t pause : {2U, 4U, 8U, 16U, 32U, 64U, 128U, 256U, 256U, 256U}) {
        const size_t looks = looked_.size();
        EXPECT_FALSE(leftovers_.look(std::nullopt, now));
        EXPECT_FALSE(leftovers_.look(5, now + pause * kMs - 1));
        EXPECT_EQ(looked_.size(), looks + 1);
        now += pause * kMs;
    }
    holders_ = Holders::kNone;
    EXPECT_TRUE(leftovers_.look(5, now));
}

TEST_F(LeftoversTest, HaveNumbersBehindTheInherited) {
    Leftover inherited{.number = 700, .uid = 5};
    leftovers_.keep(std::move(inherited), 0);
    EXPECT_EQ(leftovers_.new_number(), 701U);
}

// UP is not looked at again once nobody has it.
TEST_F(LeftoversTest, WaitForDownAlone) {
    keep(5, 0);
    const int up = uid_of_.begin()->first;
    segment_holders_[up] = Holders::kNone;
    EXPECT_FALSE(leftovers_.look(5, 0));
    segment_holders_[up] = Holders::kSome;
    holders_ = Holders::kNone;
    EXPECT_TRUE(leftovers_.look(5, 0));
    EXPECT_EQ(looked_.size(), 1U);
}

TEST_F(LeftoversTest, GoWithTheProcessWhereTheKernelDoesNotSay) {
    holders_ = Holders::kUnknown;
    Child client([](const Child&) {});
    ASSERT_EQ(client.marked(), 'e');
    keep(5, 0, shm::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, client.pid(), 0))));
    EXPECT_FALSE(leftovers_.look(5, 0));
    client.kill();
    EXPECT_TRUE(leftovers_.look(5, 0));
    EXPECT_EQ(gone_, std::vector<uint32_t>{5});
}

// The broker died when the turn was committed, before its other thread had heard of the end.
TEST(Inherited, SessionsThatHadJustEndedAreCounted) {
    const Folder folder;
    Config config =
        parse_config(std::string(kCounted) + "[[policy]]\ndefault = true\nsessions = 1\n", "test")
            .config;
    config.socket = folder.path() + "/dibs.sock";
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const shm::Descriptor client(ends[0]);
    Session ended({}, {});
    shm::Descriptor given = shm::reopen_for_writing(ended.up_fd.get());
    Inheritance inheritance;
    InheritedSession& left = inheritance.sessions.emplace_back();
    left.row = 3;  // in no row of STATE
    left.at(SessionDescriptor::kUp) = std::move(ended.up_fd);
    left.at(SessionDescriptor::kDown) = std::move(ended.down_fd);
    left.at(SessionDescriptor::kEvents) = std::move(ended.event_socket);
    left.at(SessionDescriptor::kProcess) = Process::own_pidfd();
    left.at(SessionDescriptor::kSocket) = shm::Descriptor(ends[1]);
    Broker broker(std::move(config), inheritance, nullptr, false);
    std::thread serving([&] { broker.run(); });
    const RawClient refused(broker.socket_path());
    EXPECT_EQ(text_of(refused.farewell()),
              "user " + std::to_string(geteuid()) +
                  " has 1 sessions (of 1 that ended somebody still has the memory), as many as its "
                  "policy allows");
    given.reset();
    EXPECT_TRUE(RawClient(broker.socket_path()).attached());
    broker.stop();
    broker.stop();
    serving.join();
}

}  // namespace
}  // namespace dibs::test
