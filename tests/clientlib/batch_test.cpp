// tests/clientlib/batch_test.cpp -- many operations at a time, what stops them, and event loops.
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "clientlib/session.hpp"
#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

std::vector<dibs_op> claims(size_t count) {
    std::vector<dibs_op> ops;
    for (size_t i = 0; i < count; ++i)
        ops.push_back(operation(DIBS_OP_CLAIM, 100 + i));
    return ops;
}

TEST(Submit, AnswersEveryClaimOfABatchOnceInOrder) {
    FakeBroker broker;
    Client client(broker);
    std::vector<dibs_op> ops = claims(100);
    ASSERT_EQ(dibs_submit(client, ops.data(), 100), 100);
    std::vector<dibs_completion> ends(100);
    int reaped = 0;
    while (reaped < 100) {
        const int some = dibs_reap(client, &ends[static_cast<size_t>(reaped)], 7, DIBS_FOREVER);
        ASSERT_GT(some, 0);
        ASSERT_LE(some, 7);
        reaped += some;
    }
    for (size_t i = 0; i < 100; ++i) {
        EXPECT_EQ(ends[i].user_data, 100 + i);
        EXPECT_EQ(ends[i].outcome, DIBS_GRANTED);
    }
    EXPECT_EQ(dibs_reap(client, ends.data(), 1, DIBS_NOWAIT), 0);
    std::vector<dibs_op> releases;
    for (size_t i = 0; i < 100; ++i) {
        releases.push_back(operation(DIBS_OP_RELEASE, i));
        releases[i].lease = &ends[i].lease;
        releases[i].flags = DIBS_QUIET;
    }
    EXPECT_EQ(dibs_submit(client, releases.data(), 100), 100);
    broker.wait_for(200);
    EXPECT_EQ(dibs_reap(client, ends.data(), 1, DIBS_NOWAIT), 0);
}

// One line of the eight is dibs_close's.
TEST(Submit, TakesNoMoreThanTheRingHolds) {
    FakeBroker broker;
    dibs_connect_options sizes = {};
    sizes.submission_entries = 8;
    sizes.completion_entries = 64;
    Client client(broker, sizes);
    broker.hold();
    std::vector<dibs_op> ops = claims(12);
    EXPECT_EQ(dibs_submit(client, ops.data(), 12), 7);
    EXPECT_EQ(dibs_submit(client, &ops[7], 5), DIBS_EFULL);
    broker.go_on();
    broker.wait_for(7);
    dibs_completion ends[12] = {};
    int reaped = 0;
    while (reaped < 7)
        reaped += dibs_reap(client, &ends[reaped], 12, DIBS_FOREVER);
    EXPECT_EQ(dibs_submit(client, &ops[7], 5), 5);
}

TEST(Submit, RefusesMoreWhileCompletionsLieUnread) {
    FakeBroker broker;
    dibs_connect_options sizes = {};
    sizes.submission_entries = 8;
    sizes.completion_entries = 16;
    Client client(broker, sizes);
    std::vector<dibs_op> ops = claims(8);
    ASSERT_EQ(dibs_submit(client, ops.data(), 7), 7);
    broker.wait_for(7);
    ASSERT_EQ(dibs_submit(client, &ops[7], 1), 1);
    broker.wait_for(8);
    EXPECT_EQ(dibs_submit(client, ops.data(), 1), DIBS_EUNREAD);
    dibs_completion end = {};
    EXPECT_EQ(dibs_claim(client, 0, nullptr, &end), DIBS_EUNREAD);
    ASSERT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(dibs_submit(client, ops.data(), 1), 1);
}

TEST(Submit, RefusesPayloadsUntilTheBrokerHasReadTheEarlierOnes) {
    FakeBroker broker;
    dibs_connect_options sizes = {};
    sizes.up_payload = 4096;
    Client client(broker, sizes);
    broker.hold();
    const std::string body(1500, 'b');
    dibs_claim_options options = {};
    options.size = sizeof options;
    options.timeout_ns = DIBS_FOREVER;
    options.body = body.data();
    options.body_size = body.size();
    std::vector<dibs_op> ops = claims(3);
    for (dibs_op& op : ops)
        op.claim = &options;
    EXPECT_EQ(dibs_submit(client, ops.data(), 3), 2);
    EXPECT_EQ(dibs_submit(client, &ops[2], 1), DIBS_EFULL);
    broker.go_on();
    broker.wait_for(2);
    // Over and over: the area is used round and round.
    dibs_completion end = {};
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(dibs_claim(client, 0, &options, &end), DIBS_OK);
        ASSERT_EQ(end.outcome, DIBS_GRANTED);
        ASSERT_EQ(dibs_release(client, &end.lease, DIBS_NOWAIT), DIBS_OK);
    }
    options.body_size = 4097;
    const std::string large(4097, 'c');
    options.body = large.data();
    EXPECT_EQ(dibs_claim(client, 0, &options, &end), DIBS_EPAYLOAD);
}

// Where the last payload ended leaves too little room before the area's end, and before itself.
TEST(Submit, TakesEveryPayloadThatFitsOnceTheBrokerHasReadAll) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        if (entry.op != Op::kClaim) return session.result(entry);
        session.grant(entry, uint64_t{1} << 32 | entry.tag, session.payload(entry).size());
    });
    dibs_connect_options sizes = {};
    sizes.up_payload = 4096;
    Client client(broker, sizes);
    dibs_claim_options options = {};
    options.size = sizeof options;
    options.timeout_ns = DIBS_FOREVER;
    for (const size_t size : {1000UL, 3500UL, 8UL, 4000UL, 1000UL, 3500UL}) {
        const std::string body(size, 'b');
        options.body = body.data();
        options.body_size = size;
        dibs_completion end = {};
        ASSERT_EQ(dibs_claim(client, 0, &options, &end), DIBS_OK) << size;
        EXPECT_GT(end.lease.fence, size);
        broker.call([](FakeSession&) {});  // it has said that it has read the claim
        // What has no payload, unread or not, holds on to no room.
        ASSERT_EQ(dibs_release(client, &end.lease, DIBS_NOWAIT), DIBS_OK);
    }
}

// A line that is from before the area was begun anew, and read after that, frees nothing of it and
// takes nothing from it.
TEST(Submit, CountsNoLineAgainstPayloadsThatCameAfterIt) {
    FakeBroker broker;
    dibs_connect_options sizes = {};
    sizes.up_payload = 4096;
    Client client(broker, sizes);
    const std::string body(1800, 'b');
    dibs_claim_options options = {};
    options.size = sizeof options;
    options.timeout_ns = DIBS_FOREVER;
    options.body = body.data();
    options.body_size = body.size();
    std::vector<dibs_op> ops = claims(2);
    for (dibs_op& op : ops)
        op.claim = &options;
    dibs_completion end = {};
    ASSERT_EQ(dibs_claim(client, 0, &options, &end), DIBS_OK);
    broker.hold();
    client.get()->release_lines();  // all has been read
    dibs_op quiet = operation(DIBS_OP_READY, 0);
    quiet.flags = DIBS_QUIET;
    ASSERT_EQ(dibs_submit(client, &quiet, 1), 1);
    ASSERT_EQ(dibs_submit(client, ops.data(), 1), 1);
    broker.call([](FakeSession& session) {
        Submission entry;
        ASSERT_EQ(session.submissions.pop(entry), shm::Poll::kEntry);
        session.seen.push_back(entry);
        shm::commit_submissions(session.down(), session.submissions.head());
    });
    client.get()->release_lines();
    EXPECT_EQ(dibs_submit(client, &ops[1], 1), 1);
    broker.go_on();
    broker.wait_for(4);
    const std::vector<Submission> seen = broker.seen();
    EXPECT_EQ(seen[2].payload_offset, 0U);
    EXPECT_GT(seen[3].payload_offset, 1800U);
    EXPECT_LT(seen[3].payload_offset, 2048U);
}

TEST(Submit, StopsAtTheFirstRefusedOperation) {
    FakeBroker broker;
    Client client(broker);
    std::vector<dibs_op> ops = claims(3);
    ops[1].pool = 6;
    EXPECT_EQ(dibs_submit(client, ops.data(), 3), 1);
    EXPECT_EQ(dibs_submit(client, &ops[1], 2), DIBS_EPOOL);
    ops[0].kind = 99;
    EXPECT_EQ(dibs_submit(client, ops.data(), 1), DIBS_EARGUMENT);
    ops[0].size = 7;
    EXPECT_EQ(dibs_submit(client, ops.data(), 1), DIBS_ESIZE);
    EXPECT_EQ(dibs_submit(client, nullptr, 1), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_submit(client, nullptr, 0), 0);
}

TEST(Submit, ResultsCarryTheirCodes) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        session.result(entry, Reason::kStale);
    });
    Client client(broker);
    const dibs_lease lease = {5, 6, 0x900000000ULL, 0, 1};
    dibs_op ops[3] = {operation(DIBS_OP_RELEASE, 1),
                      operation(DIBS_OP_KEEPALIVE, 2),
                      operation(DIBS_OP_READY, 3)};
    ops[0].lease = ops[1].lease = &lease;
    ASSERT_EQ(dibs_submit(client, ops, 3), 3);
    for (uint64_t i = 1; i <= 3; ++i) {
        dibs_completion end = {};
        ASSERT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
        EXPECT_EQ(end.kind, DIBS_RESULT);
        EXPECT_EQ(end.user_data, i);
        EXPECT_EQ(end.code, DIBS_ESTALE);
    }
}

TEST(Cancel, NamesTheClaimByItsTicketUntilItHasItsOutcome) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        if (entry.op == Op::kCancel) {
            session.refuse(session.seen[0], Outcome::kCancelled, Reason::kOk);
        }
    });
    Client client(broker);
    std::vector<dibs_op> ops = claims(1);
    ASSERT_EQ(dibs_submit(client, ops.data(), 1), 1);
    EXPECT_NE(ops[0].ticket, 0U);
    EXPECT_EQ(dibs_cancel(client, ops[0].ticket), DIBS_OK);
    dibs_completion end = {};
    ASSERT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(end.outcome, DIBS_CANCELLED);
    EXPECT_EQ(dibs_cancel(client, ops[0].ticket), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_cancel(client, 0), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_cancel(client, ~uint64_t{0}), DIBS_ENOTFOUND);
}

// The broker ends the lease of a grant that was faster, and says nothing of it.
TEST(Cancel, LeavesNothingHeldWhenTheGrantWasFaster) {
    uint64_t leases = 0;
    FakeBroker broker([&leases](FakeSession& session, const Submission& entry) {
        if (entry.op != Op::kCancel) return;
        ++leases;
        session.grant(session.seen[session.seen.size() - 2], uint64_t{1} << 32 | leases, leases);
    });
    dibs_connect_options sizes = {};
    sizes.leases_max = 8;
    Client client(broker, sizes);
    for (int i = 0; i < 20; ++i) {
        std::vector<dibs_op> ops = claims(1);
        ASSERT_EQ(dibs_submit(client, ops.data(), 1), 1) << i;
        ASSERT_EQ(dibs_cancel(client, ops[0].ticket), DIBS_OK);
        dibs_completion end = {};
        ASSERT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
        EXPECT_EQ(end.outcome, DIBS_GRANTED);
        if (i % 2 != 0) continue;
        EXPECT_EQ(dibs_release(client, &end.lease, 0), DIBS_ALREADY_ENDED);
    }
}

TEST(Reap, TellsOfLeasesThatEndWithoutTheirHoldersDoing) {
    FakeBroker broker;
    Client client(broker);
    std::vector<dibs_op> ops = claims(2);
    ASSERT_EQ(dibs_submit(client, ops.data(), 2), 2);
    dibs_completion ends[2] = {};
    int reaped = 0;
    while (reaped < 2)
        reaped += dibs_reap(client, &ends[reaped], 2, DIBS_FOREVER);
    broker.call([&](FakeSession& session) {
        session.event(static_cast<uint16_t>(ends[1].lease.tag),
                      shm::event_word(shm::LeaseEvent::kEnded, Reason::kWorkerLost, 1));
    });
    dibs_completion event = {};
    ASSERT_EQ(dibs_reap(client, &event, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(event.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(event.user_data, 101U);
    EXPECT_EQ(event.code, DIBS_EWORKERLOST);
    EXPECT_EQ(event.lease.id, ends[1].lease.id);
    EXPECT_EQ(dibs_reap(client, &event, 1, DIBS_NOWAIT), 0);
    EXPECT_EQ(dibs_reap(client, &event, 1, -1), DIBS_ENEGATIVE);
    EXPECT_EQ(dibs_reap(client, nullptr, 1, 0), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_reap(client, &event, 0, 0), DIBS_EARGUMENT);
}

TEST(Reap, WaitsAsleepUntilSomethingComes) {
    FakeBroker broker([](FakeSession&, const Submission&) {});
    Client client(broker);
    std::vector<dibs_op> ops = claims(1);
    ASSERT_EQ(dibs_submit(client, ops.data(), 1), 1);
    std::thread later([&broker] {
        // Grants once the client has gone to sleep.
        for (bool sleeping = false; !sleeping;) {
            broker.call([&sleeping](FakeSession& session) {
                sleeping = session.up().sleeping.load() == shm::ClientSleep::kFutex &&
                           !session.seen.empty();
                if (sleeping) session.grant(session.seen[0], uint64_t{1} << 32 | 4, 4);
            });
        }
    });
    dibs_completion end = {};
    EXPECT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
    later.join();
    uint64_t rings = 0;
    broker.call([&rings](FakeSession& session) { rings = session.up().net_rings.load(); });
    EXPECT_EQ(rings, 0U);
}

// The net's rings for a claim, with a broker that reads nothing until one has come.
class Net : public testing::Test {
  protected:
    // How many rings the client has counted by then. `arms`: when the broker says that it sleeps.
    enum class Arms { kNever, kBeforeTheClaim, kAfterTheClaim };
    uint64_t counted(Arms arms) {
        std::atomic<bool> begun = false;
        std::atomic<bool> claimed = false;
        uint64_t rings = 0;
        std::thread resting([&] {
            broker_.call([&](FakeSession& session) {
                shm::disarm_submissions(session.down());
                if (arms == Arms::kBeforeTheClaim) shm::arm_submissions(session.down());
                begun = true;
                while (!claimed)
                    sched_yield();
                if (arms == Arms::kBeforeTheClaim) hear(session);  // the claim's own ring
                if (arms == Arms::kAfterTheClaim) shm::arm_submissions(session.down());
                hear(session);
                rings = session.up().net_rings.load();
                shm::disarm_submissions(session.down());
            });
        });
        while (!begun)
            sched_yield();
        std::vector<dibs_op> ops = claims(1);
        EXPECT_EQ(dibs_submit(client_, ops.data(), 1), 1);
        claimed = true;
        dibs_completion end = {};
        EXPECT_EQ(dibs_reap(client_, &end, 1, DIBS_FOREVER), 1);
        EXPECT_EQ(end.outcome, DIBS_GRANTED);
        resting.join();
        return rings;
    }

  private:
    static void hear(const FakeSession& session) {
        pollfd bell = {session.bell, POLLIN, 0};
        EXPECT_EQ(poll(&bell, 1, -1), 1);
        uint64_t count = 0;
        EXPECT_EQ(read(session.bell, &count, sizeof count), 8);
    }

    FakeBroker broker_;
    Client client_{broker_};
};

TEST_F(Net, RingsForABrokerThatIsAwakeAndReadsNothing) {
    EXPECT_EQ(counted(Arms::kNever), 0U);
}

TEST_F(Net, RingsAgainForABrokerThatWasRungAndReadsNothing) {
    EXPECT_EQ(counted(Arms::kBeforeTheClaim), 0U);
}

TEST_F(Net, CountsWhatABrokerSleepsOnAndWasNotRungFor) {
    EXPECT_GT(counted(Arms::kAfterTheClaim), 0U);
}

TEST(Reap, ComesBackEmptyHandedAtItsTimeout) {
    FakeBroker broker;
    Client client(broker);
    dibs_completion end = {};
    EXPECT_EQ(dibs_reap(client, &end, 1, DIBS_MILLISECOND), 0);
}

// ---- event loops

bool readable(dibs_session* session, int timeout_ms) {
    pollfd one = {dibs_fd(session), POLLIN, 0};
    return poll(&one, 1, timeout_ms) == 1;
}

TEST(EventLoop, DescriptorBecomesReadableWhenArmed) {
    FakeBroker broker([](FakeSession&, const Submission&) {});
    Client client(broker);
    std::vector<dibs_op> ops = claims(2);
    ASSERT_EQ(dibs_submit(client, ops.data(), 2), 2);
    broker.wait_for(2);
    ASSERT_EQ(dibs_arm(client), DIBS_OK);
    EXPECT_FALSE(readable(client, 0));
    broker.call([](FakeSession& session) { session.grant(session.seen[0], 5, 5); });
    EXPECT_TRUE(readable(client, -1));
    EXPECT_EQ(dibs_dispatch(client), 1);
    EXPECT_FALSE(readable(client, 0));
    EXPECT_EQ(dibs_arm(client), DIBS_EREADY);  // one lies there to be reaped
    dibs_completion end = {};
    EXPECT_EQ(dibs_reap(client, &end, 1, DIBS_NOWAIT), 1);
    broker.call([](FakeSession& session) { session.grant(session.seen[1], 6, 6); });
    EXPECT_EQ(dibs_arm(client), DIBS_EREADY);  // it came while nobody was armed
    EXPECT_EQ(dibs_dispatch(client), 1);
}

TEST(EventLoop, DescriptorBecomesReadableWhenTheBrokerDies) {
    FakeBroker broker;
    Client client(broker);
    ASSERT_EQ(dibs_arm(client), DIBS_OK);
    broker.die();
    EXPECT_TRUE(readable(client, -1));
    EXPECT_EQ(dibs_dispatch(client), 0);
    EXPECT_EQ(dibs_arm(client), DIBS_EBROKERLOST);
}

TEST(EventLoop, DescriptorBecomesReadableWhenALeaseEnds) {
    FakeBroker broker;
    Client client(broker);
    const dibs_completion held = client.claim();
    ASSERT_EQ(dibs_arm(client), DIBS_OK);
    broker.call([&](FakeSession& session) {
        session.event(static_cast<uint16_t>(held.lease.tag),
                      shm::event_word(shm::LeaseEvent::kEnded, Reason::kDone, 1));
    });
    EXPECT_TRUE(readable(client, -1));
    EXPECT_EQ(dibs_dispatch(client), 1);
    dibs_completion event = {};
    ASSERT_EQ(dibs_reap(client, &event, 1, DIBS_NOWAIT), 1);
    EXPECT_EQ(event.code, DIBS_EDONE);
}

}  // namespace
}  // namespace dibs::test
