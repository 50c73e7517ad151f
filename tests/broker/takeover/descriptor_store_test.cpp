// tests/broker/takeover/descriptor_store_test.cpp -- what a service manager is told of our
// descriptors, how they are called, and what is taken back from it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/descriptor_store.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "broker/config/config.hpp"
#include "broker/takeover/descriptor_store.hpp"
#include "broker/takeover/keeper_child.hpp"
#include "broker/turn/clock.hpp"
#include "shm/layout.hpp"
#include "shm/memfd.hpp"
#include "tests/process/dibsd.hpp"

namespace dibs {
namespace {

using What = DescriptorName::What;
using Words = std::vector<std::string>;

constexpr uint64_t kPause = DescriptorStore::kPauseNs;

ino_t inode_of(int fd) {
    struct stat about = {};
    return fstat(fd, &about) == 0 ? about.st_ino : 0;
}

DescriptorName session(uint32_t row, uint32_t generation = 1) {
    return {What::kSession, row, generation};
}

TEST(DescriptorNameTest, IsReadAsItIsWritten) {
    for (const char* text :
         {"state", "board", "listener", "config", "broker.4711", "s.0.1", "s.3ff.ffffffff"})
        EXPECT_EQ(DescriptorName::of(text)->text(), text);
    EXPECT_EQ(session(31, 2).text(), "s.1f.2");
}

TEST(DescriptorNameTest, IsNoOtherText) {
    for (const char* text : {"",
                             "State",
                             "state2",
                             "broker",
                             "broker.",
                             "broker.-1",
                             "broker.01",
                             "broker.4294967296",
                             "s",
                             "s.",
                             "s.1",
                             "s.1.",
                             "s..1",
                             "s.1.2.3",
                             "s.1F.2",
                             "s.01.2",
                             "s.1.100000000",
                             "s. 1.2",
                             "dibsd.socket"})
        EXPECT_FALSE(DescriptorName::of(text)) << text;
}

// A manager's socket, and the notices to it.
class DescriptorStoreTest : public testing::Test {
  protected:
    DescriptorStoreTest()
        : manager_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        const std::string path = folder_.path() + "/notify";
        struct sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof(address.sun_path));
        EXPECT_EQ(
            bind(manager_.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address)), 0);
        setenv("NOTIFY_SOCKET", path.c_str(), 1);
        notices_ = std::make_unique<ServiceNotices>();
        unsetenv("NOTIFY_SOCKET");
    }
    // What has been said; of descriptors their number.
    Words heard() {
        Words words;
        char text[256];
        for (;;) {
            alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
            struct iovec part = {text, sizeof(text)};
            struct msghdr packet = {};
            packet.msg_iov = &part;
            packet.msg_iovlen = 1;
            packet.msg_control = control;
            packet.msg_controllen = sizeof(control);
            const ssize_t size = recvmsg(manager_.get(), &packet, MSG_CMSG_CLOEXEC);
            if (size < 0) return words;
            std::string word(text, static_cast<size_t>(size));
            word = (word.rfind("FDSTORE=", 0) == 0 ? "+" : "-") + word.substr(word.rfind('=') + 1);
            const struct cmsghdr* header = CMSG_FIRSTHDR(&packet);
            for (size_t at = 0; header != nullptr && at < header->cmsg_len - CMSG_LEN(0);
                 at += sizeof(int)) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(header) + at, sizeof(fd));
                inode_ = inode_of(fd);
                close(fd);
                word += '*';
            }
            words.push_back(word);
        }
    }
    std::vector<shm::Descriptor> some(size_t count) {
        std::vector<shm::Descriptor> made;
        for (size_t i = 0; i < count; ++i)
            made.push_back(shm::make_memfd("some", 4096));
        return made;
    }

    test::Folder folder_;
    shm::Descriptor manager_;
    std::unique_ptr<ServiceNotices> notices_;
    ino_t inode_ = 0;  // of the descriptor that was heard last
};

TEST_F(DescriptorStoreTest, TellsOfSegmentsAtOnceAndOfSessionsAfterAPause) {
    DescriptorStore store(*notices_);
    const auto state = some(1);
    const auto six = some(6);
    store.keep({What::kState}, state, 1);
    store.keep(session(0), six, 1);
    store.flush(1);
    EXPECT_EQ(heard(), (Words{"+state*"}));
    EXPECT_EQ(store.next_due_ns(), 1 + kPause);
    store.flush(kPause);
    EXPECT_EQ(heard(), Words{});
    store.flush(1 + kPause);
    EXPECT_EQ(heard(), (Words{"+s.0.1******"}));
    EXPECT_EQ(store.next_due_ns(), shm::kNever);
}

TEST_F(DescriptorStoreTest, SaysNothingOfASessionThatComesAndGoes) {
    DescriptorStore store(*notices_);
    for (uint32_t generation = 1; generation <= 1000; ++generation) {
        const auto six = some(6);
        store.keep(session(3, generation), six, generation);
        store.drop(session(3, generation), generation);
        store.flush(generation);
    }
    store.flush(2 * kPause);
    store.flush(4 * kPause);
    EXPECT_EQ(heard(), Words{});
}

TEST_F(DescriptorStoreTest, TellsOfSessionsInBatches) {
    DescriptorStore store(*notices_);
    const auto one = some(1);
    const uint32_t sessions = DescriptorStore::kBatch / 4 * 5;
    for (uint32_t row = 0; row < sessions; ++row)
        store.keep(session(row), one, 0);
    size_t told = 0;
    uint32_t batches = 0;
    while (store.next_due_ns() != shm::kNever) {
        store.flush(store.next_due_ns());
        const size_t now = heard().size();  // its socket has room for ten, perhaps
        EXPECT_LE(now, DescriptorStore::kBatch);
        told += now;
        ++batches;
    }
    EXPECT_EQ(told, sessions);
    EXPECT_GE(batches, 2U);
}

TEST_F(DescriptorStoreTest, TakesOutWhatIsThereAndStoresNothingTwice) {
    DescriptorStore store(*notices_);
    const auto state = some(1);
    const auto other = some(1);
    std::vector<shm::Descriptor> again;
    again.emplace_back(dup(state.front().get()));
    store.keep({What::kState}, state, 0);
    store.flush(0);
    store.keep({What::kState}, again, 0);  // the same segment, from the next broker
    store.flush(0);
    EXPECT_EQ(heard(), (Words{"+state*"}));
    store.keep({What::kState}, other, 0);
    store.flush(0);
    EXPECT_EQ(heard(), (Words{"-state", "+state*"}));
    store.drop({What::kState}, 0);
    store.flush(0);
    EXPECT_EQ(heard(), (Words{"-state"}));
}

TEST_F(DescriptorStoreTest, GoesOnWhereTheManagerHadNoRoom) {
    DescriptorStore store(*notices_);
    const auto state = some(1);
    size_t filled = 0;
    while (notices_->try_say("WATCHDOG=1"))
        ++filled;
    store.keep({What::kState}, state, 0);
    store.flush(0);
    EXPECT_TRUE(store.urgent());
    EXPECT_EQ(heard().size(), filled);
    store.flush(0);
    EXPECT_FALSE(store.urgent());
    EXPECT_EQ(heard(), (Words{"+state*"}));
}

// A broker that does not serve yet has said them again: their numbers are other files' by now.
TEST_F(DescriptorStoreTest, KeepsOpenWhatWaits) {
    DescriptorStore store(*notices_);
    auto state = some(1);
    const ino_t inode = inode_of(state.front().get());
    const int number = state.front().get();
    while (notices_->try_say("WATCHDOG=1")) {
    }
    store.keep({What::kState}, state, 0);
    store.flush(0);
    state.clear();
    const auto other = some(1);
    ASSERT_EQ(other.front().get(), number);
    (void)heard();
    store.flush(0);
    EXPECT_EQ(heard(), (Words{"+state*"}));
    EXPECT_EQ(inode_, inode);
    EXPECT_TRUE(notices_->connected());
}

TEST_F(DescriptorStoreTest, IsNotHeldUpByThoseThatComeAndGo) {
    DescriptorStore store(*notices_);
    const auto one = some(1);
    for (uint32_t generation = 1; generation <= 10'000; ++generation) {
        store.keep(session(3, generation), one, 0);
        store.drop(session(3, generation), 0);
    }
    store.keep(session(4), one, 0);
    store.flush(kPause);
    EXPECT_EQ(heard(), (Words{"+s.4.1*"}));
    EXPECT_EQ(store.next_due_ns(), shm::kNever);
}

// Where the kernel refuses for want of something else, the socket stays writable.
TEST_F(DescriptorStoreTest, WaitsAMomentWhereThereIsRoomAlready) {
    const uint64_t began = Clock::monotonic();
    uint32_t looks = 0;
    while (notices_->await_room(began + 50'000'000))
        ++looks;
    EXPECT_GE(Clock::monotonic(), began + 50'000'000);
    EXPECT_LE(looks, 51U);  // not as many as there is time for
}

// Their names come back in one variable of the environment.
TEST_F(DescriptorStoreTest, KeepsNoMoreSessionsThanNamesCanBePassed) {
    DescriptorStore store(*notices_);
    const auto six = some(6);
    uint64_t now = 0;
    for (uint32_t row = 0; row < 4096; ++row)
        store.keep(session(row), six, now);
    size_t size = 0;
    for (; store.next_due_ns() != shm::kNever; now = store.next_due_ns()) {
        store.flush(store.next_due_ns());
        for (const std::string& word : heard())
            size += word.size() - 7 + 1;  // a sign before it, six marks behind
    }
    EXPECT_LE(size * 6, DescriptorStore::kNamesMax);
    EXPECT_GT(size * 6, DescriptorStore::kNamesMax - 100);
}

// ---- what comes back

PassedDescriptor passed(const std::string& name, shm::Descriptor descriptor) {
    return {name, std::move(descriptor)};
}

// As a broker makes them, and in any order.
std::vector<PassedDescriptor> of_a_session(const std::string& name) {
    std::vector<PassedDescriptor> all;
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    close(ends[1]);
    all.push_back(passed(name, shm::Descriptor(ends[0])));
    all.push_back(passed(name, shm::make_memfd("dibs-down", 4096)));
    all.push_back(passed(name, shm::Descriptor(eventfd(0, EFD_CLOEXEC))));
    all.push_back(passed(name, Process::own_pidfd()));
    all.push_back(passed(name, shm::Descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0))));
    all.push_back(passed(name, shm::make_memfd("dibs-up", 4096)));
    return all;
}

std::vector<PassedDescriptor> with_a_state(std::vector<PassedDescriptor> rest) {
    rest.push_back(passed("state", shm::make_memfd("dibs-state", 4096)));
    rest.push_back(passed("broker.1", Process::own_pidfd()));
    return rest;
}

TEST(StoredDescriptorsTest, AreInTheirPlaces) {
    auto all = with_a_state(of_a_session("s.2.7"));
    all.push_back(passed("config", copy_config("[[pool]]")));
    const StoredDescriptors stored(std::move(all));
    EXPECT_TRUE(stored.state.valid());
    EXPECT_EQ(text_of_copy(stored.config.get()), "[[pool]]");
    EXPECT_EQ(stored.brokers.size(), 1U);
    ASSERT_EQ(stored.sessions.size(), 1U);
    EXPECT_EQ(stored.sessions.begin()->first, session(2, 7));
    EXPECT_EQ(stored.aside, Words{});
}

TEST(StoredDescriptorsTest, AreAsideWithoutTheirBroker) {
    auto all = of_a_session("s.2.7");
    all.push_back(passed("state", shm::make_memfd("dibs-state", 4096)));
    const StoredDescriptors stored(std::move(all));
    EXPECT_FALSE(stored.state.valid());
    EXPECT_TRUE(stored.sessions.empty());
    EXPECT_EQ(stored.aside, (Words{"state", "s.2.7"}));
    EXPECT_FALSE(stored.ended);
}

TEST(StoredDescriptorsTest, TellWhatAnOrderlyEndLeaves) {
    EXPECT_TRUE(StoredDescriptors(of_a_session("s.2.7")).ended);
    EXPECT_TRUE(StoredDescriptors({}).ended);
    auto all = of_a_session("s.2.7");
    all.push_back(passed("other", shm::make_memfd("dibs-state", 4096)));
    EXPECT_FALSE(StoredDescriptors(std::move(all)).ended);
    all = of_a_session("s.2.7");
    all.push_back(passed("broker.1", Process::own_pidfd()));
    EXPECT_FALSE(StoredDescriptors(std::move(all)).ended);
    EXPECT_FALSE(StoredDescriptors(with_a_state(of_a_session("s.2.7"))).ended);
}

TEST(StoredDescriptorsTest, AreAsideWhereTheyAreNotWhatTheyAreCalled) {
    std::vector<PassedDescriptor> all;
    all.push_back(passed("board", shm::make_memfd("dibs-state", 4096)));
    all.push_back(passed("listener", shm::Descriptor(eventfd(0, EFD_CLOEXEC))));
    all.push_back(passed("state", shm::Descriptor(memfd_create("dibs-state", MFD_CLOEXEC))));
    all.push_back(passed("broker.2", shm::make_memfd("dibs-state", 4096)));
    all.push_back(passed("config", shm::make_memfd("dibs-state", 4096)));
    const StoredDescriptors stored(std::move(all));
    EXPECT_EQ(stored.aside, (Words{"board", "broker.2", "config", "listener", "state"}));
}

TEST(StoredDescriptorsTest, AreASessionOnlyIfEachIsThereOnce) {
    for (size_t place = 0; place < kKeptLeast; ++place) {
        auto missing = of_a_session("s.0.1");
        missing.erase(missing.begin() + static_cast<ptrdiff_t>(place));
        auto twice = of_a_session("s.1.1");
        twice.push_back(passed("s.1.1", shm::Descriptor(dup(twice[place].descriptor.get()))));
        auto all = with_a_state(std::move(missing));
        std::move(twice.begin(), twice.end(), std::back_inserter(all));
        const StoredDescriptors stored(std::move(all));
        EXPECT_TRUE(stored.sessions.empty()) << place;
        EXPECT_EQ(stored.aside, (Words{"s.0.1", "s.1.1"}));
    }
}

TEST(StoredDescriptorsTest, HaveEveryBrokerOfAPid) {
    auto all = with_a_state({});
    all.push_back(passed("broker.1", Process::own_pidfd()));
    all.push_back(passed("broker.1", shm::make_memfd("dibs-state", 4096)));
    const StoredDescriptors stored(std::move(all));
    ASSERT_EQ(stored.brokers.size(), 1U);
    EXPECT_EQ(stored.brokers.begin()->second.size(), 2U);
    EXPECT_EQ(stored.aside, Words{});
}

TEST(StoredDescriptorsTest, AreOfTheLaterOneOfTwoSessionsOfARow) {
    auto all = with_a_state(of_a_session("s.0.9"));
    for (PassedDescriptor& one : of_a_session("s.0.a"))
        all.push_back(std::move(one));
    const StoredDescriptors stored(std::move(all));
    ASSERT_EQ(stored.sessions.size(), 1U);
    EXPECT_EQ(stored.sessions.begin()->first, session(0, 10));
    EXPECT_EQ(stored.aside, (Words{"s.0.9"}));
}

}  // namespace
}  // namespace dibs
