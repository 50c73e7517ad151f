// tests/process/standby_test.cpp -- the next broker, started ahead: when it goes on, when it ends.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>

#include "broker/takeover/head_start.hpp"
#include "broker/takeover/standby.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/proc_text.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/replaceable_dibsd.hpp"

namespace dibs::test {
namespace {

using shm::Outcome;
using shm::Reason;

// A lease, and whatever became of the broker it is given back.
class Held {
  public:
    explicit Held(const KeptDibsd& dibsd) : client_(dibsd.socket()) {
        client_.claim(1, 0, 2);
        granted_ = client_.wait();
        EXPECT_EQ(granted_->outcome, Outcome::kGranted);
    }
    // What the broker's epoch is then.
    uint64_t give_back() {
        client_.release(*granted_);
        const auto answer = client_.wait();
        if (!answer) {
            ADD_FAILURE() << "the session is lost";
            return 0;
        }
        EXPECT_EQ(answer->reason, Reason::kOk);
        return client_.board().epoch.load();
    }

  private:
    RawClient client_;
    std::optional<shm::Completion> granted_;
};

// Waits until it sleeps in poll() and nothing but a descriptor wakes it: nothing is due.
void await_nothing_due(pid_t keeper) {
    for (;; sched_yield()) {
        std::istringstream call(proc_text(keeper, "syscall"));
        long number = -1;
        std::string events;
        std::string count;
        std::string timeout;
        if (!(call >> number >> events >> count >> timeout)) continue;
        const uint64_t bits = std::stoull(timeout, nullptr, 16);
        if (number == SYS_ppoll && bits == 0) return;  // no pointer to a time
#ifdef SYS_poll
        if (number == SYS_poll && static_cast<int32_t>(bits) == -1) return;
#endif
    }
}

// Whoever was started ahead and says nothing is killed a second later.
TEST(Standby, IsLeftAloneOnceItHasBegun) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    const pid_t first = dibsd.broker();
    const pid_t next = dibsd.standby();
    dibsd.kill_broker();
    EXPECT_EQ(dibsd.broker(first), next);
    (void)dibsd.standby(next);
    await_nothing_due(dibsd.keeper());
    EXPECT_EQ(dibsd.broker(), next);
    EXPECT_EQ(Held(dibsd).give_back(), 2U);
}

TEST(Standby, OutlivesItsKeeperOnceItIsTheBroker) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    const RawClient witness(dibsd.socket());
    const pid_t next = dibsd.standby();
    dibsd.kill_broker();
    await_epoch(witness, 2);  // it has everything, and serves
    const pid_t keeper = dibsd.keeper();
    kill_and_await(keeper, SIGKILL);
    EXPECT_NE(dibsd.keeper(keeper), keeper);
    EXPECT_EQ(dibsd.broker(), next);
    EXPECT_EQ(held.give_back(), 2U);
}

TEST(Standby, IsTheNextBroker) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    const pid_t first = dibsd.broker();
    const pid_t next = dibsd.standby();
    dibsd.kill_broker();
    EXPECT_EQ(held.give_back(), 2U);
    EXPECT_EQ(dibsd.broker(first), next);
    EXPECT_NE(dibsd.standby(), next);  // and has one of its own
}

TEST(Standby, HasTheMemoryOfTheBroker) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    for (const uint64_t epoch : {2U, 3U, 4U}) {
        const pid_t broker = dibsd.broker();
        const uint64_t standby = own_memory_kib(dibsd.standby());
        EXPECT_GE(standby, std::min(own_memory_kib(broker), Standby::kMemoryMaxKib) * 9 / 10);
        dibsd.kill_broker();
        (void)dibsd.broker(broker);
        if (epoch == 4U) {
            EXPECT_EQ(held.give_back(), epoch);
        }
    }
}

TEST(Standby, IsReplacedWhenItEnds) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    const pid_t broker = dibsd.broker();
    pid_t standby = dibsd.standby();
    for (const int signal : {SIGTERM, SIGHUP}) {
        kill_and_await(standby, signal);  // it has nothing to stop or to read again
        standby = dibsd.standby(standby);
    }
    EXPECT_EQ(dibsd.broker(), broker);
    dibsd.kill_broker();
    EXPECT_EQ(held.give_back(), 2U);
    EXPECT_EQ(dibsd.broker(broker), standby);
}

TEST(Standby, IsNotNeeded) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    const pid_t standby = dibsd.standby();
    const pid_t keeper = dibsd.keeper();
    kill(keeper, SIGSTOP);  // so that nobody takes over before both are dead
    ASSERT_TRUE(is_stopped(keeper));
    const pid_t broker = dibsd.broker();
    kill_and_await(standby, SIGKILL);
    dibsd.kill_broker();
    kill(keeper, SIGCONT);
    EXPECT_EQ(held.give_back(), 2U);
    EXPECT_NE(dibsd.broker(broker), standby);
}

TEST(Standby, IsNotWaitedForWhereItIsStopped) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    const pid_t broker = dibsd.broker();
    const pid_t standby = dibsd.standby();
    const shm::Descriptor end = pidfd_of(standby);
    kill(standby, SIGSTOP);
    ASSERT_TRUE(is_stopped(standby));
    dibsd.kill_broker();
    EXPECT_EQ(held.give_back(), 2U);
    EXPECT_NE(dibsd.broker(broker), standby);
    EXPECT_TRUE(await_death(end));
}

// What stops it this time nobody but the one who did it is told of.
TEST(Standby, IsNotWaitedForLongWhereItDoesNotBegin) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    const pid_t broker = dibsd.broker();
    const pid_t standby = dibsd.standby();
    const shm::Descriptor end = pidfd_of(standby);
    ASSERT_EQ(ptrace(PTRACE_SEIZE, standby, nullptr, nullptr), 0);
    ASSERT_EQ(ptrace(PTRACE_INTERRUPT, standby, nullptr, nullptr), 0);
    ASSERT_EQ(waitpid(standby, nullptr, __WALL), standby);
    dibsd.kill_broker();
    while (waitpid(standby, nullptr, __WALL) == standby) {  // until it is dead: its tracer is told
    }
    EXPECT_EQ(held.give_back(), 2U);
    EXPECT_NE(dibsd.broker(broker), standby);
    EXPECT_TRUE(await_death(end));
}

TEST(Standby, MayBeStoppedAndContinued) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    const pid_t broker = dibsd.broker();
    const pid_t standby = dibsd.standby();
    kill(standby, SIGSTOP);
    ASSERT_TRUE(is_stopped(standby));
    kill(standby, SIGCONT);
    while (!is_asleep(standby))
        sched_yield();
    dibsd.kill_broker();
    EXPECT_EQ(held.give_back(), 2U);
    EXPECT_EQ(dibsd.broker(broker), standby);
}

TEST(Standby, EndsWithItsKeeper) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    const pid_t standby = dibsd.standby();
    const shm::Descriptor end = pidfd_of(standby);
    dibsd.kill_keeper();
    EXPECT_TRUE(await_death(end));
    const pid_t another = dibsd.standby(standby);       // the next keeper's
    EXPECT_TRUE(RawClient(dibsd.socket()).attached());  // which has everything
    const pid_t broker = dibsd.broker();
    dibsd.kill_broker();
    EXPECT_EQ(held.give_back(), 2U);
    EXPECT_EQ(dibsd.broker(broker), another);
}

TEST(Standby, EndsWithItsKeeperEvenWhereItIsStopped) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    const pid_t standby = dibsd.standby();
    const shm::Descriptor end = pidfd_of(standby);
    kill(standby, SIGSTOP);
    ASSERT_TRUE(is_stopped(standby));
    dibsd.kill_keeper();
    EXPECT_TRUE(await_death(end));
}

// Both orders come when the broker is dead, and go to the one that was a standby a moment before.
TEST(Standby, StopsInOrderAsSoonAsItIsTheBroker) {
    for (int round = 0; round < 8; ++round) {
        const Folder folder;
        KeptDibsd dibsd(folder, kCounted);
        (void)dibsd.standby();
        const pid_t keeper = dibsd.keeper();
        kill(keeper, SIGSTOP);
        ASSERT_TRUE(is_stopped(keeper));
        dibsd.kill_broker();
        kill(keeper, SIGTERM);
        kill(keeper, SIGINT);
        kill(keeper, SIGCONT);
        EXPECT_EQ(dibsd.wait(), 0);
    }
}

// A process that waits for its word as a standby does, and says by its exit code what has come.
class Waiting {
  public:
    Waiting() {
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_), 0);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGHUP);
        sigset_t before;
        sigprocmask(SIG_BLOCK, &set, &before);
        pid_ = fork();
        if (pid_ != 0) {
            sigprocmask(SIG_SETMASK, &before, nullptr);
            close(ends_[1]);
            return;
        }
        close(ends_[0]);
        const bool begin = await_begin(ends_[1]);
        sigset_t pending;
        sigpending(&pending);
        _exit((begin ? 1 : 0) + (sigismember(&pending, SIGHUP) == 1 ? 2 : 0));
    }
    ~Waiting() {
        close(ends_[0]);
        if (pid_ > 0) (void)exit_code();
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    [[nodiscard]] pid_t pid() const { return pid_; }
    void say_begin() const { EXPECT_EQ(send(ends_[0], "b", 1, 0), 1); }
    int exit_code() {
        int status = 0;
        EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

  private:
    int ends_[2] = {-1, -1};
    pid_t pid_ = -1;
};

constexpr int kBegins = 1;
constexpr int kSignalStays = 2;

TEST(AwaitBegin, LeavesASignalBehindItsWordToTheBroker) {
    Waiting waiting;
    while (!is_asleep(waiting.pid()))
        sched_yield();
    kill(waiting.pid(), SIGSTOP);  // so that both are there when it looks
    ASSERT_TRUE(is_stopped(waiting.pid()));
    waiting.say_begin();
    kill(waiting.pid(), SIGHUP);
    kill(waiting.pid(), SIGCONT);
    EXPECT_EQ(waiting.exit_code(), kBegins + kSignalStays);
}

TEST(AwaitBegin, EndsOfASignalBeforeItsWord) {
    Waiting waiting;
    kill(waiting.pid(), SIGHUP);
    EXPECT_EQ(waiting.exit_code(), kSignalStays);
}

TEST(Standby, IsGoneBeforeTheServiceIs) {
    const Folder folder;
    KeptDibsd dibsd(folder, kCounted);
    const shm::Descriptor end = pidfd_of(dibsd.standby());
    kill(dibsd.keeper(), SIGTERM);
    EXPECT_EQ(dibsd.wait(), 0);
    EXPECT_TRUE(await_death(end, 0));
}

TEST(Standby, IsNotUsedWhereAnotherProgramLiesAtThePath) {
    const Folder folder;
    const ReplaceableDibsd program(folder);
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    const pid_t standby = dibsd.standby();
    const pid_t broker = dibsd.broker();
    const shm::Descriptor end = pidfd_of(standby);
    const std::string upgrade = folder.path() + "/upgrade";
    std::filesystem::copy_file(program.path(), upgrade);
    program.replace(upgrade);
    dibsd.kill_broker();
    EXPECT_EQ(held.give_back(), 2U);
    EXPECT_TRUE(await_death(end));
    const pid_t next = dibsd.broker(broker);
    EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(next) + "/exe"),
              program.path());
    // The next one is that program, too: what has been replaced is deleted.
    const pid_t another = dibsd.standby(standby);
    EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(another) + "/exe"),
              program.path());
    dibsd.kill_broker();
    EXPECT_EQ(dibsd.broker(next), another);
}

TEST(Standby, IsNotUsedByABrokerThatMakesWay) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    const pid_t broker = dibsd.broker();
    const pid_t standby = dibsd.standby();
    const shm::Descriptor end = pidfd_of(standby);
    kill(dibsd.keeper(), SIGUSR2);  // a library of its own may have been replaced
    EXPECT_TRUE(await_death(end));
    const pid_t next = dibsd.broker(broker);
    EXPECT_NE(next, standby);
    (void)dibsd.standby(standby);
    EXPECT_EQ(held.give_back(), 2U);
}

// The broker is no child of a keeper that it has started: its exit code tells that one nothing.
TEST(Standby, IsNotUsedByABrokerThatMakesWayForALaterKeeper) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Held held(dibsd);
    const pid_t broker = dibsd.broker();
    const pid_t first = dibsd.keeper();
    kill_and_await(first, SIGKILL);
    const pid_t keeper = dibsd.keeper(first);
    EXPECT_TRUE(RawClient(dibsd.socket()).attached());
    const pid_t standby = dibsd.standby();
    const shm::Descriptor end = pidfd_of(standby);
    kill(keeper, SIGUSR2);
    EXPECT_TRUE(await_death(end));
    EXPECT_NE(dibsd.broker(broker), standby);
    EXPECT_EQ(held.give_back(), 2U);
}

struct Resident {
    uint64_t mapped_kib = 0;
    uint64_t there_kib = 0;
};

// Of a process: its mappings of sessions' segments.
Resident segments_of(pid_t pid) {
    std::istringstream maps(proc_text(pid, "smaps"));
    Resident sum;
    bool segment = false;
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/memfd:dibs-") != std::string::npos) {
            segment = line.find("/memfd:dibs-up") != std::string::npos ||
                      line.find("/memfd:dibs-down") != std::string::npos;
        }
        std::istringstream words(line);
        std::string name;
        uint64_t kib = 0;
        if (!segment || !(words >> name >> kib)) continue;
        if (name == "Size:") sum.mapped_kib += kib;
        if (name == "Rss:") {
            sum.there_kib += kib;
            segment = false;
        }
    }
    return sum;
}

// Few of their pages are there when the first claim is answered; no later one is to meet a fault.
TEST(Takeover, BringsAllPagesOfItsSessions) {
    const Folder folder;
    const KeptDibsd dibsd(folder, "hardening = \"off\"\n" + std::string(kCounted));  // to be seen
    const RawClient other(dibsd.socket());
    Held held(dibsd);
    const pid_t first = dibsd.broker();
    const Resident before = segments_of(first);
    EXPECT_GT(before.mapped_kib, 0U);
    EXPECT_EQ(before.there_kib, before.mapped_kib);
    dibsd.kill_broker();
    EXPECT_EQ(held.give_back(), 2U);
    const pid_t next = dibsd.broker(first);
    for (Resident now; now.there_kib == 0 || now.there_kib != before.mapped_kib; sched_yield()) {
        now = segments_of(next);
        ASSERT_LE(now.mapped_kib, before.mapped_kib);
    }
}

TEST(Standby, IsNotThereWhereNobodyWantsIt) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted, {}, {"--no-standby"});
    Held held(dibsd);
    pid_t keeper = dibsd.keeper();
    const auto has_child_but = [&](pid_t broker) {
        std::istringstream children(
            proc_text(keeper, "task/" + std::to_string(keeper) + "/children"));
        for (pid_t child = 0; children >> child;) {
            if (child != broker) return true;
        }
        return false;
    };
    await_nothing_due(keeper);
    EXPECT_FALSE(has_child_but(dibsd.broker()));
    dibsd.kill_keeper();
    keeper = dibsd.keeper(keeper);  // it is called as the first one was
    EXPECT_EQ(held.give_back(), 1U);
    await_nothing_due(keeper);
    EXPECT_FALSE(has_child_but(-1));  // the broker is not its child
}

}  // namespace
}  // namespace dibs::test
