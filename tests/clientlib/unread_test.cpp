// tests/clientlib/unread_test.cpp -- what waits when completions that nobody reaps have taken all
// the room there is: it ends, and nothing is lost.
//
// Four claims that may wait again are granted, taken and granted again while the wait goes on: two
// completions each, in a session that has room for eight.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

constexpr uint32_t kTaken = 4;
constexpr uint64_t lease_id(uint32_t generation, uint16_t tag) {
    return uint64_t{generation} << 32 | tag;
}

struct Unread : testing::Test {
    Unread()
        : broker([this](FakeSession& session, const Submission& entry) {
              if (entry.op == Op::kClaim && claimed.size() < kTaken) {
                  claimed.push_back(entry);
                  return session.grant(entry, lease_id(1, entry.tag), entry.tag + 1U);
              }
              if (entry.op == awaited && !filled) {
                  fill(session);
                  // A claim that is awaited is granted when it is cancelled: a grant that came
                  // beside the full room might be taken before the room is looked at.
                  if (entry.op == Op::kClaim) return late.push_back(entry);
              }
              if (entry.op == Op::kClaim) {
                  session.grant(entry, lease_id(1, entry.tag), 9);
              } else if (entry.op == Op::kCancel && !late.empty()) {
                  session.grant(late.back(), lease_id(1, entry.tag), 9);
                  late.clear();
              } else {
                  session.result(entry);
              }
          }),
          client(broker, small()) {
        dibs_claim_options options = {};
        options.size = sizeof options;
        options.timeout_ns = DIBS_FOREVER;
        options.requeue = 1;
        for (uint32_t i = 0; i < kTaken; ++i) {
            dibs_completion end = {};
            EXPECT_EQ(dibs_claim(client, 0, &options, &end), DIBS_OK);
            EXPECT_EQ(end.outcome, DIBS_GRANTED);
        }
    }
    static dibs_connect_options small() {
        dibs_connect_options options = {};
        options.submission_entries = 8;
        options.completion_entries = 16;
        return options;
    }
    void fill(FakeSession& session) {
        filled = true;
        for (const Submission& entry : claimed)
            session.grant(
                entry, lease_id(2, entry.tag), entry.tag + 11U, 0, shm::kNoRow, entry.tag + 1U);
    }
    // Everything that is there, by kind.
    std::map<int, int> reap() {
        std::map<int, int> kinds;
        dibs_completion out[16] = {};
        const int count = dibs_reap(client, out, 16, DIBS_NOWAIT);
        for (int i = 0; i < count; ++i)
            ++kinds[out[i].kind];
        return kinds;
    }

    Op awaited = Op::kNop;  // at which the room is filled; these before the thread that uses them
    bool filled = false;
    std::vector<Submission> claimed;
    std::vector<Submission> late;  // to be granted with its cancel
    FakeBroker broker;
    Client client;
};

const std::map<int, int> kBoth = {{DIBS_CLAIM_ENDED, 4}, {DIBS_LEASE_REQUEUED, 4}};

TEST_F(Unread, EndsAClaimAndGivesBackWhatItIsGrantedLate) {
    broker.call([this](FakeSession&) { awaited = Op::kClaim; });
    dibs_completion end = {};
    EXPECT_EQ(dibs_claim(client, 0, nullptr, &end), DIBS_EUNREAD);
    EXPECT_EQ(end.outcome, DIBS_NO_OUTCOME);
    broker.wait_for(kTaken + 2);  // the cancel: the claim's own grant is there, too
    EXPECT_EQ(reap(), kBoth);
    EXPECT_TRUE(reap().empty());
    broker.wait_for(kTaken + 3);
    const std::vector<Submission> seen = broker.seen();
    EXPECT_EQ(seen[kTaken + 1].op, Op::kCancel);
    EXPECT_EQ(seen[kTaken + 2].op, Op::kRelease);
    EXPECT_EQ(seen[kTaken + 2].id, lease_id(1, kTaken));
    EXPECT_EQ(dibs_claim(client, 0, nullptr, &end), DIBS_OK);
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
}

TEST_F(Unread, EndsTheWaitForAnAnswer) {
    broker.call([this](FakeSession&) { awaited = Op::kReady; });
    EXPECT_EQ(dibs_ready(client, 5, 1, DIBS_FOREVER), DIBS_EUNREAD);
    EXPECT_EQ(reap(), kBoth);
    EXPECT_EQ(dibs_ready(client, 5, 1, DIBS_FOREVER), DIBS_OK);
}

TEST_F(Unread, EndsTheWaitForAnAssignment) {
    broker.call([this](FakeSession& session) {
        fill(session);
        session.revoke(5, 1, 3);
    });
    dibs_assignment assignment = {};
    EXPECT_EQ(dibs_next_assignment(client, DIBS_FOREVER, &assignment), DIBS_EUNREAD);
    EXPECT_EQ(reap(), kBoth);
    EXPECT_EQ(dibs_next_assignment(client, DIBS_FOREVER, &assignment), DIBS_OK);
    EXPECT_EQ(assignment.slot, 5U);
}

}  // namespace
}  // namespace dibs::test
