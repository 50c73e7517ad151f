// tests/process/broker_liveness_test.cpp -- when dibsd takes a client for dead, and when not: a
// death is the death of the process that connected, whoever else holds what it held.
//
// Each runs twice: with the handle that the kernel gives for a connection (Linux 6.5), and with the
// pid of its credentials, as on older kernels.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "shm/operation.hpp"
#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

using shm::Outcome;
using shm::Reason;

class Liveness : public testing::TestWithParam<bool> {
  protected:
    static std::string config() {
        return std::string("peer_pidfd = ") + (GetParam() ? "true" : "false") +
               "\n[[pool]]\nname = \"token\"\nkind = \"counted\"\nslots = 1\n";
    }

    const Folder folder_;
    const Dibsd dibsd_{folder_, config()};
};

// Lives until the test lets it go, or ends.
class Leash {
  public:
    Leash() {
        if (pipe2(ends_, O_CLOEXEC) != 0) _exit(1);
    }
    ~Leash() { let_go(); }
    Leash(const Leash&) = delete;
    Leash& operator=(const Leash&) = delete;
    void let_go() {
        for (int& end : ends_) {
            if (end >= 0) close(end);
            end = -1;
        }
    }
    // In a child.
    void hold() const {
        close(ends_[1]);
        char none = 0;
        (void)!read(ends_[0], &none, 1);
    }

  private:
    int ends_[2] = {-1, -1};
};

// Claims the one token, and never gives it back.
void take(RawClient& client, uint64_t interval_ns = 0) {
    shm::Submission entry;
    entry.op = shm::Op::kClaim;
    entry.units = 1;
    entry.id = shm::kNever;
    entry.fence = interval_ns;
    client.submit(entry);
    if (client.wait()->outcome != Outcome::kGranted) _exit(3);
}

// Who is said to hold it, to one who would not wait.
shm::Holder holder(RawClient& client) {
    client.claim(7, 0, 1, 0);
    const auto end = client.wait();
    EXPECT_EQ(end->reason, Reason::kBusy);
    return shm::holder_of(*end);
}

void expect_grant(RawClient& client) {
    client.claim(1);
    EXPECT_EQ(client.wait()->outcome, Outcome::kGranted);
}

TEST_P(Liveness, AKilledProcessGivesBackWhatItHeld) {
    Child child([&](const Child&) {
        RawClient client(dibsd_.socket());
        take(client);
    });
    ASSERT_EQ(child.marked(), 'e');
    RawClient waiting(dibsd_.socket());
    EXPECT_EQ(holder(waiting).pid, static_cast<uint32_t>(child.pid()));
    child.kill();
    expect_grant(waiting);
}

TEST_P(Liveness, AForkedChildThatKeepsTheSocketKeepsNothing) {
    Leash leash;
    Child child([&](const Child& self) {
        RawClient client(dibsd_.socket());
        take(client);
        if (fork() == 0) {
            self.mark('f');
            leash.hold();
            _exit(0);
        }
        for (;;)
            pause();
    });
    ASSERT_EQ(child.marked(), 'f');
    RawClient waiting(dibsd_.socket());
    (void)holder(waiting);
    child.kill();
    expect_grant(waiting);  // its child still has the socket, and the segments
}

TEST_P(Liveness, AStoppedProcessKeepsALeaseThatIsBoundToItsLife) {
    Child child([&](const Child&) {
        RawClient client(dibsd_.socket());
        take(client);
    });
    ASSERT_EQ(child.marked(), 'e');
    ASSERT_EQ(kill(child.pid(), SIGSTOP), 0);
    RawClient waiting(dibsd_.socket());
    EXPECT_EQ(holder(waiting).pid, static_cast<uint32_t>(child.pid()));
    child.kill();
    expect_grant(waiting);
}

TEST_P(Liveness, AStoppedProcessLosesALeaseThatItDoesNotKeepAlive) {
    Child child([&](const Child& self) {
        RawClient client(dibsd_.socket());
        take(client, 50'000'000);
        self.mark('t');
        raise(SIGSTOP);
    });
    ASSERT_EQ(child.marked(), 't');
    RawClient waiting(dibsd_.socket());
    expect_grant(waiting);
}

TEST_P(Liveness, AProcessThatHasClosedItsConnectionKeepsWhatItHeld) {
    Child child([&](const Child&) {
        RawClient client(dibsd_.socket());
        take(client);
        close(client.socket());
    });
    ASSERT_EQ(child.marked(), 'e');
    RawClient waiting(dibsd_.socket());
    // Often enough for the broker to have looked at the hang-up, were it listening for it.
    for (int i = 0; i < 1000; ++i)
        ASSERT_EQ(holder(waiting).pid, static_cast<uint32_t>(child.pid())) << i;
    child.kill();
    expect_grant(waiting);
}

TEST_P(Liveness, AnotherProgramInTheSameProcessKeepsWhatItHeld) {
    Child child([&](const Child& self) {
        auto client = std::make_unique<RawClient>(dibsd_.socket());
        take(*client);
        self.mark('t');
        execl("/bin/sleep", "sleep", "1000", nullptr);
    });
    ASSERT_EQ(child.marked(), 't');
    const std::string comm = "/proc/" + std::to_string(child.pid()) + "/comm";
    for (std::string name; name != "sleep"; sched_yield())
        std::getline(std::ifstream(comm) >> std::ws, name);
    RawClient waiting(dibsd_.socket());
    EXPECT_EQ(holder(waiting).pid, static_cast<uint32_t>(child.pid()));
    child.kill();
    expect_grant(waiting);
}

TEST_P(Liveness, WhoeverWasGivenTheSocketDoesNotKeepTheSession) {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    Child owner([&](const Child&) {
        RawClient client(dibsd_.socket());
        take(client);
        char byte = 'x';
        struct iovec part = {&byte, 1};
        alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        struct msghdr message = {};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        const int passed = client.socket();
        std::memcpy(CMSG_DATA(header), &passed, sizeof(passed));
        if (sendmsg(pair[0], &message, 0) != 1) _exit(4);
        for (;;)
            pause();
    });
    Child heir([&](const Child&) {
        char byte = 0;
        struct iovec part = {&byte, 1};
        alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        struct msghdr message = {};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        if (recvmsg(pair[1], &message, 0) != 1) _exit(4);
    });
    ASSERT_EQ(heir.marked(), 'e');  // and stays, with the socket
    RawClient waiting(dibsd_.socket());
    EXPECT_EQ(holder(waiting).pid, static_cast<uint32_t>(owner.pid()));
    owner.kill();
    expect_grant(waiting);
    close(pair[0]);
    close(pair[1]);
}

TEST_P(Liveness, AClientInAPidNamespaceOfItsOwnIsWatchedLikeAnyOther) {
    Leash leash;
    Child child([&](const Child& self) {
        if (unshare(CLONE_NEWPID) != 0) return self.mark('s');
        if (fork() == 0) {
            RawClient client(dibsd_.socket());
            take(client);
            self.mark(getpid() == 1 ? 't' : '?');
            leash.hold();
            _exit(0);
        }
        leash.let_go();
        for (;;)
            pause();
    });
    const char mark = child.marked();
    if (mark == 's') GTEST_SKIP() << "may not make a PID namespace";
    ASSERT_EQ(mark, 't');
    RawClient waiting(dibsd_.socket());
    EXPECT_GT(holder(waiting).pid, 1U);  // as the broker's namespace numbers it
    leash.let_go();
    expect_grant(waiting);
}

TEST_P(Liveness, TimeoutsAndIntervalsHoldInATimeNamespaceThatIsADayAhead) {
    Child child([&](const Child& self) {
        if (unshare(CLONE_NEWTIME) != 0) return self.mark('s');
        std::ofstream offsets("/proc/self/timens_offsets");
        offsets << "monotonic 86400 0\n" << std::flush;
        if (!offsets) return self.mark('s');
        if (fork() == 0) {
            RawClient client(dibsd_.socket());
            RawClient bound(dibsd_.socket());
            take(bound);
            client.claim(1, 0, 1, 5'000'000);
            const auto late = client.wait();
            self.mark(late->outcome == Outcome::kExpired ? 't' : '?');
            bound.worker_word(shm::Op::kClose, 0, 0);
            take(client, 50'000'000);
            client.claim(2);  // when its own lease has expired
            self.mark(client.wait()->outcome == Outcome::kGranted ? 'g' : '?');
            _exit(0);
        }
        for (;;)
            pause();
    });
    const char mark = child.marked();
    if (mark == 's') GTEST_SKIP() << "may not make a time namespace";
    EXPECT_EQ(mark, 't');
    EXPECT_EQ(child.marked(), 'g');
}

INSTANTIATE_TEST_SUITE_P(Kernel, Liveness, testing::Values(true, false), [](const auto& way) {
    return std::string(way.param ? "WithPeerPidfd" : "BeforePeerPidfd");
});

// A broker whose namespace does not show the client: no pid to watch.
char attach_from_outside(bool peer_pidfd, std::string* text) {
    const Folder folder;
    Child host([&](const Child& self) {
        if (unshare(CLONE_NEWPID) != 0) return self.mark('s');
        const Dibsd dibsd(folder,
                          std::string("peer_pidfd = ") + (peer_pidfd ? "true\n" : "false\n"));
        self.mark(dibsd.ready() ? 'r' : '?');
        for (;;)
            pause();
    });
    const char mark = host.marked();
    if (mark != 'r') return mark;
    const RawClient client(folder.path() + "/dibs.sock");
    *text = {client.farewell().text, client.farewell().text_size};
    return client.attached() ? 'a' : 'n';
}

TEST(LivenessOutOfSight, IsRefusedWhereNothingCouldBeWatched) {
    std::string text;
    const char end = attach_from_outside(false, &text);
    if (end == 's') GTEST_SKIP() << "may not make a PID namespace";
    EXPECT_EQ(end, 'n');
    EXPECT_EQ(text, "process 0 cannot be watched: it is gone, or not in sight of this broker");
}

TEST(LivenessOutOfSight, IsServedWhereTheKernelGivesAHandleOnThePeer) {
    std::string text;
    const char end = attach_from_outside(true, &text);
    if (end == 's') GTEST_SKIP() << "may not make a PID namespace";
    if (end == 'n') GTEST_SKIP() << "this kernel gives no handle: " << text;
    EXPECT_EQ(end, 'a');
}

}  // namespace
}  // namespace dibs::test
