// tests/broker/turn/answer_test.cpp -- what clients and workers are told, and where its bytes lie.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/answer.hpp"

#include <gtest/gtest.h>

#include <string>

#include "shm/operation.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::CompletionKind;
using shm::Op;
using shm::Outcome;
using shm::Reason;

const shm::GrantSlot* unit_of(const Session& session, const shm::Completion& granted, uint32_t i) {
    const auto* head = reinterpret_cast<const shm::GrantHead*>(session.payload + granted.data);
    return reinterpret_cast<const shm::GrantSlot*>(session.payload + granted.data +
                                                   sizeof(shm::GrantHead) + i * head->stride);
}

std::string answer_of(const Session& session, const shm::Completion& granted, uint32_t i) {
    const auto* head = reinterpret_cast<const shm::GrantHead*>(session.payload + granted.data);
    const shm::GrantSlot* unit = unit_of(session, granted, i);
    return {reinterpret_cast<const char*>(unit) + head->answer_place, unit->answer_size};
}

// What its worker said done with.
std::string last_answer_of(const Session& session, const shm::Completion& granted, uint32_t i) {
    const auto* head = reinterpret_cast<const shm::GrantHead*>(session.payload + granted.data);
    const shm::GrantSlot* unit = unit_of(session, granted, i);
    return {reinterpret_cast<const char*>(unit) + head->answer_place +
                shm::grant_answer_room(head->stride, head->answer_place),
            unit->done_size};
}

// A worker pool with a worker that has announced two slots.
struct WorkerTest : testing::Test {
    void SetUp() override {
        bench.pool({.name = "web",
                    .kind = shm::PoolKind::kWorker,
                    .payload_max = 240,
                    .answer_max = 20,
                    .attributes_max = 32,
                    .reservation_ttl_ns = 1000});
        client = &bench.open();
        worker = &bench.open();  // later, so that the bench reads it first
        for (uint64_t& slot : slots) {
            shm::Submission announce;
            announce.op = Op::kAnnounce;
            announce.flags = shm::OpFlag::kThenReady;
            announce.id = 70;
            bench.push(*worker, announce);
            bench.turn();
            const auto announced = bench.next(*worker);
            ASSERT_EQ(announced->kind, CompletionKind::kSlot);
            slot = announced->id;
        }
    }
    void say(Session& session, shm::Submission entry, const std::string& payload = {}) {
        std::memcpy(Bench::up_payload(session), payload.data(), payload.size());
        entry.payload_size = static_cast<uint32_t>(payload.size());
        bench.push(session, entry);
        bench.turn();
    }
    Bench bench;
    Session* worker = nullptr;
    Session* client = nullptr;
    uint64_t slots[2] = {};
};

TEST(Answers, PutAttributesOfEachSlotIntoItsRegion) {
    Bench bench;
    const std::string_view attributes[] = {{"device=0\0", 9}, {"device=1\0", 9}};
    bench.pool({.name = "gpu", .slots = 2, .attributes_max = 9, .slot_attributes = attributes});
    Session& session = bench.open();
    bench.push(session, claim(1, 0, 2));
    bench.turn();
    const auto granted = bench.next(session);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    for (uint32_t i = 0; i < 2; ++i) {
        const shm::GrantSlot* unit = unit_of(session, *granted, i);
        EXPECT_EQ(unit->number, i);
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(unit + 1), unit->attributes_size),
                  std::string(attributes[i]));
    }
}

TEST(Answers, KeepAQuietSuccessToThemselvesAndTellAQuietFailure) {
    Bench bench;
    bench.pool({.name = "tokens", .slots = 1});
    Session& session = bench.open();
    bench.push(session, claim(1));
    bench.turn();
    const auto granted = bench.next(session);
    bench.push(session, word(Op::kRelease, granted->id, granted->fence, shm::OpFlag::kQuiet));
    bench.push(session, word(Op::kRelease, granted->id, granted->fence, shm::OpFlag::kQuiet));
    bench.turn();
    const auto second = bench.next(session);
    EXPECT_EQ(second->kind, CompletionKind::kResult);
    EXPECT_EQ(second->reason, Reason::kAlreadyEnded);
    EXPECT_FALSE(bench.next(session));
}

TEST(Answers, NameWhoHoldsWhatWasWanted) {
    Bench bench;
    bench.pool({.name = "tokens", .slots = 1});
    Session& holder = bench.open();
    Session& other = bench.open();
    bench.push(holder, claim(1));
    bench.turn();
    bench.now += 500;
    shm::Submission now_only = claim(1);
    now_only.id = 0;
    bench.push(other, now_only);
    bench.turn();
    const auto busy = bench.next(other);
    EXPECT_EQ(busy->reason, Reason::kBusy);
    const shm::Holder who = shm::holder_of(*busy);
    EXPECT_EQ(who.uid, 1000U);
    EXPECT_EQ(who.pid, 42U);
    EXPECT_EQ(who.claim, 1U);
    EXPECT_EQ(who.age_ns, 500U);
}

TEST(Answers, EndASessionWhoseCompletionRingIsFull) {
    Bench bench;
    bench.pool({.name = "tokens", .slots = 1});
    Session& deaf = bench.open({.submission_entries = 8, .completion_entries = 16});
    Session& other = bench.open();
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 8; ++i)
            bench.push(deaf, {});
        bench.turn();
    }
    EXPECT_TRUE(deaf.ending);
    EXPECT_EQ(deaf.end_reason, Reason::kLimit);
    bench.push(other, claim(1));
    bench.turn();
    EXPECT_EQ(bench.next(other)->outcome, Outcome::kGranted);
}

TEST(Answers, EndASessionThatSaysItReadWhatWasNeverWritten) {
    Bench bench;
    bench.pool({.name = "tokens", .slots = 1});
    Session& liar = bench.open({.submission_entries = 8, .completion_entries = 16});
    Bench::up(liar).completion_head.store(1000);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 8; ++i)
            bench.push(liar, {});
        bench.turn();
    }
    EXPECT_TRUE(liar.ending);
}

TEST_F(WorkerTest, GetsAssignmentsInTheRoomOfItsSlot) {
    say(*client, claim(5, 0, 2));
    const auto first = bench.next(*worker);
    const auto second = bench.next(*worker);
    ASSERT_EQ(first->kind, CompletionKind::kAssign);
    ASSERT_EQ(second->kind, CompletionKind::kAssign);
    EXPECT_EQ(first->id, slots[0]);
    EXPECT_EQ(first->user_data, 70U);
    EXPECT_EQ(first->fence, 1U);
    EXPECT_EQ(first->holder, 0U);
    EXPECT_EQ(second->data - first->data, 256U);  // 240 bytes and a head: four lines
}

TEST_F(WorkerTest, AnswersStandInTheirUnitsRegion) {
    say(*client, claim(5, 0, 2));
    const auto first = bench.next(*worker);
    const auto second = bench.next(*worker);
    say(*worker, word(Op::kConfirm, second->id, second->fence), "second");
    (void)bench.next(*worker);
    EXPECT_FALSE(bench.next(*client));
    say(*worker, word(Op::kConfirm, first->id, first->fence), "first");
    const auto granted = bench.next(*client);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    EXPECT_EQ(answer_of(*client, *granted, 0), "first");
    EXPECT_EQ(answer_of(*client, *granted, 1), "second");
}

TEST_F(WorkerTest, AnswerThatIsTooLongIsRefusedAndChangesNothing) {
    say(*client, claim(5));
    const auto assigned = bench.next(*worker);
    say(*worker, word(Op::kConfirm, assigned->id, assigned->fence), std::string(21, 'x'));
    EXPECT_EQ(bench.next(*worker)->reason, Reason::kPayload);
    EXPECT_FALSE(bench.next(*client));
}

TEST_F(WorkerTest, AnswersOfAnEarlierAssignmentAreForgotten) {
    say(*client, claim(5, 0, 2));
    const auto first = bench.next(*worker);
    (void)bench.next(*worker);
    say(*worker, word(Op::kConfirm, first->id, first->fence), "old");
    bench.now += 1000;  // the other one says nothing in time
    bench.turn();
    say(*worker, word(Op::kReady, slots[0], 1, shm::OpFlag::kQuiet));
    say(*worker, word(Op::kReady, slots[1], 1, shm::OpFlag::kQuiet));
    for (uint64_t confirmed = 0; confirmed < 2;) {
        const auto told = bench.next(*worker);
        ASSERT_TRUE(told);
        if (told->kind != CompletionKind::kAssign) continue;
        say(*worker, word(Op::kConfirm, told->id, told->fence, shm::OpFlag::kQuiet));
        ++confirmed;
    }
    const auto granted = bench.next(*client);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    EXPECT_EQ(answer_of(*client, *granted, 0), "");
    EXPECT_EQ(answer_of(*client, *granted, 1), "");
}

TEST_F(WorkerTest, DoneTellsTheHolderAndLeavesItsAnswerToRead) {
    say(*client, claim(5));
    const auto assigned = bench.next(*worker);
    say(*worker, word(Op::kConfirm, assigned->id, assigned->fence));
    const auto granted = bench.next(*client);
    say(*worker, word(Op::kDone, assigned->id, assigned->fence), "exit=0");
    EXPECT_EQ(shm::event_state(client->events[5].load()), shm::LeaseEvent::kEnded);
    EXPECT_EQ(shm::event_reason(client->events[5].load()), Reason::kDone);
    EXPECT_EQ(last_answer_of(*client, *granted, 0), "exit=0");
}

// The holder may be reading it.
TEST_F(WorkerTest, LastAnswerIsWrittenBesideTheFirst) {
    say(*client, claim(5, 0, 2));
    const std::string full(20, 'f');  // as long as the pool allows
    say(*worker, word(Op::kConfirm, slots[0], 1), full);
    say(*worker, word(Op::kConfirm, slots[1], 1), "second");
    const auto granted = bench.next(*client);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    say(*worker, word(Op::kDone, slots[0], 1), std::string(20, 'd'));
    EXPECT_EQ(answer_of(*client, *granted, 0), full);
    EXPECT_EQ(answer_of(*client, *granted, 1), "second");
    EXPECT_EQ(last_answer_of(*client, *granted, 0), std::string(20, 'd'));
    EXPECT_EQ(last_answer_of(*client, *granted, 1), "");
}

TEST_F(WorkerTest, LastAnswerOfAnEarlierLeaseIsForgotten) {
    for (const std::string last : {"exit=0", ""}) {
        say(*client, claim(5, 0, 2));
        uint64_t round = 0;
        for (int told = 0; told < 2; ++told) {
            const auto assigned = bench.next(*worker);
            ASSERT_EQ(assigned->kind, CompletionKind::kAssign);
            round = assigned->fence;
        }
        for (const uint64_t slot : slots)
            say(*worker, word(Op::kConfirm, slot, round, shm::OpFlag::kQuiet));
        const auto granted = bench.next(*client);
        ASSERT_EQ(granted->outcome, Outcome::kGranted);
        constexpr auto kQuietly = shm::OpFlag::kQuiet | shm::OpFlag::kThenReady;
        say(*worker, word(Op::kDone, slots[0], round, kQuietly), last);
        EXPECT_EQ(last_answer_of(*client, *granted, 0), last);
        while (bench.next(*worker)) {
        }
        say(*worker, word(Op::kReady, slots[1], round, shm::OpFlag::kQuiet));
    }
}

TEST_F(WorkerTest, RoomOfASlotThatIsGoneIsFreeOnceItsAssignmentIsRead) {
    const uint32_t free = worker->rooms.lines_free();
    say(*worker, word(Op::kWithdraw, slots[0], 0));
    EXPECT_EQ(worker->slots, 1U);
    EXPECT_EQ(worker->rooms.lines_free(), free);  // its completions have not been released
    while (bench.next(*worker)) {
    }
    bench.release_read(*worker);
    say(*worker, {});
    EXPECT_EQ(worker->rooms.lines_free(), free + 4);
}

// A grant and its cancel in one turn: the worker's word and the client's were read together.
TEST_F(WorkerTest, GrantThatIsCancelledInItsTurnIsToldFromItsOwnRoom) {
    say(*client, claim(5));
    const auto assigned = bench.next(*worker);
    const uint32_t free = client->rooms.lines_free();
    bench.push(*worker, word(Op::kConfirm, assigned->id, assigned->fence));
    shm::Submission cancel;
    cancel.op = Op::kCancel;
    cancel.tag = 5;
    bench.push(*client, cancel);
    bench.turn();
    const auto cancelled = bench.next(*client);
    ASSERT_TRUE(cancelled);
    const auto granted = bench.next(*client);
    ASSERT_TRUE(granted);
    const auto& grant = granted->kind == CompletionKind::kClaim ? granted : cancelled;
    EXPECT_EQ(grant->outcome, Outcome::kGranted);
    EXPECT_EQ(unit_of(*client, *grant, 0)->number, 0U);
    EXPECT_EQ(client->rooms.lines_free(), free);  // the grant has not been read
    bench.release_read(*client);
    bench.push(*client, {});
    bench.turn();
    EXPECT_GT(client->rooms.lines_free(), free);
    EXPECT_TRUE(bench.core.check_all().empty());
}

// The tag's next claim has a room of one unit; what is still told of the first, of two, stays out.
TEST_F(WorkerTest, AnswerForAClaimWhoseTagIsTakenAgainTouchesNoOtherRoom) {
    say(*client, claim(5, 0, 2));
    const auto first = bench.next(*worker);
    const auto second = bench.next(*worker);
    ASSERT_EQ(first->kind, CompletionKind::kAssign);
    std::memcpy(Bench::up_payload(*worker), "foreign", 7);
    shm::Submission confirm = word(Op::kConfirm, second->id, second->fence);
    confirm.payload_size = 7;
    bench.push(*worker, confirm);
    shm::Submission cancel;
    cancel.op = Op::kCancel;
    cancel.tag = 5;
    bench.push(*client, cancel);
    bench.push(*client, claim(5));
    const std::vector<std::byte> before(client->payload,
                                        client->payload + client->sizes.down_payload);
    bench.turn();
    const std::vector<std::byte> after(client->payload,
                                       client->payload + client->sizes.down_payload);
    EXPECT_EQ(before, after);  // nothing was granted, so nothing was written
}

TEST_F(WorkerTest, GrantWhoseTagIsTakenAgainInItsTurnTouchesNoOtherRoom) {
    say(*client, claim(5, 0, 2));
    const auto first = bench.next(*worker);
    const auto second = bench.next(*worker);
    bench.push(*worker, word(Op::kConfirm, first->id, first->fence));
    bench.push(*worker, word(Op::kConfirm, second->id, second->fence));
    shm::Submission cancel;
    cancel.op = Op::kCancel;
    cancel.tag = 5;
    bench.push(*client, cancel);
    bench.push(*client, claim(5));
    bench.turn();
    const uint32_t next = client->tags[5].first;
    for (std::optional<shm::Completion> told; (told = bench.next(*client));) {
        if (told->outcome != Outcome::kGranted) continue;
        EXPECT_NE(told->data, next * shm::kLineSize);
        EXPECT_EQ(unit_of(*client, *told, 1)->number, 1U);
    }
    const auto* head =
        reinterpret_cast<const shm::GrantHead*>(client->payload + next * shm::kLineSize);
    EXPECT_EQ(head->units, 0U);
}

// The worker is done and the holder gives back and claims with the same tag, all in one turn.
TEST_F(WorkerTest, TagOfALeaseThatEndedInThisTurnCanBeClaimedOnceItIsReleased) {
    say(*client, claim(5));
    const auto assigned = bench.next(*worker);
    say(*worker, word(Op::kConfirm, assigned->id, assigned->fence));
    const auto granted = bench.next(*client);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    bench.push(*worker, word(Op::kDone, assigned->id, assigned->fence, shm::OpFlag::kThenReady));
    bench.push(*client, word(Op::kRelease, granted->id, granted->fence, shm::OpFlag::kQuiet));
    bench.push(*client, claim(5));
    bench.turn();
    EXPECT_EQ(bench.next(*client)->reason, Reason::kAlreadyEnded);
    const auto none = bench.next(*client);
    EXPECT_FALSE(none) << static_cast<int>(none->reason);  // it waits for the worker's word
    EXPECT_FALSE(client->tags[5].ended());
    EXPECT_TRUE(bench.core.check_all().empty());
}

TEST(ClaimRooms, OfClaimsComeBackHoweverTheyEnd) {
    Bench bench;
    bench.pool({.name = "tokens", .slots = 1, .backlog_max = 2});
    Session& session = bench.open();
    const uint32_t all = session.rooms.lines_free();
    for (uint16_t round = 0; round < 100; ++round) {
        bench.push(session, claim(1));  // granted
        bench.push(session, claim(2));  // waits, is cancelled
        shm::Submission soon = claim(3);
        soon.id = 10;
        bench.push(session, soon);         // waits, expires
        bench.push(session, claim(4));     // finds the backlog full
        bench.push(session, claim(5, 9));  // an unknown pool
        bench.turn();
        shm::Submission cancel;
        cancel.op = Op::kCancel;
        cancel.tag = 2;
        bench.push(session, cancel);
        bench.turn();
        bench.now += 100;
        bench.turn();
        shm::Completion granted;
        while (const auto entry = bench.next(session)) {
            if (entry->outcome == Outcome::kGranted) granted = *entry;
        }
        bench.release_read(session);
        bench.push(session, word(Op::kRelease, granted.id, granted.fence, shm::OpFlag::kQuiet));
        bench.turn();
        ASSERT_EQ(session.rooms.lines_free(), all) << round;
    }
    EXPECT_TRUE(bench.core.check_all().empty());
}

TEST(ClaimRooms, RunOutIsItsOwnRejection) {
    Bench bench;
    bench.pool({.name = "tokens", .slots = 4, .attributes_max = 2000});
    Session& session =
        bench.open({.submission_entries = 8, .completion_entries = 64, .down_payload = 4096});
    bench.push(session, claim(1));
    bench.push(session, claim(2));
    bench.push(session, claim(3));
    bench.turn();
    EXPECT_EQ(bench.next(session)->reason, Reason::kNoRoom);
    const auto first = bench.next(session);
    EXPECT_EQ(first->outcome, Outcome::kGranted);
    EXPECT_EQ(bench.next(session)->reason, Reason::kOk);
}

TEST_F(WorkerTest, BringsAnswersAndAttributesAlongWhenALeaseIsAdopted) {
    bench.push(*client, claim(5, 0, 2));
    bench.turn();
    say(*worker, word(Op::kConfirm, slots[0], 1), "first");
    say(*worker, word(Op::kConfirm, slots[1], 1), "2nd");
    const auto granted = bench.next(*client);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    Session& child = bench.open();
    shm::Submission adopt = word(Op::kAdopt, granted->id, granted->fence);
    adopt.tag = 9;
    adopt.user_data = 77;
    bench.push(child, adopt);
    bench.turn();
    const auto adopted = bench.next(child);
    ASSERT_TRUE(adopted);
    EXPECT_EQ(adopted->kind, CompletionKind::kResult);
    EXPECT_EQ(adopted->reason, Reason::kOk);
    EXPECT_EQ(adopted->user_data, 77U);
    EXPECT_EQ(adopted->id, granted->id);
    EXPECT_EQ(adopted->fence, granted->fence);
    EXPECT_EQ(adopted->units, 2);
    EXPECT_EQ(adopted->claim, granted->claim);
    EXPECT_EQ(unit_of(child, *adopted, 0)->number, 0U);
    EXPECT_EQ(unit_of(child, *adopted, 1)->number, 1U);
    EXPECT_EQ(answer_of(child, *adopted, 0), "first");
    EXPECT_EQ(answer_of(child, *adopted, 1), "2nd");
    const uint64_t told = client->events[5].load();
    EXPECT_EQ(shm::event_state(told), shm::LeaseEvent::kEnded);
    EXPECT_EQ(shm::event_reason(told), Reason::kAdopted);
    // What the worker says last goes to whoever holds the lease now.
    say(*worker, word(Op::kDone, slots[0], 1), "done");
    EXPECT_EQ(shm::event_reason(child.events[9].load()), Reason::kDone);
    EXPECT_EQ(answer_of(child, *adopted, 0), "first");
    EXPECT_EQ(last_answer_of(child, *adopted, 0), "done");
}

TEST_F(WorkerTest, GivesTheRoomBackWhenNothingIsAdopted) {
    bench.push(*client, claim(5));
    bench.turn();
    const auto assigned = bench.next(*worker);
    say(*worker, word(Op::kConfirm, assigned->id, assigned->fence));
    const auto granted = bench.next(*client);
    Session& child = bench.open();
    const uint32_t free = child.rooms.lines_free();
    shm::Submission adopt = word(Op::kAdopt, granted->id, granted->fence + 1);
    adopt.tag = 9;
    bench.push(child, adopt);
    bench.turn();
    EXPECT_EQ(bench.next(child)->reason, Reason::kStale);
    EXPECT_EQ(child.rooms.lines_free(), free);
    EXPECT_EQ(child.tags[9].first, shm::kNoRow);
}

}  // namespace
}  // namespace dibs::test
