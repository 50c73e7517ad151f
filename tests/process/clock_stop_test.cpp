// tests/process/clock_stop_test.cpp -- a broker that was stopped, and goes on or is followed by
// another: what its clients said in time counts, and no deadline has moved closer.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/process/dibsd.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/stall.hpp"

namespace dibs::test {
namespace {

using shm::Op;
using shm::Outcome;
using shm::Reason;

constexpr uint64_t kMs = 1'000'000;
const char* const kPool = "[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 200\n";

shm::Completion claim(RawClient& client, uint64_t interval_ns, uint16_t tag = 0) {
    shm::Submission entry;
    entry.op = Op::kClaim;
    entry.units = 1;
    entry.tag = tag;
    entry.id = shm::kNever;
    entry.fence = interval_ns;
    client.submit(entry);
    const auto granted = client.wait();
    EXPECT_EQ(granted->outcome, Outcome::kGranted);
    return *granted;
}

void keep(RawClient& client, const shm::Completion& lease) {
    shm::Submission entry;
    entry.op = Op::kKeepalive;
    entry.id = lease.id;
    entry.fence = lease.fence;
    client.submit(entry);
}

// More than one turn reads, and more than one look at the bells shows.
TEST(ClockStop, ReadsEveryRingBeforeAnythingEnds) {
    constexpr size_t kSessions = 90;
    constexpr uint16_t kLeases = 2;
    const Folder folder;
    const Dibsd dibsd(folder, kPool);
    std::vector<std::unique_ptr<RawClient>> clients;
    std::vector<shm::Completion> leases;
    for (size_t i = 0; i < kSessions; ++i) {
        clients.push_back(std::make_unique<RawClient>(dibsd.socket()));
        ASSERT_TRUE(clients.back()->attached());
        for (uint16_t tag = 0; tag < kLeases; ++tag)
            leases.push_back(claim(*clients.back(), 4'000 * kMs, tag));
    }
    stop(dibsd.pid());
    for (size_t i = 0; i < leases.size(); ++i)
        keep(*clients[i / kLeases], leases[i]);
    let_pass(5'000 * kMs);
    dibsd.signal(SIGCONT);
    for (size_t i = 0; i < leases.size(); ++i)
        ASSERT_EQ(clients[i / kLeases]->wait()->reason, Reason::kOk) << "lease " << i;
}

TEST(ClockStop, MovesEveryDeadline) {
    const Folder folder;
    const Dibsd dibsd(folder, kPool);
    RawClient client(dibsd.socket());
    (void)claim(client, 100 * kMs, 0);  // is due first, and ends
    const shm::Completion later = claim(client, 1'500 * kMs, 1);
    stop(dibsd.pid());
    let_pass(2'000 * kMs);
    dibsd.signal(SIGCONT);
    client.release(later);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
}

TEST(ClockStop, IsNotForgottenByTheNextBroker) {
    for (bool went_on = false; !went_on;) {
        const Folder folder;
        const KeptDibsd dibsd(folder, kPool);
        RawClient client(dibsd.socket());
        const shm::Completion soon = claim(client, 500 * kMs, 0);
        const shm::Completion later = claim(client, 1'400 * kMs, 1);
        const pid_t first = dibsd.broker();
        stop(first);
        keep(client, soon);
        let_pass(1'500 * kMs);
        kill(first, SIGCONT);
        EXPECT_EQ(client.wait()->reason, Reason::kOk);
        went_on = client.board().epoch.load() == 1;  // else it has been missed: played again
        dibsd.kill_broker();
        client.release(later);
        EXPECT_EQ(client.wait()->reason, Reason::kOk);
    }
}

TEST(ClockStop, OfABrokerThatIsKilledInItEndsNothing) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPool);
    RawClient client(dibsd.socket());
    const shm::Completion kept = claim(client, 1'000 * kMs, 0);
    const shm::Completion later = claim(client, 1'600 * kMs, 1);
    stop(dibsd.broker());
    keep(client, kept);
    let_pass(1'700 * kMs);
    dibsd.kill_broker();
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
    client.release(later);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
}

TEST(HangWatch, MissesABrokerThatIsStoppedInItsSleepOnceSomethingIsDue) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPool);
    RawClient client(dibsd.socket());
    const shm::Completion kept = claim(client, 1'000 * kMs);
    let_pass(100 * kMs);  // it does not spin for as long
    stop(dibsd.broker());
    keep(client, kept);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
    EXPECT_EQ(client.board().epoch.load(), 2U);
}

// Nothing is due: whoever comes is what it is missed for.
TEST(HangWatch, MissesABrokerThatIsStoppedInItsSleepOnceSomebodyCalls) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPool);
    const pid_t first = dibsd.broker();
    stop(first);
    const RawClient client(dibsd.socket());
    EXPECT_TRUE(client.attached());
    EXPECT_EQ(client.board().epoch.load(), 2U);
    // The next one as well, whose keeper was told of it by its broker.
    const pid_t keeper = dibsd.keeper();
    dibsd.kill_keeper();
    (void)dibsd.keeper(keeper);
    ASSERT_TRUE(RawClient(dibsd.socket()).attached());  // not before that keeper holds it
    stop(dibsd.broker());
    const RawClient other(dibsd.socket());
    EXPECT_EQ(client.board().epoch.load(), 3U);
}

// It gets no CPU for a while, say, just when somebody comes, and nobody has come for long.
TEST(HangWatch, LetsABrokerLiveThatAnswersLate) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPool);
    const pid_t first = dibsd.broker();
    let_pass(3'000 * kMs);
    stop(first);
    const shm::Descriptor caller = connect_to(dibsd.socket());
    let_pass(1'000 * kMs);
    kill(first, SIGCONT);
    const RawClient client(dibsd.socket());
    EXPECT_EQ(client.board().epoch.load(), 1U);
}

// From whoever takes his time: a name may be asked for over a network.
TEST(HangWatch, LetsABrokerLiveThatReadsItsConfiguration) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPool);
    const pid_t first = dibsd.broker();
    ASSERT_EQ(unlink(dibsd.config_file().c_str()), 0);
    ASSERT_EQ(mkfifo(dibsd.config_file().c_str(), 0600), 0);
    kill(first, SIGHUP);
    const RawClient client(dibsd.socket());  // when nobody has written for five seconds
    EXPECT_EQ(client.board().epoch.load(), 1U);
}

// Whoever is slow to say who he is keeps the broker busy, and is none.
TEST(HangWatch, LetsABrokerLiveThatManyCall) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPool);
    const pid_t first = dibsd.broker();
    std::vector<shm::Descriptor> callers;
    for (int i = 0; i < 3; ++i) {
        for (int caller = 0; caller < 100; ++caller)
            callers.push_back(connect_to(dibsd.socket()));
        let_pass(1'100 * kMs);
    }
    EXPECT_EQ(dibsd.broker(), first);
}

}  // namespace
}  // namespace dibs::test
