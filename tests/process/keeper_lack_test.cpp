// tests/process/keeper_lack_test.cpp -- what lacks around keeper and broker: the socket's folder,
// descriptors, a reader of the log. Nothing that is held is lost by it.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/process/kept_dibsd.hpp"
#include "tests/process/proc_text.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

using shm::Outcome;
using shm::Reason;

// A unit of the first pool.
shm::Completion hold(RawClient& holder) {
    holder.claim(1);
    const auto granted = holder.wait();
    EXPECT_TRUE(granted && granted->outcome == Outcome::kGranted);
    return granted.value_or(shm::Completion());
}

void expect_release(RawClient& holder, const shm::Completion& granted) {
    holder.release(granted);
    const auto answer = holder.wait();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->reason, Reason::kOk);
}

// The successor cannot have the lock beside the socket.
TEST(Keeper, GoesOnWhereTheSocketsFolderIsGone) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient holder(dibsd.socket());
    const shm::Completion granted = hold(holder);
    std::filesystem::remove_all(folder.path());
    dibsd.kill_broker();
    expect_release(holder, granted);
    EXPECT_EQ(holder.board().epoch.load(), 2U);
    const pid_t broker = dibsd.broker();
    kill(dibsd.keeper(), SIGUSR2);
    (void)dibsd.broker(broker);
}

// In bytes.
rlim_t address_space(pid_t pid) {
    const std::string status = proc_text(pid, "status");
    const size_t at = status.find("VmSize:");
    return at == std::string::npos ? 0 : std::stoull(status.substr(at + 7)) << 10;
}

// More often than one would be started whose STATE is at fault.
TEST(Keeper, StartsBrokersAsLongAsTheyOnlyLackMemory) {
    if (std::string(DIBS_SANITIZERS) != "none") {
        GTEST_SKIP() << "the sanitizers take all of the address space";
    }
    constexpr int kStarts = 8;
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted, {}, {"--no-standby"});
    RawClient holder(dibsd.socket());
    const shm::Completion granted = hold(holder);
    const pid_t keeper = dibsd.keeper();
    rlimit before = {};
    ASSERT_EQ(prlimit(keeper, RLIMIT_AS, nullptr, &before), 0);
    rlimit tight = before;  // the keeper's own, and little more: a broker maps all that is held
    tight.rlim_cur = address_space(keeper) + (rlim_t{1} << 20);
    ASSERT_EQ(prlimit(keeper, RLIMIT_AS, &tight, nullptr), 0);
    pid_t last = dibsd.broker();
    kill_and_await(last, SIGKILL);
    for (int starts = 0; starts < kStarts; ++starts)
        last = dibsd.successor(last);
    ASSERT_EQ(prlimit(keeper, RLIMIT_AS, &before, nullptr), 0);
    expect_release(holder, granted);
    EXPECT_EQ(holder.board().epoch.load(), 2U);
    EXPECT_TRUE(RawClient(dibsd.socket()).attached());
}

// Wherever it lacks some: for STATE, for a session's segments, for a thread's stack.
TEST(Keeper, LosesNoSessionToABrokerThatLacksMemory) {
    if (std::string(DIBS_SANITIZERS) != "none") {
        GTEST_SKIP() << "the sanitizers take all of the address space";
    }
    constexpr rlim_t kMiB = rlim_t{1} << 20;
    const Folder folder;
    const KeptDibsd dibsd(folder,
                          "hardening = \"off\"\n[[pool]]\nname = \"tokens\"\nkind = \"counted\"\n"
                          "slots = 8\n",
                          {},
                          {"--no-standby"});
    std::vector<std::unique_ptr<RawClient>> holders;
    std::vector<shm::Completion> grants;
    for (int i = 0; i < 8; ++i) {
        holders.push_back(std::make_unique<RawClient>(dibsd.socket()));
        grants.push_back(hold(*holders.back()));
    }
    const pid_t keeper = dibsd.keeper();
    rlimit before = {};
    ASSERT_EQ(prlimit(keeper, RLIMIT_AS, nullptr, &before), 0);
    const std::atomic<uint64_t>& epoch = holders[0]->board().epoch;
    int unable = 0;
    int served = 0;
    for (rlim_t more = kMiB; served < 3; more += kMiB) {
        rlimit tight = before;
        tight.rlim_cur = address_space(keeper) + more;
        ASSERT_EQ(prlimit(keeper, RLIMIT_AS, &tight, nullptr), 0);
        const uint64_t last = epoch.load();
        const pid_t broker = dibsd.broker();
        kill_and_await(broker, SIGKILL);
        const shm::Descriptor next = pidfd_of(dibsd.successor(broker));
        while (epoch.load() == last && !await_death(next, 1)) {
        }
        (epoch.load() == last ? unable : served) += 1;
        ASSERT_EQ(prlimit(keeper, RLIMIT_AS, &before, nullptr), 0);
        // Nor has one that serves to lack room for whoever comes.
        (void)prlimit(dibsd.broker(broker), RLIMIT_AS, &before, nullptr);
        EXPECT_TRUE(RawClient(dibsd.socket()).attached());
    }
    EXPECT_GT(unable, 8);
    for (size_t i = 0; i < holders.size(); ++i)
        expect_release(*holders[i], grants[i]);
}

// A keeper for one packet of which there were no descriptors has closed its end of the link: it
// would hear of nothing any more, and nobody who comes would be let in.
// With 1 it may not even wait for all of them at once.
class KeeperOfFew : public testing::TestWithParam<rlim_t> {};
INSTANTIATE_TEST_SUITE_P(Descriptors,
                         KeeperOfFew,
                         testing::Values(1, 6),
                         testing::PrintToStringParamName());

TEST_P(KeeperOfFew, IsReplacedWhereItHasLostItsLink) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted, {}, {"--no-standby"});
    RawClient holder(dibsd.socket());
    const shm::Completion granted = hold(holder);
    const pid_t broker = dibsd.broker();
    const pid_t keeper = dibsd.keeper();
    rlimit tight = {};
    ASSERT_EQ(prlimit(keeper, RLIMIT_NOFILE, nullptr, &tight), 0);
    tight.rlim_cur = GetParam();  // fewer than it has
    ASSERT_EQ(prlimit(keeper, RLIMIT_NOFILE, &tight, nullptr), 0);
    EXPECT_TRUE(RawClient(dibsd.socket()).attached());
    EXPECT_NE(dibsd.keeper(keeper), keeper);
    EXPECT_EQ(dibsd.broker(), broker);
    dibsd.kill_broker();
    expect_release(holder, granted);
}

// Since the host was started: of now, and of the start of a process.
uint64_t now_ms() {
    struct timespec now = {};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000 +
           static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}
uint64_t started_ms(pid_t pid) {
    std::istringstream fields(proc_text(pid, "stat"));
    std::string field;
    for (int skipped = 0; skipped < 22; ++skipped)
        fields >> field;
    return std::stoull(field) * 1000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
}

// Each dies as soon as it is there: its program cannot run, say, in the middle of an upgrade.
TEST(Keeper, IsNotStartedWithoutAPauseForEver) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted, {}, {"--no-standby"});
    RawClient holder(dibsd.socket());
    const shm::Completion granted = hold(holder);
    pid_t keeper = dibsd.keeper();
    uint64_t longest_ms = 0;
    for (int death = 0; death < 40 && longest_ms < 90; ++death) {
        const uint64_t dies_ms = now_ms();
        kill_and_await(keeper, SIGKILL);
        keeper = dibsd.keeper(keeper);
        longest_ms =
            std::max(longest_ms, started_ms(keeper) - std::min(started_ms(keeper), dies_ms));
    }
    EXPECT_GE(longest_ms, 90U);  // of 100, in ticks of ten
    EXPECT_TRUE(RawClient(dibsd.socket()).attached());
    dibsd.kill_broker();
    expect_release(holder, granted);
}

// Standard error is a pipe that is full.
class Unread {
  public:
    Unread() : error_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) _exit(1);
        while (write(ends[1], "x", 1) == 1) {
        }
        (void)fcntl(ends[1], F_SETFL, 0);
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
        reading_ = shm::Descriptor(ends[0]);
    }
    ~Unread() { dup2(error_.get(), STDERR_FILENO); }
    Unread(const Unread&) = delete;
    Unread& operator=(const Unread&) = delete;

  private:
    shm::Descriptor error_;
    shm::Descriptor reading_;
};

TEST(Keeper, DoesNotWaitForWhoeverShouldReadItsLog) {
    const Folder folder;
    const Unread unread;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient holder(dibsd.socket());
    const shm::Completion granted = hold(holder);
    dibsd.kill_broker();
    expect_release(holder, granted);
    const pid_t keeper = dibsd.keeper();
    kill_and_await(keeper, SIGKILL);
    (void)dibsd.keeper(keeper);
    RawClient other(dibsd.socket());  // let in once the next keeper holds all
    dibsd.kill_broker();
    (void)hold(other);
}

}  // namespace
}  // namespace dibs::test
