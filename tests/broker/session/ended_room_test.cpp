// tests/broker/session/ended_room_test.cpp -- when the room of a lease that its worker has ended is
// free.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "shm/operation.hpp"

#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::Op;
using shm::Outcome;
using shm::Reason;
using shm::OpFlag::kQuiet;
using shm::OpFlag::kThenReady;

// A claim of "web" takes 2,112 of the client's 4,096 bytes: room for one.
struct EndedRoom : testing::Test {
    void SetUp() override {
        bench.pool({.name = "web",
                    .kind = shm::PoolKind::kWorker,
                    .payload_max = 240,
                    .answer_max = 1024});
        client =
            &bench.open({.submission_entries = 8, .completion_entries = 64, .down_payload = 4096});
        worker = &bench.open();
        shm::Submission announce;
        announce.op = Op::kAnnounce;
        announce.flags = kThenReady;
        bench.push(*worker, announce);
        bench.turn();
        ASSERT_TRUE(bench.next(*worker));
        all = client->rooms.lines_free();
    }
    // Claims under tag 5; its worker ends the lease. What was granted.
    shm::Completion claim_until_done() {
        bench.push(*client, claim(5));
        bench.turn();
        const auto assigned = bench.next(*worker);
        bench.push(*worker, word(Op::kConfirm, assigned->id, assigned->fence, kQuiet));
        bench.push(*worker, word(Op::kDone, assigned->id, assigned->fence, kQuiet | kThenReady));
        bench.turn();
        const auto granted = bench.next(*client);
        EXPECT_EQ(granted->outcome, Outcome::kGranted);
        bench.release_read(*client);
        return *granted;
    }
    std::optional<shm::Completion> claim_under_tag_6() {
        bench.push(*client, claim(6));
        bench.turn();
        return bench.next(*client);
    }
    shm::Submission reads_no_more() const {
        shm::Submission entry = word(Op::kNop, 1, 0, kQuiet);
        entry.tag = 5;
        return entry;
    }
    Bench bench;
    Session* client = nullptr;
    Session* worker = nullptr;
    uint32_t all = 0;
};

TEST_F(EndedRoom, IsNoOtherClaims) {
    claim_until_done();
    const auto refused = claim_under_tag_6();
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->reason, Reason::kNoRoom);
    const shm::Rule rule = shm::rule_in(refused->value);
    EXPECT_EQ(rule.key, shm::RuleKey::kDownPayload);
    EXPECT_EQ(rule.number, 2112U);
}

TEST_F(EndedRoom, IsFreeForTheClaimBehindItsClientsWord) {
    claim_until_done();
    bench.push(*client, reads_no_more());
    EXPECT_FALSE(claim_under_tag_6()) << "its slot is assigned, and nobody has said more";
    EXPECT_EQ(bench.next(*worker)->kind, shm::CompletionKind::kAssign);
}

TEST_F(EndedRoom, IsFreeForTheNextClaimOfItsTag) {
    claim_until_done();
    bench.push(*client, claim(5));  // what the first held is free once this turn is committed
    bench.turn();
    EXPECT_EQ(bench.next(*client)->reason, Reason::kNoRoom);
    bench.push(*client, claim(5));
    bench.turn();
    EXPECT_EQ(bench.next(*worker)->kind, shm::CompletionKind::kAssign);
}

// Its holder has not looked, and gives back what it takes for alive.
TEST_F(EndedRoom, IsFreeBehindAReleaseThatComesTooLate) {
    const shm::Completion ended = claim_until_done();
    shm::Submission release = word(Op::kRelease, ended.id, ended.fence, kQuiet);
    bench.push(*client, release);
    bench.turn();
    EXPECT_EQ(bench.next(*client)->reason, Reason::kAlreadyEnded);
    EXPECT_LT(client->rooms.lines_free(), all) << "it does not say whose tag it is";
    release.tag = 5;
    shm::set_key_word(release, ended.claim);
    bench.push(*client, release);
    bench.turn();
    EXPECT_EQ(client->rooms.lines_free(), all);
}

TEST_F(EndedRoom, IsKeptWhenALeaseThatLivesIsNamed) {
    bench.push(*client, claim(5));
    bench.turn();
    const auto assigned = bench.next(*worker);
    bench.push(*worker, word(Op::kConfirm, assigned->id, assigned->fence, kQuiet));
    bench.turn();
    ASSERT_TRUE(bench.next(*client));
    bench.release_read(*client);
    const uint32_t held = client->rooms.lines_free();
    bench.push(*client, reads_no_more());
    shm::Submission beyond = reads_no_more();
    beyond.tag = 65535;
    bench.push(*client, beyond);
    bench.turn();
    EXPECT_FALSE(bench.next(*client));
    EXPECT_EQ(client->rooms.lines_free(), held);
}

// The grant may still be looked at: it lies in that room.
TEST_F(EndedRoom, WaitsUntilItsGrantHasBeenRead) {
    bench.push(*client, claim(5));
    bench.turn();
    const auto assigned = bench.next(*worker);
    bench.push(*worker, word(Op::kConfirm, assigned->id, assigned->fence, kQuiet));
    bench.push(*worker, word(Op::kDone, assigned->id, assigned->fence, kQuiet | kThenReady));
    bench.turn();
    bench.push(*client, reads_no_more());
    bench.turn();
    EXPECT_LT(client->rooms.lines_free(), all);
    ASSERT_TRUE(bench.next(*client));
    bench.release_read(*client);
    bench.push(*client, {});
    bench.turn();
    EXPECT_EQ(client->rooms.lines_free(), all);
}

}  // namespace
}  // namespace dibs::test
