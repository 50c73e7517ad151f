// tests/broker/journal/decision_text_test.cpp -- the text of each kind of decision, literally.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/decision_text.hpp"

#include <gtest/gtest.h>

namespace dibs::ctl {
namespace {

using core::Decision;
using core::DecisionKind;

NameTables names() {
    NameTables tables;
    tables.pools = {"gpu", "browser"};
    tables.sessions = {"alice", "worker"};
    tables.claims = {"", "c1", "c2"};
    tables.slots[{1, 4}] = "s1";
    tables.operations = {{"release", "claim", "c1"}, {"keepalive", "claim", "c2"}};
    return tables;
}

std::string text(const Decision& decision, std::vector<uint32_t> slots = {}) {
    return decision_text(decision, slots, names());
}

TEST(DecisionText, PrintsAGrantOfACountedPoolWithNumbers) {
    const Decision grant{.kind = DecisionKind::kGrant,
                         .session = 0,
                         .pool = 0,
                         .claim = 1,
                         .fence = 7,
                         .value = 5000};
    EXPECT_EQ(text(grant, {0, 3}),
              R"({"grant":{"claim":"c1","session":"alice","pool":"gpu","slots":[0,3],)"
              R"("fence":7,"interval_ns":5000}})");
}

TEST(DecisionText, PrintsAGrantOfAWorkerPoolWithItsSlotsNames) {
    const Decision grant{
        .kind = DecisionKind::kGrant, .session = 0, .pool = 1, .claim = 2, .fence = 1};
    EXPECT_EQ(text(grant, {4}),
              R"({"grant":{"claim":"c2","session":"alice","pool":"browser","slots":["s1"],)"
              R"("fence":1,"interval_ns":0}})");
}

TEST(DecisionText, NamesTheHolderInABusyEnd) {
    const Decision end{.kind = DecisionKind::kEnd,
                       .outcome = shm::Outcome::kRejected,
                       .reason = shm::Reason::kBusy,
                       .session = 0,
                       .pool = 0,
                       .claim = 2,
                       .value = 10000000,
                       .holder_uid = 1000,
                       .holder_pid = 12,
                       .holder_claim = 1,
                       .holder_age_ns = 99};
    EXPECT_EQ(text(end),
              R"({"end":{"claim":"c2","session":"alice","pool":"gpu","outcome":"rejected",)"
              R"("reason":"busy","retry_after_ns":10000000,)"
              R"("holder":{"claim":"c1","uid":1000,"pid":12,"age_ns":99}}})");
}

TEST(DecisionText, PrintsAWorkersCodeWithItsSign) {
    const Decision end{.kind = DecisionKind::kEnd,
                       .outcome = shm::Outcome::kRejected,
                       .reason = shm::Reason::kRefused,
                       .pool = 1,
                       .claim = 1,
                       .value = static_cast<uint64_t>(-7)};
    EXPECT_EQ(text(end),
              R"({"end":{"claim":"c1","pool":"browser","outcome":"rejected",)"
              R"("reason":"refused","code":-7}})");
}

TEST(DecisionText, NamesTheFirstClaimOfADuplicateKey) {
    const Decision end{.kind = DecisionKind::kEnd,
                       .outcome = shm::Outcome::kRejected,
                       .reason = shm::Reason::kDuplicate,
                       .session = 0,
                       .pool = 0,
                       .claim = 2,
                       .id = 1};
    EXPECT_EQ(text(end),
              R"({"end":{"claim":"c2","session":"alice","pool":"gpu","outcome":"rejected",)"
              R"("reason":"duplicate","first":"c1"}})");
}

TEST(DecisionText, SaysWhatAResultIsTheResultOf) {
    const Decision release{
        .kind = DecisionKind::kResult, .reason = shm::Reason::kStale, .session = 0, .user_data = 0};
    EXPECT_EQ(text(release),
              R"({"result":{"of":"release","claim":"c1","session":"alice","reason":"stale"}})");
    const Decision keepalive{
        .kind = DecisionKind::kResult, .session = 0, .user_data = 1, .value = 300};
    EXPECT_EQ(text(keepalive),
              R"({"result":{"of":"keepalive","claim":"c2","interval_ns":300,)"
              R"("session":"alice","reason":"ok"}})");
}

TEST(DecisionText, PrintsWhatAWorkerIsTold) {
    Decision told{.kind = DecisionKind::kAssign,
                  .session = 1,
                  .pool = 1,
                  .claim = 1,
                  .round = 3,
                  .slot_number = 4};
    EXPECT_EQ(text(told),
              R"({"assign":{"slot":"s1","session":"worker","pool":"browser","round":3,)"
              R"("claim":"c1"}})");
    told.kind = DecisionKind::kRevoke;
    EXPECT_EQ(text(told),
              R"({"revoke":{"slot":"s1","session":"worker","pool":"browser","round":3}})");
    told.kind = DecisionKind::kAnnounced;
    EXPECT_EQ(text(told),
              R"({"announced":{"slot":"s1","session":"worker","pool":"browser","number":4}})");
    told.kind = DecisionKind::kSlotGone;
    EXPECT_EQ(text(told), R"({"slot_gone":{"slot":"s1","pool":"browser"}})");
}

TEST(DecisionText, EscapesAnAnswersBytes) {
    const uint8_t answer[] = {'"', '\\', '\n', 1, 'x'};
    const Decision decision{
        .kind = DecisionKind::kAnswer, .session = 0, .claim = 1, .answer = answer};
    EXPECT_EQ(text(decision),
              R"({"answer":{"claim":"c1","session":"alice","index":0,)"
              R"("answer":"\"\\\n\u0001x"}})");
}

TEST(DecisionText, PrintsTheEndOfALeaseWithItsSlots) {
    const Decision end{.kind = DecisionKind::kLeaseEnd,
                       .reason = shm::Reason::kExpiredLease,
                       .session = 0,
                       .pool = 0,
                       .claim = 1,
                       .fence = 2};
    EXPECT_EQ(text(end, {5}),
              R"({"lease_end":{"claim":"c1","session":"alice","pool":"gpu","slots":[5],)"
              R"("fence":2,"reason":"expired_lease"}})");
    const Decision grace{
        .kind = DecisionKind::kLeaseGrace, .session = 0, .claim = 1, .fence = 2, .value = 60};
    EXPECT_EQ(text(grace),
              R"({"lease_grace":{"claim":"c1","session":"alice","fence":2,"until_ns":60}})");
}

TEST(DecisionText, PrintsWhatHasNoNameByItsNumber) {
    const Decision grant{.kind = DecisionKind::kGrant, .session = 9, .pool = 7, .claim = 3};
    EXPECT_EQ(text(grant, {2}),
              R"({"grant":{"claim":"#3","session":"#9","pool":"#7","slots":[2],)"
              R"("fence":0,"interval_ns":0}})");
}

TEST(DecisionText, TellsADrainedPoolFromADrainedBroker) {
    EXPECT_EQ(text({.kind = DecisionKind::kDrained, .pool = 1}),
              R"({"drained":{"pool":"browser"}})");
    EXPECT_EQ(text({.kind = DecisionKind::kDrained}), R"({"drained":{}})");
    Decision demand = {
        .kind = DecisionKind::kDemand, .pool = 0, .id = 7, .value = 12, .hit_permille = 999};
    demand.fence = shm::kNever;
    EXPECT_EQ(text(demand),
              R"({"demand":{"pool":"gpu","queued":12,"oldest_wait_ns":7,"hit_permille":999}})");
    demand.fence = 3;
    EXPECT_EQ(
        text(demand),
        R"({"demand":{"pool":"gpu","queued":12,"oldest_wait_ns":7,"hit_permille":999,"headroom":3}})");
}

}  // namespace
}  // namespace dibs::ctl
