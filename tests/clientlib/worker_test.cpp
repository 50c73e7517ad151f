// tests/clientlib/worker_test.cpp -- slots, assignments, and the words about them.
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/wire/payload_encoder.hpp"
#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

std::string encoded(const client::ClaimContent& content) {
    std::string bytes(client::encode_claim(content, nullptr), 0);
    client::encode_claim(content, reinterpret_cast<uint8_t*>(bytes.data()));
    return bytes;
}

TEST(Worker, AnnouncesASlotAndLearnsItsId) {
    FakeBroker broker;
    Client client(broker);
    const char* labels[] = {"fast"};
    dibs_option attribute = {"device", "3"};
    dibs_announce_options options = {};
    options.size = sizeof options;
    options.name = "gpu-3";
    options.labels = labels;
    options.label_count = 1;
    options.attributes = &attribute;
    options.attribute_count = 1;
    options.worker_tag = 33;
    options.ready = 1;
    options.is_protected = 1;
    uint64_t slot = 0;
    ASSERT_EQ(dibs_announce(client, 0, &options, DIBS_FOREVER, &slot), DIBS_OK);
    EXPECT_EQ(slot, 0x100000005ULL);
    const Submission sent = broker.seen().at(0);
    EXPECT_EQ(sent.op, Op::kAnnounce);
    EXPECT_EQ(sent.id, 33U);
    EXPECT_EQ(sent.flags, shm::OpFlag::kOn | shm::OpFlag::kThenReady);
    EXPECT_NE(sent.payload_size, 0U);

    const std::string long_name(64, 'n');
    options.name = long_name.c_str();
    EXPECT_EQ(dibs_announce(client, 0, &options, DIBS_FOREVER, &slot), DIBS_ENAME);
    options.name = "";
    EXPECT_EQ(dibs_announce(client, 0, &options, DIBS_FOREVER, &slot), DIBS_ENAME);
    options.name = nullptr;
    EXPECT_EQ(dibs_announce(client, 6, &options, DIBS_FOREVER, &slot), DIBS_EPOOL);
    EXPECT_EQ(dibs_announce(client, 0, &options, 0, &slot), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_announce(client, 0, &options, -1, &slot), DIBS_ENEGATIVE);
}

TEST(Worker, IsToldWhatTheClaimBrought) {
    FakeBroker broker;
    Client client(broker);
    const dibs_option options[] = {{"model", "large"}, {"seed", nullptr}};
    const char* labels[] = {"fast", "near"};
    const std::string payload = encoded({options, 2, labels, 2, "body", 4});
    broker.call([&](FakeSession& session) {
        session.assign(0x100000005ULL, 8, 33, payload);
        session.revoke(0x100000005ULL, 8, 33);
    });
    dibs_assignment assignment;
    ASSERT_EQ(dibs_next_assignment(client, DIBS_FOREVER, &assignment), DIBS_OK);
    EXPECT_EQ(assignment.kind, DIBS_ASSIGN);
    EXPECT_EQ(assignment.slot, 0x100000005ULL);
    EXPECT_EQ(assignment.round, 8U);
    EXPECT_EQ(assignment.worker_tag, 33U);
    EXPECT_EQ(assignment.number, 3U);
    EXPECT_EQ(assignment.claim, 21U);
    EXPECT_EQ(std::string(static_cast<const char*>(assignment.body), assignment.body_size), "body");
    ASSERT_EQ(assignment.option_count, 2U);
    EXPECT_STREQ(assignment.options[0].key, "model");
    EXPECT_STREQ(assignment.options[0].value, "large");
    EXPECT_STREQ(assignment.options[1].value, "");
    ASSERT_EQ(assignment.label_count, 2U);
    EXPECT_STREQ(assignment.labels[1], "near");

    ASSERT_EQ(dibs_next_assignment(client, DIBS_FOREVER, &assignment), DIBS_OK);
    EXPECT_EQ(assignment.kind, DIBS_REVOKE);
    EXPECT_EQ(assignment.body_size, 0U);
    EXPECT_EQ(dibs_next_assignment(client, DIBS_NOWAIT, &assignment), DIBS_ETIMEDOUT);
    EXPECT_EQ(dibs_next_assignment(client, DIBS_MILLISECOND, &assignment), DIBS_ETIMEDOUT);
    EXPECT_EQ(dibs_next_assignment(client, -1, &assignment), DIBS_ENEGATIVE);
    EXPECT_EQ(dibs_next_assignment(client, 0, nullptr), DIBS_EARGUMENT);
}

// Makes each announced slot one with the next id, and says yes to everything else.
FakeBroker::Script numbering_slots() {
    return [next = uint64_t{0}](FakeSession& session, const Submission& entry) mutable {
        shm::Completion completion;
        completion.user_data = entry.user_data;
        const bool slot = entry.op == Op::kAnnounce;
        completion.kind = slot ? shm::CompletionKind::kSlot : shm::CompletionKind::kResult;
        if (slot) completion.id = ++next;
        session.complete(completion);
    };
}

TEST(Worker, IsToldThatAPayloadCannotBeRead) {
    FakeBroker broker(numbering_slots());
    Client client(broker);
    uint64_t slot = 0;
    ASSERT_EQ(dibs_announce(client, 0, nullptr, DIBS_FOREVER, &slot), DIBS_OK);
    broker.call([](FakeSession& session) {
        session.assign(1, 1, 1, std::string("\xff\xff\xff\x7f garbage", 12));
        session.assign(2, 1, 2, "");
    });
    dibs_assignment assignment;
    ASSERT_EQ(dibs_next_assignment(client, DIBS_FOREVER, &assignment), DIBS_EPAYLOAD);
    EXPECT_EQ(assignment.slot, 1U);
    EXPECT_EQ(assignment.round, 1U);
    ASSERT_EQ(dibs_next_assignment(client, DIBS_FOREVER, &assignment), DIBS_OK);
    EXPECT_EQ(assignment.slot, 2U);
}

// Its room may be another slot's by then, and hold anything.
TEST(Worker, IsNotToldOfASlotThatItWithdrewBeforeItRead) {
    FakeBroker broker(numbering_slots());
    Client client(broker);
    uint64_t slot = 0;
    ASSERT_EQ(dibs_announce(client, 0, nullptr, DIBS_FOREVER, &slot), DIBS_OK);
    broker.call([](FakeSession& session) {
        session.assign(1, 1, 1, std::string("\xff\xff\xff\x7f garbage", 12));
        session.assign(2, 1, 2, "");
    });
    ASSERT_EQ(dibs_withdraw(client, slot, DIBS_FOREVER), DIBS_OK);
    dibs_assignment assignment;
    ASSERT_EQ(dibs_next_assignment(client, DIBS_FOREVER, &assignment), DIBS_OK);
    EXPECT_EQ(assignment.slot, 2U);
}

TEST(Worker, SpeaksOfItsSlotsByRound) {
    FakeBroker broker;
    Client client(broker);
    EXPECT_EQ(dibs_confirm(client, 5, 8, "port 7", 6, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(dibs_refuse(client, 5, 8, -3, 1, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(dibs_done(client, 5, 8, nullptr, 0, 1, DIBS_NOWAIT), DIBS_OK);
    EXPECT_EQ(dibs_ready(client, 5, 9, DIBS_NOWAIT), DIBS_OK);
    EXPECT_EQ(dibs_protect(client, 5, 1, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(dibs_withdraw(client, 5, DIBS_FOREVER), DIBS_OK);
    std::vector<Submission> seen;
    std::string answer;
    broker.call([&](FakeSession& session) {
        seen = session.seen;
        answer = session.payload(seen[0]);
    });
    ASSERT_EQ(seen.size(), 6U);
    EXPECT_EQ(seen[0].op, Op::kConfirm);
    EXPECT_EQ(seen[0].id, 5U);
    EXPECT_EQ(seen[0].fence, 8U);
    EXPECT_EQ(answer, "port 7");
    EXPECT_EQ(seen[1].flags, shm::OpFlag::kTryAgain);
    EXPECT_EQ(static_cast<int64_t>(shm::key_word(seen[1])), -3);
    EXPECT_EQ(seen[2].flags, shm::OpFlag::kThenReady | shm::OpFlag::kQuiet);
    EXPECT_EQ(seen[3].op, Op::kReady);
    EXPECT_EQ(seen[4].flags, shm::OpFlag::kOn);
    EXPECT_EQ(seen[5].op, Op::kWithdraw);

    EXPECT_EQ(dibs_ready(client, 5, 9, -1), DIBS_ENEGATIVE);
    EXPECT_EQ(dibs_confirm(client, 5, 8, nullptr, 6, 0), DIBS_EARGUMENT);
    const std::string large(16'385, 'a');
    EXPECT_EQ(dibs_confirm(client, 5, 8, large.data(), large.size(), 0), DIBS_EPAYLOAD);
}

TEST(Worker, HearsTheBrokersCode) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        session.result(entry, entry.op == Op::kConfirm ? Reason::kStale : Reason::kNotFound);
    });
    Client client(broker);
    EXPECT_EQ(dibs_confirm(client, 5, 8, nullptr, 0, DIBS_FOREVER), DIBS_ESTALE);
    EXPECT_EQ(dibs_ready(client, 5, 8, DIBS_FOREVER), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_ready(client, 5, 8, DIBS_NOWAIT), DIBS_OK);  // nobody is told
    dibs_completion none = {};
    broker.wait_for(3);
    EXPECT_EQ(dibs_reap(client, &none, 1, DIBS_NOWAIT), 0);
}

TEST(Worker, MayOfferSlotsAsLongAsTheirAssignmentsHaveRoom) {
    FakeBroker broker(numbering_slots());
    dibs_connect_options sizes = {};
    sizes.submission_entries = 8;
    sizes.completion_entries = 16;
    Client client(broker, sizes);
    uint64_t slot = 0;
    // A quarter of the eight entries is left for the operations; four belong to each slot.
    EXPECT_EQ(dibs_announce(client, 0, nullptr, DIBS_FOREVER, &slot), DIBS_OK);
    EXPECT_EQ(dibs_announce(client, 0, nullptr, DIBS_FOREVER, &slot), DIBS_ENOROOM);
}

// Of a word that nobody waits for, the broker's refusal would be told to nobody.
TEST(Worker, SaysNoAnswerThatItsPoolWouldRefuse) {
    FakeBroker broker(numbering_slots());
    broker.publish_pool(0, "web", {});  // of answers of 32 bytes at most
    Client client(broker);
    uint64_t slot = 0;
    ASSERT_EQ(dibs_announce(client, 0, nullptr, DIBS_FOREVER, &slot), DIBS_OK);
    const std::string answer(33, 'a');
    EXPECT_EQ(dibs_confirm(client, slot, 1, answer.data(), 33, DIBS_NOWAIT), DIBS_EPAYLOAD);
    EXPECT_EQ(dibs_done(client, slot, 1, answer.data(), 33, 1, DIBS_NOWAIT), DIBS_EPAYLOAD);
    EXPECT_EQ(dibs_confirm(client, slot, 1, answer.data(), 32, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(broker.seen().size(), 2U);
}

// Counted before their results have come, wanted or not.
TEST(Worker, KeepsRoomForOperationsBesideTheSlotsOfOneBatch) {
    for (const bool quiet : {false, true}) {
        SCOPED_TRACE(quiet);
        FakeBroker broker(numbering_slots());
        Client client(broker);
        broker.hold();
        std::vector<dibs_op> ops(32, operation(DIBS_OP_ANNOUNCE, 1));
        for (dibs_op& op : ops)
            if (quiet) op.flags = DIBS_QUIET;
        EXPECT_EQ(dibs_submit(client, ops.data(), 32), 24);  // of 128 entries, four each
        EXPECT_EQ(dibs_submit(client, ops.data(), 1), DIBS_ENOROOM);
        broker.go_on();
        broker.wait_for(24);
        std::vector<dibs_completion> ends(32);
        EXPECT_EQ(dibs_reap(client, ends.data(), 32, DIBS_NOWAIT), quiet ? 0 : 24);
        EXPECT_EQ(dibs_submit(client, ops.data(), 1), DIBS_ENOROOM);
        EXPECT_EQ(dibs_ready(client, 24, 1, DIBS_FOREVER), DIBS_OK);
        EXPECT_EQ(dibs_withdraw(client, 24, DIBS_FOREVER), DIBS_OK);
        EXPECT_EQ(dibs_submit(client, ops.data(), 2), 1);
    }
}

TEST(Worker, MayAnnounceAgainWhatTheBrokerRefused) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        shm::Completion completion;
        completion.user_data = entry.user_data;
        completion.kind = shm::CompletionKind::kSlot;
        completion.reason = Reason::kNoRoom;
        session.complete(completion);
    });
    dibs_connect_options sizes = {};
    sizes.submission_entries = 8;
    sizes.completion_entries = 16;
    Client client(broker, sizes);
    uint64_t slot = 0;
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(dibs_announce(client, 0, nullptr, DIBS_FOREVER, &slot), DIBS_ENOROOM);
    EXPECT_EQ(broker.seen().size(), 20U);
}

// Eight entries: four claims wait, and a slot needs four beside its result.
TEST(Worker, OffersNoSlotWhoseAssignmentsWouldHaveNoRoom) {
    FakeBroker broker([](FakeSession&, const Submission&) {});
    dibs_connect_options sizes = {};
    sizes.submission_entries = 8;
    sizes.completion_entries = 16;
    Client client(broker, sizes);
    std::vector<dibs_op> ops(4, operation(DIBS_OP_CLAIM, 1));
    ASSERT_EQ(dibs_submit(client, ops.data(), 4), 4);
    dibs_op offer = operation(DIBS_OP_ANNOUNCE, 2);
    EXPECT_EQ(dibs_submit(client, &offer, 1), DIBS_EFULL);
    broker.wait_for(4);
    broker.call([](FakeSession& session) {
        session.refuse(session.seen[0], Outcome::kExpired, Reason::kOk);
    });
    EXPECT_EQ(dibs_submit(client, &offer, 1), DIBS_EUNREAD);
    dibs_completion end = {};
    EXPECT_EQ(dibs_reap(client, &end, 1, DIBS_NOWAIT), 1);
    EXPECT_EQ(dibs_submit(client, &offer, 1), 1);
}

// By name, in its pool: labels and attributes are replaced, no other slot is asked for.
TEST(Worker, MayAnnounceASlotAgainWhereThereIsRoomForNoOther) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        shm::Completion completion;
        completion.user_data = entry.user_data;
        completion.kind = shm::CompletionKind::kSlot;
        completion.id = entry.id;
        session.complete(completion);
    });
    broker.publish_pool(1, "web", {});
    dibs_connect_options sizes = {};
    sizes.submission_entries = 8;
    sizes.completion_entries = 16;
    Client client(broker, sizes);
    dibs_announce_options options = {};
    options.size = sizeof options;
    options.name = "first";
    options.worker_tag = 1;
    uint64_t slot = 0;
    ASSERT_EQ(dibs_announce(client, 0, &options, DIBS_FOREVER, &slot), DIBS_OK);
    options.worker_tag = 2;  // the broker has forgotten it: another slot in its place
    EXPECT_EQ(dibs_announce(client, 0, &options, DIBS_FOREVER, &slot), DIBS_OK);
    EXPECT_EQ(slot, 2U);
    EXPECT_EQ(dibs_announce(client, 1, &options, DIBS_FOREVER, &slot), DIBS_ENOROOM);
    options.name = "second";
    EXPECT_EQ(dibs_announce(client, 0, &options, DIBS_FOREVER, &slot), DIBS_ENOROOM);
    options.name = nullptr;
    EXPECT_EQ(dibs_announce(client, 0, &options, DIBS_FOREVER, &slot), DIBS_ENOROOM);
    EXPECT_EQ(dibs_withdraw(client, 2, DIBS_NOWAIT), DIBS_OK);
    options.name = "second";
    EXPECT_EQ(dibs_announce(client, 0, &options, DIBS_FOREVER, &slot), DIBS_OK);
}

TEST(Result, ThatComesTooLateIsForNobody) {
    FakeBroker broker;
    Client client(broker);
    broker.hold();
    EXPECT_EQ(dibs_ready(client, 5, 8, DIBS_MILLISECOND), DIBS_ETIMEDOUT);
    broker.go_on();
    broker.wait_for(1);
    dibs_completion none = {};
    EXPECT_EQ(dibs_reap(client, &none, 1, DIBS_NOWAIT), 0);
    EXPECT_EQ(dibs_ready(client, 5, 8, DIBS_FOREVER), DIBS_OK);
}

}  // namespace
}  // namespace dibs::test
