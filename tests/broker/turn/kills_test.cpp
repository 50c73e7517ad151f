// tests/broker/turn/kills_test.cpp -- strict expiry: who is killed, who is refused, and what
// follows if a kill fails.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/deaths.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/admission/peer.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::CompletionKind;
using shm::LeaseState;
using shm::Op;
using shm::Outcome;
using shm::Reason;

// A child that does nothing, and the handle on it that a handshake would have left.
class Sleeper {
  public:
    Sleeper() : pid_(fork()) {
        while (pid_ == 0)
            pause();
        pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    }
    ~Sleeper() {
        ::kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        close(pidfd_);
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    [[nodiscard]] int pidfd() const { return pidfd_; }
    [[nodiscard]] uint32_t pid() const { return static_cast<uint32_t>(pid_); }
    // Waits for its end: the signal that killed it.
    [[nodiscard]] int killed_by() const {
        siginfo_t end = {};
        waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOWAIT);
        return end.si_code == CLD_KILLED ? end.si_status : 0;
    }

  private:
    pid_t pid_;
    int pidfd_ = -1;
};

// The session becomes this process's.
void be(Session& session, const Sleeper& process) {
    session.peer.uid = geteuid();
    session.peer.pid = process.pid();
    session.peer.pidfd = shm::Descriptor(dup(process.pidfd()));
}

struct KillsTest : testing::Test {
    void SetUp() override {
        bench.pool({.name = "gpu", .slots = 2, .expiry = shm::ExpiryMode::kStrict});
        holder = &bench.open();
        other = &bench.open();
    }
    // Claims for `interval_ns` and returns the grant.
    shm::Completion hold(Session& session, uint64_t interval_ns) {
        shm::Submission entry = claim(1);
        entry.fence = interval_ns;
        bench.push(session, entry);
        bench.turn();
        return *bench.next(session);
    }
    [[nodiscard]] const shm::LeaseRow& lease_of(const shm::Completion& granted) const {
        return bench.core.lease(static_cast<uint32_t>(granted.id));
    }

    Bench bench;
    Session* holder = nullptr;
    Session* other = nullptr;
};

TEST_F(KillsTest, KillsTheHolderWhenItsLeaseHasExpired) {
    const Sleeper process;
    be(*holder, process);
    const shm::Completion granted = hold(*holder, 500);
    bench.now = 1500;
    bench.turn();
    EXPECT_EQ(lease_of(granted).state, LeaseState::kLive);
    bench.now = 1501;
    bench.turn();
    EXPECT_EQ(lease_of(granted).state, LeaseState::kKilling);
    EXPECT_EQ(process.killed_by(), SIGKILL);
    EXPECT_FALSE(bench.kills.any());
    EXPECT_EQ(bench.core.pool(0).recovering, 1U);
    bench.sessions.drain(holder);
    bench.turn();
    EXPECT_EQ(lease_of(granted).state, LeaseState::kFree);
    EXPECT_EQ(bench.core.pool(0).idle, 2U);
}

TEST_F(KillsTest, GrantNothingForAKillThatFails) {
    holder->peer.pidfd = shm::Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));  // no process
    const shm::Completion granted = hold(*holder, 500);
    bench.push(*other, claim(1, 0, 2));
    bench.now = 1501;
    bench.turn();
    EXPECT_TRUE(bench.kills.any());
    bench.turn();
    EXPECT_FALSE(bench.kills.any());
    EXPECT_EQ(lease_of(granted).state, LeaseState::kKilling);
    EXPECT_EQ(lease_of(granted).flags, shm::LeaseFlag::kKillFailed);
    EXPECT_EQ(bench.core.pool(0).kills_total, 1U);
    EXPECT_EQ(bench.core.pool(0).kills_failed_total, 1U);
    EXPECT_FALSE(bench.next(*other));
    // It gives the slot back itself.
    bench.push(*holder, word(Op::kRelease, granted.id, granted.fence));
    bench.turn();
    EXPECT_EQ(bench.next(*other)->outcome, Outcome::kGranted);
}

// A set-user-ID program, for one: its user may not kill it, and has no broker do it.
TEST_F(KillsTest, LeaveAProcessAloneThatRunsAsAnotherUserByNow) {
    const Sleeper process;
    be(*holder, process);
    holder->peer.uid = geteuid() + 1;
    const shm::Completion granted = hold(*holder, 500);
    bench.now = 1501;
    bench.turn();
    bench.turn();
    EXPECT_EQ(lease_of(granted).state, LeaseState::kKilling);
    EXPECT_EQ(lease_of(granted).flags, shm::LeaseFlag::kKillFailed);
    EXPECT_EQ(bench.core.pool(0).recovering, 1U);
    EXPECT_EQ(::kill(static_cast<pid_t>(process.pid()), 0), 0);
    struct pollfd death = {process.pidfd(), POLLIN, 0};
    EXPECT_EQ(poll(&death, 1, 0), 0);
}

TEST(Uids, AreThoseOfALivingProcess) {
    uint32_t pid = 0;
    {
        const Sleeper process;
        pid = process.pid();
        const auto uids = uids_now(pid, process.pidfd());
        ASSERT_TRUE(uids.has_value());
        EXPECT_EQ((*uids)[0], getuid());
        EXPECT_EQ((*uids)[1], geteuid());
    }
    const Sleeper dead;
    ::kill(static_cast<pid_t>(dead.pid()), SIGKILL);
    EXPECT_EQ(dead.killed_by(), SIGKILL);
    EXPECT_FALSE(uids_now(dead.pid(), dead.pidfd()).has_value());
}

// Each takes a signal and a line of log: the others' claims come between.
TEST_F(KillsTest, TakeAFewATurn) {
    bench.pool({.name = "many", .slots = 40, .expiry = shm::ExpiryMode::kStrict});
    holder->peer.pidfd = shm::Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));  // no process
    for (uint16_t tag = 1; tag <= 40; ++tag) {
        shm::Submission entry = claim(tag, 1);
        entry.fence = 500;
        bench.push(*holder, entry);
    }
    bench.turn();
    ASSERT_EQ(bench.core.pool(1).leased, 40U);
    bench.now = 1501;
    bench.turn();
    EXPECT_EQ(bench.core.pool(1).kills_total, 40U);
    for (const uint64_t failed : {16U, 32U, 40U}) {
        EXPECT_TRUE(bench.kills.any());
        bench.turn();
        EXPECT_EQ(bench.core.pool(1).kills_failed_total, failed);
    }
    EXPECT_FALSE(bench.kills.any());
}

// Nobody else would: what a broker that stops leaves is clean, and no successor looks at it.
TEST_F(KillsTest, AreFinishedByWhoeverStops) {
    bench.pool({.name = "many", .slots = 40, .expiry = shm::ExpiryMode::kStrict});
    const Sleeper process;
    holder->peer.pidfd = shm::Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));  // no process
    be(*other, process);
    for (uint16_t tag = 1; tag <= 39; ++tag) {
        shm::Submission entry = claim(tag, 1);
        entry.fence = 500;
        bench.push(*holder, entry);
    }
    bench.turn();
    shm::Submission last = claim(1, 1);
    last.fence = 500;
    bench.push(*other, last);
    bench.turn();
    bench.now = 2001;
    bench.turn();
    bench.kills.finish();
    EXPECT_EQ(process.killed_by(), SIGKILL);
}

TEST_F(KillsTest, RefuseWhoCouldNotBeKilled) {
    holder->peer.killable = false;
    const shm::Completion refused = hold(*holder, 500);
    EXPECT_EQ(refused.outcome, Outcome::kRejected);
    EXPECT_EQ(refused.reason, Reason::kUnkillable);
    EXPECT_EQ(bench.core.pool(0).idle, 2U);
    const shm::Completion granted = hold(*other, 0);
    shm::Submission adopt = word(Op::kAdopt, granted.id, granted.fence);
    adopt.tag = 3;
    bench.push(*holder, adopt);
    bench.turn();
    EXPECT_EQ(bench.next(*holder)->reason, Reason::kUnkillable);
}

TEST_F(KillsTest, AreRepeatedByWhoeverTakesOver) {
    const Sleeper process;
    holder->peer.pidfd = shm::Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
    (void)hold(*holder, 500);
    bench.now = 1501;
    bench.turn();
    bench.turn();
    be(*holder, process);
    bench.kills.resume();
    bench.turn();
    EXPECT_EQ(process.killed_by(), SIGKILL);
}

TEST_F(KillsTest, EndASessionThatBreaksARuleWithItsProcessOnly) {
    const Sleeper process;
    be(*holder, process);
    const shm::Completion granted = hold(*holder, 0);
    bench.sessions.end(holder, Reason::kMalformed);
    bench.turn();
    EXPECT_EQ(process.killed_by(), SIGKILL);
    EXPECT_FALSE(bench.deaths.any());  // nothing to do until the death is heard of
    EXPECT_EQ(lease_of(granted).state, LeaseState::kLive);
    bench.sessions.drain(holder);
    EXPECT_TRUE(bench.deaths.any());
    bench.turn();
    EXPECT_EQ(lease_of(granted).state, LeaseState::kFree);
}

TEST_F(KillsTest, FindAStrictLeaseAmongOthers) {
    const Sleeper process;
    bench.pool({.name = "cpu", .slots = 8});
    be(*holder, process);
    for (uint16_t tag = 4; tag < 7; ++tag)
        bench.push(*holder, claim(tag, 1));
    bench.push(*holder, claim(static_cast<uint16_t>(holder->sizes.tags - 1)));
    bench.turn();
    ASSERT_EQ(bench.core.session(holder->row).leases, 4U);
    bench.sessions.end(holder, Reason::kMalformed);
    bench.turn();
    EXPECT_EQ(process.killed_by(), SIGKILL);
    EXPECT_NE(bench.sessions.at(holder->row), nullptr);
}

TEST_F(KillsTest, LeaveAloneWhoHoldsNothingStrictly) {
    const Sleeper process;
    bench.pool({.name = "cpu", .slots = 1});
    const shm::Completion strict = hold(*holder, 0);
    be(*other, process);
    bench.push(*other, claim(1, 1));
    bench.turn();
    ASSERT_EQ(bench.core.session(other->row).leases, 1U);
    bench.sessions.end(other, Reason::kMalformed);
    bench.turn();
    EXPECT_FALSE(other->condemned);
    EXPECT_EQ(bench.core.pool(1).idle, 1U);
    pollfd alive = {process.pidfd(), POLLIN, 0};
    EXPECT_EQ(poll(&alive, 1, 0), 0);
    EXPECT_EQ(lease_of(strict).state, LeaseState::kLive);
}

TEST(Killing, IsAskedForWithoutDoingIt) {
    const Sleeper process;
    EXPECT_TRUE(may_kill(process.pidfd()));
    pollfd dead = {process.pidfd(), POLLIN, 0};
    EXPECT_EQ(poll(&dead, 1, 0), 0);
    EXPECT_TRUE(kill_process(process.pidfd()));
    EXPECT_EQ(process.killed_by(), SIGKILL);
    EXPECT_TRUE(kill_process(process.pidfd()));  // dead already
}

}  // namespace
}  // namespace dibs::test
