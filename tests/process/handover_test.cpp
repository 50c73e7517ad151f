// tests/process/handover_test.cpp -- keeper or broker dies while one hands everything to the other.
//
// The one that hands over is run from one system call to the next, and killed before or behind each
// of its words: every arrow of docs/protocol.md, "Keeper and takeover".
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/process/kept_dibsd.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/tracer.hpp"

namespace dibs::test {
namespace {

using shm::Outcome;
using shm::Reason;

void await_hang_up(const RawClient& client) {
    struct pollfd hang_up = {client.socket(), POLLRDHUP, 0};
    ASSERT_EQ(poll(&hang_up, 1, -1), 1);
    EXPECT_NE(hang_up.revents & (POLLHUP | POLLRDHUP), 0);
}

// A client of whoever listens there next.
std::unique_ptr<RawClient> next_client(const KeptDibsd& dibsd) {
    for (;; sched_yield()) {
        auto client = std::make_unique<RawClient>(dibsd.socket());
        if (client->attached()) return client;
    }
}

// Runs the process until it has said so many words, of which the first one is this; what it said.
std::vector<KeeperMessage> run_behind_words(Tracer& tracer, KeeperWord first, size_t words) {
    std::vector<KeeperMessage> said;
    bool leaves = false;  // the last one is on its way
    while (const auto call = tracer.next()) {
        if (leaves && said.size() == words) break;
        leaves = false;
        const auto message = tracer.said(*call);
        if (!message || (said.empty() && message->word != first)) continue;
        if (words == 0) break;
        said.push_back(*message);
        leaves = true;
    }
    return said;
}

pid_t control_thread(pid_t broker) {
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(broker) + "/task")) {
        const pid_t tid = std::stoi(task.path().filename());
        if (tid != broker) return tid;
    }
    return -1;
}

// begin, STATE, BOARD, listener, one session, the configuration: the broker has not everything
// until it hears go.
TEST(KeeperDeathInATakeover, EndsBothUnlessTheBrokerHasEverything) {
    constexpr size_t kWords = 7;
    for (size_t words = 0; words < 2 * kWords; ++words) {
        const bool standby = words < kWords;
        SCOPED_TRACE("killed behind word " + std::to_string(words % kWords) +
                     (standby ? " to a standby" : ""));
        const Folder folder;
        const KeptDibsd dibsd(
            folder,
            kCounted,
            {},
            standby ? std::vector<std::string>() : std::vector<std::string>{"--no-standby"});
        const RawClient client(dibsd.socket());
        if (standby) (void)dibsd.standby();
        auto keeper = Tracer::of_running(dibsd.keeper());
        if (!keeper) GTEST_SKIP() << kMayNotTrace;
        const shm::Descriptor keeper_end = pidfd_of(dibsd.keeper());
        const pid_t first = dibsd.broker();
        dibsd.kill_broker();
        const auto said = run_behind_words(*keeper, KeeperWord::kBegin, words % kWords);
        ASSERT_EQ(said.size(), words % kWords);
        // Until it has ended it may have the listener, and nobody else can listen there.
        const shm::Descriptor broker_end = pidfd_of(dibsd.successor(first));
        keeper->kill();
        EXPECT_TRUE(await_death(keeper_end));
        EXPECT_TRUE(await_death(broker_end));
        await_hang_up(client);
        const KeptDibsd another(folder, kCounted);  // on what is left in the folder
        EXPECT_TRUE(RawClient(another.socket()).attached());
    }
}

TEST(KeeperDeathInATakeover, IsMadeGoodByTheBrokerThatHasEverything) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1, 0, 2);
    const auto granted = client.wait();
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    auto keeper = Tracer::of_running(dibsd.keeper());
    if (!keeper) GTEST_SKIP() << kMayNotTrace;
    dibsd.kill_broker();
    for (bool go = false; !go;) {
        const auto call = keeper->next();
        ASSERT_TRUE(call);
        const auto message = keeper->said(*call);
        go = message && message->word == KeeperWord::kGo;
    }
    ASSERT_TRUE(keeper->next());  // it has left
    keeper->kill();
    client.release(*granted);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
    EXPECT_EQ(client.board().epoch.load(), 2U);
    // The keeper that this broker has started holds it all: a session that is welcome says so.
    const RawClient later(dibsd.socket());
    ASSERT_TRUE(later.attached());
    client.claim(2, 0, 2);
    const auto again = client.wait();
    dibsd.kill_broker();
    client.release(*again);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
    EXPECT_EQ(client.board().epoch.load(), 3U);
}

// adopt, STATE, BOARD, listener, configuration, two sessions: the new keeper goes on from what has
// arrived.
TEST(BrokerDeathInAnAdoption, LeavesWhatHasArrived) {
    constexpr size_t kWords = 7;
    for (size_t words = 0; words <= kWords; ++words) {
        SCOPED_TRACE("killed behind word " + std::to_string(words));
        const Folder folder;
        const KeptDibsd dibsd(folder, kCounted);
        std::vector<std::unique_ptr<RawClient>> clients;
        for (int i = 0; i < 2; ++i) {
            clients.push_back(std::make_unique<RawClient>(dibsd.socket()));
            clients.back()->claim(1);
        }
        std::vector<shm::Completion> grants;
        for (auto& client : clients)
            grants.push_back(*client->wait());
        auto control = Tracer::of_running(control_thread(dibsd.broker()));
        if (!control) GTEST_SKIP() << kMayNotTrace;
        kill_and_await(dibsd.keeper(), SIGKILL);
        const auto said = run_behind_words(*control, KeeperWord::kAdopt, words);
        control->kill();
        ASSERT_EQ(said.size(), words);
        if (words == 0) {  // the new keeper has nobody to keep for
            for (const auto& client : clients)
                await_hang_up(*client);
            continue;
        }
        uint16_t lost = 0;
        for (size_t i = 0; i < clients.size(); ++i) {
            const bool arrived = std::any_of(said.begin(), said.end(), [&](const auto& message) {
                return message.word == KeeperWord::kHold && message.what == Kept::kSession &&
                       message.row == clients[i]->welcome().session;
            });
            if (arrived) {
                clients[i]->release(grants[i]);
                const auto answer = clients[i]->wait();
                ASSERT_TRUE(answer);
                EXPECT_EQ(answer->reason, Reason::kOk);
            } else {
                await_hang_up(*clients[i]);
                ++lost;
            }
        }
        EXPECT_EQ(lost, std::min<size_t>(2, kWords - words));
        // What was held by those that are lost is there for others, and everything can be claimed.
        const auto next = next_client(dibsd);
        next->claim(1, 0, 2);
        const auto granted = next->wait();
        ASSERT_TRUE(granted);
        EXPECT_EQ(granted->outcome, Outcome::kGranted);
    }
}

// The keeper has the session, its client has had no Welcome and hangs up: the next broker finds
// that nobody has ever used it. There is room for two.
TEST(BrokerDeathInAHandshake, EndsASessionWhoseClientHasGivenUp) {
    const Folder folder;
    const KeptDibsd dibsd(folder, std::string("[limits]\nsessions = 2\n") + kCounted);
    RawClient client(dibsd.socket());
    auto control = Tracer::of_running(control_thread(dibsd.broker()));
    if (!control) GTEST_SKIP() << kMayNotTrace;
    shm::Descriptor impatient = connect_to(dibsd.socket());
    const shm::Hello hello;
    ASSERT_EQ(send(impatient.get(), &hello, sizeof hello, 0), ssize_t{sizeof hello});
    EXPECT_EQ(run_behind_words(*control, KeeperWord::kHold, 1).size(), 1U);
    control->kill();
    impatient.reset();
    client.claim(1);  // what is used by somebody goes on
    EXPECT_EQ(client.wait()->outcome, Outcome::kGranted);
    EXPECT_EQ(client.board().epoch.load(), 2U);
    (void)next_client(dibsd);
}

// The time in which nobody serves is nobody's, however many brokers die in it.
TEST(BrokerDeathInATakeover, ExpiresNothing) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted, {}, {"--no-standby"});
    RawClient client(dibsd.socket());
    shm::Submission claim;
    claim.op = shm::Op::kClaim;
    claim.units = 1;
    claim.id = shm::kNever;
    claim.fence = 10'000'000'000;  // its lease's interval
    client.submit(claim);
    const auto granted = client.wait();
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    auto keeper = Tracer::of_running(dibsd.keeper());
    if (!keeper) GTEST_SKIP() << kMayNotTrace;
    dibsd.kill_broker();
    auto successor = keeper->next_child();
    ASSERT_TRUE(successor);
    // Longer than the lease lives while somebody serves.
    const shm::Descriptor timer(timerfd_create(CLOCK_MONOTONIC, 0));
    const struct itimerspec later = {{}, {11, 0}};
    timerfd_settime(timer.get(), 0, &later, nullptr);
    uint64_t rings = 0;
    ASSERT_EQ(read(timer.get(), &rings, sizeof(rings)), 8);
    successor->kill();
    keeper->let_go();
    client.release(*granted);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
    EXPECT_EQ(client.board().epoch.load(), 2U);
}

}  // namespace
}  // namespace dibs::test
