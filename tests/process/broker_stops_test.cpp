// tests/process/broker_stops_test.cpp -- dibsd drains, is killed, starts again from its STATE.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "broker/core/core.hpp"
#include "broker/segments/mapping.hpp"
#include "broker/turn/clock.hpp"
#include "shm/memfd.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

using shm::Outcome;
using shm::Reason;

// STATE as the dead broker left it, looked at through the core itself, on a private copy.
class Corpse {
  public:
    explicit Corpse(int memfd)
        : copy_(shm::make_memfd("corpse", shm::size_of(memfd))),
          from_(memfd, shm::size_of(memfd)),
          to_(copy_.get(), shm::size_of(memfd)) {
        std::copy(from_.bytes().begin(), from_.bytes().end(), to_.bytes().begin());
        core_ = std::make_unique<core::Core>(to_.bytes());
    }
    core::Core& core() { return *core_; }

  private:
    shm::Descriptor copy_;
    Mapping from_;
    Mapping to_;
    std::unique_ptr<core::Core> core_;
};

TEST(DibsdDrain, RejectsWhoWaitsAndStopsWhenTheLastLeaseEnds) {
    const Folder folder;
    Dibsd dibsd(folder, kCounted);
    RawClient holder(dibsd.socket());
    RawClient waiting(dibsd.socket());
    holder.claim(1, 0, 2);
    const auto granted = holder.wait();
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    waiting.claim(1);
    waiting.claim(2, 0, 1, 0);  // its answer says that the first one is in the backlog
    ASSERT_EQ(waiting.wait()->reason, Reason::kBusy);
    dibsd.signal(SIGTERM);
    const auto rejected = waiting.wait();
    ASSERT_TRUE(rejected);
    EXPECT_EQ(rejected->outcome, Outcome::kRejected);
    EXPECT_EQ(rejected->reason, Reason::kDraining);
    const RawClient late(dibsd.socket());
    EXPECT_FALSE(late.attached());
    EXPECT_EQ(late.farewell().code, shm::FarewellCode::kDraining);
    EXPECT_EQ(text_of(late.farewell()),
              "the broker is about to stop, once its leases have ended (dibs ls leases)");
    holder.release(*granted);
    EXPECT_EQ(dibsd.wait(), 0);
    EXPECT_EQ(waiting.wait_end(), Reason::kDraining);
    EXPECT_FALSE(connect_to(dibsd.socket()).valid());
}

// Both would hand out the same slots.
TEST(DibsdDrain, LetsNoOtherBrokerBeginInItsPlace) {
    const Folder folder;
    Dibsd dibsd(folder, kCounted);
    RawClient holder(dibsd.socket());
    holder.claim(1);
    const auto granted = holder.wait();
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    holder.claim(2, 0, 2);
    dibsd.signal(SIGTERM);
    ASSERT_EQ(holder.wait()->reason, Reason::kDraining);
    const Ended other = run_dibsd({"--no-keeper", "--socket", dibsd.socket()});
    EXPECT_EQ(other.exit_code, 1);
    EXPECT_EQ(other.error, "dibsd: " + dibsd.socket() + ": another broker listens there\n");
    holder.release(*granted);
    EXPECT_EQ(dibsd.wait(), 0);
}

TEST(DibsdDrain, StopsAtItsTimeoutThoughALeaseLives) {
    const Folder folder;
    Dibsd dibsd(folder, std::string("drain_timeout = \"50ms\"\n") + kCounted);
    RawClient holder(dibsd.socket());
    holder.claim(1);
    ASSERT_EQ(holder.wait()->outcome, Outcome::kGranted);
    dibsd.signal(SIGTERM);
    EXPECT_EQ(dibsd.wait(), 0);
    EXPECT_EQ(holder.wait_end(), Reason::kDraining);
}

// Broker time stands while the broker is stopped: if that is for longer than it is old, the end of
// its drain lies before broker time began.
TEST(DibsdDrain, StopsThoughItWasStoppedForLongerThanItIsOld) {
    const Folder folder;
    const uint64_t before_ns = Clock::monotonic();
    Dibsd dibsd(folder, std::string("drain_timeout = \"200ms\"\n") + kCounted);
    RawClient holder(dibsd.socket());
    holder.claim(1);
    ASSERT_EQ(holder.wait()->outcome, Outcome::kGranted);
    holder.claim(2, 0, 2);
    dibsd.signal(SIGTERM);
    ASSERT_EQ(holder.wait()->reason, Reason::kDraining);  // so it drains
    dibsd.signal(SIGSTOP);
    const uint64_t stopped_ns = Clock::monotonic();
    const uint64_t until_ns = 2 * stopped_ns - before_ns + 200'000'000;
    while (Clock::monotonic() < until_ns)
        sched_yield();
    dibsd.signal(SIGCONT);
    EXPECT_EQ(dibsd.wait(), 0);
}

TEST(DibsdDrain, ASecondSignalDoesNotWait) {
    const Folder folder;
    Dibsd dibsd(folder, kCounted);
    RawClient holder(dibsd.socket());
    holder.claim(1);
    ASSERT_EQ(holder.wait()->outcome, Outcome::kGranted);
    holder.claim(2, 0, 2);
    dibsd.signal(SIGTERM);
    ASSERT_EQ(holder.wait()->reason, Reason::kDraining);  // the first one has arrived
    dibsd.signal(SIGTERM);
    EXPECT_EQ(dibsd.wait(), 0);
}

TEST(DibsdReload, TakesOverWhatCanChangeLive) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1, 0, 2);
    ASSERT_EQ(client.wait()->outcome, Outcome::kGranted);
    client.claim(2);  // waits
    (void)folder.write("dibsd.toml",
                       "[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 3\n");
    dibsd.signal(SIGHUP);
    EXPECT_EQ(client.wait()->outcome, Outcome::kGranted);
    client.await_pool(0, [](const auto& pool) { return pool.slots == 3 && pool.leased == 3; });
}

TEST(DibsdReload, TakesOverMorePoolsThanOneTurnCanLog) {
    const Folder folder;
    const std::string limits = "[limits]\nslots = 8192\n";
    const Dibsd dibsd(folder, limits + kCounted);
    RawClient client(dibsd.socket());
    std::string more = limits + kCounted;
    for (int pool = 1; pool <= 30; ++pool) {
        more += "[[pool]]\nname = \"pool" + std::to_string(pool) +
                "\"\nkind = \"counted\"\nslots = 200\n";
    }
    (void)folder.write("dibsd.toml", more);
    dibsd.signal(SIGHUP);
    client.await_pool(30, [](const auto& pool) { return pool.idle == 200; });
    client.claim(1, 30, 200);
    EXPECT_EQ(client.wait()->outcome, Outcome::kGranted);
}

TEST(DibsdReload, KeepsItsConfigurationWhenTheNewOneIsWrong) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    (void)folder.write("dibsd.toml", "[[pool]]\nname = \"tokens\"\nkind = \"counted\"\n");
    dibsd.signal(SIGHUP);
    client.claim(1, 0, 2);
    EXPECT_EQ(client.wait()->outcome, Outcome::kGranted);
}

TEST(DibsdRestart, GoesOnFromTheStateOfAKilledBroker) {
    const Folder folder;
    const shm::Descriptor state(memfd_create("state", MFD_ALLOW_SEALING));
    {
        Dibsd first(folder, kCounted, state.get());
        ASSERT_TRUE(first.ready());
        RawClient client(first.socket());
        EXPECT_EQ(client.welcome().epoch, 1U);
        client.claim(1, 0, 2);
        ASSERT_EQ(client.wait()->fence, 1U);
        client.claim(2);
        client.claim(3, 0, 1, 0);
        ASSERT_EQ(client.wait()->reason, Reason::kBusy);
        first.signal(SIGKILL);
        EXPECT_EQ(first.wait(), 128 + SIGKILL);
    }
    Corpse corpse(state.get());
    EXPECT_TRUE(corpse.core().check_all().empty());
    EXPECT_EQ(corpse.core().pool(0).leased, 2U);
    EXPECT_EQ(corpse.core().pool(0).waiting, 1U);
    EXPECT_EQ(corpse.core().head().clean, 0U);

    // The sessions' descriptors died with the broker: what they held is back before anybody asks.
    Dibsd second(folder, kCounted, state.get());
    ASSERT_TRUE(second.ready());
    RawClient client(second.socket());
    EXPECT_EQ(client.welcome().epoch, 2U);
    client.claim(1, 0, 2);
    const auto granted = client.wait();
    EXPECT_EQ(granted->outcome, Outcome::kGranted);
    EXPECT_EQ(granted->fence, 2U);  // fences go on
    EXPECT_EQ(granted->claim, 4U);  // and so do the numbers of claims
    second.signal(SIGKILL);
    (void)second.wait();
    Corpse again(state.get());
    EXPECT_TRUE(again.core().check_all().empty());
}

TEST(DibsdRestart, LeavesACleanStateAfterAnOrderlyStop) {
    const Folder folder;
    const shm::Descriptor state(memfd_create("state", MFD_ALLOW_SEALING));
    Dibsd dibsd(folder, kCounted, state.get());
    ASSERT_TRUE(dibsd.ready());
    dibsd.signal(SIGTERM);
    EXPECT_EQ(dibsd.wait(), 0);
    Corpse corpse(state.get());
    EXPECT_EQ(corpse.core().head().clean, 1U);
}

TEST(DibsdRestart, ServesAgainAfterAnOrderlyStop) {
    const Folder folder;
    const shm::Descriptor state(memfd_create("state", MFD_ALLOW_SEALING));
    {
        Dibsd first(folder, kCounted, state.get());
        ASSERT_TRUE(first.ready());
        first.signal(SIGTERM);
        ASSERT_EQ(first.wait(), 0);
    }
    const Dibsd second(folder, kCounted, state.get());
    ASSERT_TRUE(second.ready());
    RawClient client(second.socket());
    client.claim(1);
    EXPECT_EQ(client.wait()->outcome, Outcome::kGranted);
}

TEST(DibsdRestart, RefusesAStateThatIsNotOne) {
    const Folder folder;
    const shm::Descriptor state(memfd_create("state", MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(state.get(), 65536), 0);
    Dibsd dibsd(folder, kCounted, state.get());
    EXPECT_FALSE(dibsd.ready());
    EXPECT_EQ(dibsd.wait(), 1);
}

TEST(DibsdRestart, LeavesAFileAloneThatIsNoMemfd) {
    const Folder folder;
    const std::string path = folder.write("file", "");
    ASSERT_EQ(chmod(path.c_str(), 0644), 0);
    const shm::Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
    Dibsd dibsd(folder, kCounted, file.get());
    EXPECT_FALSE(dibsd.ready());
    EXPECT_EQ(dibsd.wait(), 1);
    struct stat about = {};
    ASSERT_EQ(fstat(file.get(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777U, 0644U);
    EXPECT_EQ(about.st_size, 0);
}

TEST(DibsdRestart, RefusesAStateThatFailsItsChecks) {
    const Folder folder;
    const shm::Descriptor state(memfd_create("state", MFD_ALLOW_SEALING));
    {
        Dibsd first(folder, kCounted, state.get());
        ASSERT_TRUE(first.ready());
        first.signal(SIGTERM);
        ASSERT_EQ(first.wait(), 0);
    }
    Mapping mapping(state.get(), shm::size_of(state.get()));
    const auto& head = *mapping.at<shm::StateHead>(0);
    const auto place = head.table[static_cast<size_t>(shm::Table::kPools)];
    ++mapping.at<shm::PoolRow>(place.offset)->idle;  // one idle slot more than there are
    Dibsd second(folder, kCounted, state.get());
    EXPECT_FALSE(second.ready());
    EXPECT_EQ(second.wait(), 1);
}

TEST(DibsdStart, RefusesASocketThatSomebodyListensOn) {
    const Folder folder;
    const Dibsd first(folder, kCounted);
    Dibsd second(folder, kCounted);
    EXPECT_FALSE(second.ready());
    EXPECT_EQ(second.wait(), 1);
    RawClient client(first.socket());
    EXPECT_TRUE(client.attached());
}

TEST(DibsdStart, ChecksAConfigurationAndSaysWhereItIsWrong) {
    const Folder folder;
    const std::string good = folder.write("good.toml", kCounted);
    const std::string bad =
        folder.write("bad.toml", "[[pool]]\nname = \"a\"\nkind = \"cuonted\"\n");
    EXPECT_EQ(run_dibsd({"--check-config", good}).exit_code, 0);
    const Ended run = run_dibsd({"--check-config", bad});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.error, bad + ":3:8: kind: \"cuonted\" is none of \"counted\", \"worker\"\n");
}

}  // namespace
}  // namespace dibs::test
